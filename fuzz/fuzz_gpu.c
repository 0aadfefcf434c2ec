/* A section of GPU code with any bytes: NVIDIA's fat binaries, and clang's bundles. */
#include "publish/gpu.h"

#include "base/memory.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_codes(khub__object *object)
{
    for (size_t i = 0; i < object->code_count; i++) {
        const khub__gpu_code *code = &object->codes[i];
        if (strlen(code->arch) < 3 || strlen(code->label) < strlen(code->arch) || object->failed) abort();
    }
    khub__free(object->codes);
    khub__names_free(&object->remarks);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    khub__object cuda = {0}, hip = {0};
    khub__cuda_read(&cuda, (const char *)data, size);
    khub__hip_read(&hip, (const char *)data, size);
    check_codes(&cuda);
    check_codes(&hip);
    return 0;
}
