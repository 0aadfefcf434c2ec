/* kernel-status.toml: any bytes. What is read ends inside its fields; a redirect has both of them. */
#include "fetch/status.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    khub__status status;
    khub_error err = {0};
    char *text = malloc(size); /* exactly: a byte read past the end is noticed */
    if (size) memcpy(text, data, size);
    int rc = khub__status_parse(&status, text, size, "kernel-status.toml", &err);
    if ((rc == KHUB_OK) != !err.message[0]) abort();
    if (rc == KHUB_OK && *status.destination && !*status.revision) abort();
    if (!memchr(status.destination, 0, sizeof(status.destination))) abort();
    free(text);
    return 0;
}
