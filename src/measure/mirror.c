#include "measure/mirror.h"

static khub_tensor region_of(const khub__guarded *of, const int64_t *bytes)
{
    return khub_tensor_over(of->region, khub_dtype_of(KHUB_DTYPE_UINT, 8), 1, bytes);
}

int khub__mirror_new(khub__mirror *out, khub_gpu *gpu, khub__guarded *of, khub_error *err)
{
    int64_t bytes = (int64_t)of->region_bytes;
    khub_tensor region = region_of(of, &bytes);
    memset(out, 0, sizeof(*out));
    khub__guarded_unlock(of);
    int rc = khub_gpu_array_new(&out->memory, gpu, &region, err);
    if (rc != KHUB_OK) return rc;
    out->tensor = of->tensor;
    out->tensor.device = khub_gpu_device(gpu);
    if (of->region) out->tensor.data = (char *)out->memory.tensor.data + (of->data - of->region);
    return KHUB_OK;
}

void khub__mirror_free(khub__mirror *mirror)
{
    khub_gpu_array_free(&mirror->memory);
}

int khub__mirror_put(const khub__mirror *mirror, const khub__guarded *of, khub_error *err)
{
    int64_t bytes = (int64_t)of->region_bytes;
    khub_tensor region = region_of(of, &bytes);
    return khub_gpu_put(mirror->memory.gpu, &mirror->memory.tensor, &region, err);
}

int khub__mirror_take(const khub__mirror *mirror, khub__guarded *of, khub_error *err)
{
    int64_t bytes = (int64_t)of->region_bytes;
    khub_tensor region = region_of(of, &bytes);
    return khub_gpu_take(mirror->memory.gpu, &region, &mirror->memory.tensor, err);
}
