/* Schemas of Torch's operators: any bytes are one. What is accepted is written, read again and written the
 * same.
 */
#include "torch/schema.h"

#include <khub/memory.h>

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char *written(const char *text)
{
    khub__schema schema;
    khub__text out = {0};
    khub_error err = {0};
    int rc = khub__schema_parse(&schema, text, &err);
    if ((rc == KHUB_OK) != (err.message[0] == 0)) abort();
    if (rc != KHUB_OK) return NULL;
    if (schema.keyword_at > schema.argument_count) abort();
    khub__schema_write(&out, &schema);
    khub__schema_free(&schema);
    return khub__text_take(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    if (!text) return 0;
    memcpy(text, data, size);
    text[size] = 0;
    char *once = written(text), *twice = once ? written(once) : NULL;
    if (once && (!twice || strcmp(once, twice) != 0)) abort();
    khub_free(once);
    khub_free(twice);
    free(text);
    return 0;
}
