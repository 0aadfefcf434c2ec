/* A Link header of any bytes: what is found lies inside, between "<" and ">". */
#include "hub/answer.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    size_t length = 0;
    const char *next = khub__link_next(&length, text, size);
    if (!next) return 0;
    size_t at = (size_t)(next - text);
    if (next <= text || at + length >= size || next[-1] != '<' || next[length] != '>' || length == 0 ||
        memchr(next, '>', length))
        abort();
    return 0;
}
