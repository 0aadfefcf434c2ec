/* Safetensors files of any bytes: no crash, and what is accepted lies inside the file, each byte of the data
 * once. */
#include "model/safetensors.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(int holds)
{
    if (!holds) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    khub__safetensors *file;
    khub_error err = {0};
    int rc = khub__safetensors_over(&file, data, size, "input", &err);
    check((rc == KHUB_OK) == (err.code == KHUB_OK) && (rc == KHUB_OK) == (file != NULL));
    if (rc != KHUB_OK) return 0;
    size_t covered = 0;
    for (size_t i = 0; i < khub__safetensors_count(file); i++) {
        const khub__stored *t = khub__safetensors_at(file, i);
        const uint8_t *start = t->data;
        check(start >= data + 8 && start + t->bytes <= data + size);
        check(khub__safetensors_find(file, t->name) == t);
        covered += t->bytes;
    }
    check(covered <= size - 8);
    khub__safetensors_close(file);
    return 0;
}
