/* libtorch's operators through the adapter. What comes out is held against what ATen's operators are defined
 * to do, by hand. */
#include "torch.h"

#include "base/memory.h"
#include "torch/call.h"

#include <math.h>

static khub_function operator_of(const char *name)
{
    const khub__torch_operator *op;
    khub_error err = {0};
    torch_open();
    ck_khub_ok(khub__torch_operator_find(&op, "aten", name, &err), &err);
    return (khub_function){khub__torch_call, (void *)(uintptr_t)op};
}

START_TEST(one_operator)
{
    khub_function silu = operator_of("silu");
    float x[3] = {0, 1, -2};
    int64_t shape[1] = {3};
    khub_tensor t = khub_tensor_f32(x, 1, shape);
    khub_value arg = khub_arg_tensor(&t), result;
    khub_error err = {0};
    ck_khub_ok(khub_function_call(&silu, &arg, 1, &result, &err), &err);
    const khub_tensor *y = khub_value_tensor(&result);
    ck_assert_ptr_nonnull(y);
    ck_assert(y->ndim == 1 && y->shape[0] == 3 && y->strides[0] == 1 && y->device.type == KHUB_DEVICE_CPU);
    const float *out = y->data;
    for (int i = 0; i < 3; i++)
        ck_assert_double_eq_tol(out[i], x[i] / (1 + exp(-(double)x[i])), 1e-6);
    khub_value_release(&result);
}
END_TEST

UNIT("torch", one_operator)
