#include "layer/prepare.h"

#include "base/error.h"

static int call(const khub_function *function, const khub_tensor *prepared, const khub_tensor *original,
                khub_error *err)
{
    const khub_value args[] = {khub_arg_tensor(prepared), khub_arg_tensor(original)};
    return khub_function_call(function, args, 2, NULL, err);
}

int khub__prepare(khub_array *out, const khub_function *function, const khub_tensor *original,
                  khub_error *err)
{
    int64_t shape[KHUB_MAX_NDIM] = {0};
    khub_tensor wanted = khub_tensor_over(NULL, original->dtype, 0, shape);
    memset(out, 0, sizeof(*out));
    int rc = call(function, &wanted, original, err);
    if (rc != KHUB_OK) return rc;
    if (wanted.shape != shape || wanted.ndim < 0 || wanted.ndim > KHUB_MAX_NDIM ||
        khub_tensor_count(&wanted) < 0)
        return khub__fail(err, KHUB_E_KERNEL,
                          "the function that prepares weights asks for a shape that makes no sense");
    rc = khub_array_new(out, wanted.dtype, wanted.ndim, shape, err);
    if (rc == KHUB_OK) rc = call(function, &out->tensor, original, err);
    if (rc != KHUB_OK) khub_array_free(out);
    return rc;
}
