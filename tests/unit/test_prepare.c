/* Preparing a weight with functions that keep to the protocol, and with ones that lie in each way there is.
 */
#include "unit.h"

#include "layer/prepare.h"

static float weights[6] = {1, 2, 3, 4, 5, 6};
static int64_t weight_shape[2] = {2, 3};

static khub_tensor weight(void)
{
    return khub_tensor_f32(weights, 2, weight_shape);
}

/* What the function at hand wants, and what it does to the struct in the second call. */
static struct {
    int32_t ndim;
    int64_t shape[KHUB_MAX_NDIM];
    khub_dtype dtype;
    int64_t *other_shape; /* put in place of the one given */
    int fail_at;          /* the call that fails: 1, 2; 0: none */
    int spoil;            /* the second call changes the struct */
    int calls;
} plan;

static int prepare(void *self, const khub_value *args, int32_t n, khub_value *result)
{
    (void)self, (void)result;
    khub_tensor *to = (khub_tensor *)(uintptr_t)khub_value_tensor(&args[0]);
    if (n != 2 || !to) return khub_raise("TypeError", "two tensors");
    if (++plan.calls == plan.fail_at) return khub_raise("ValueError", "no more");
    if (!to->data && plan.calls == 1) {
        to->ndim = plan.ndim;
        to->dtype = plan.dtype;
        memcpy(to->shape, plan.shape, sizeof(plan.shape));
        if (plan.other_shape) to->shape = plan.other_shape;
        return 0;
    }
    if (to->data) memcpy(to->data, weights, sizeof(weights));
    if (plan.spoil) {
        to->shape[0] = (int64_t)1 << 40;
        to->ndim = 100, to->data = NULL, to->dtype.bits = 64;
    }
    return 0;
}

static int run(khub_array *out, khub_error *err)
{
    khub_function function = {prepare, NULL};
    khub_tensor original = weight();
    plan.calls = 0;
    return khub__prepare(out, &function, "./k:pack", &original, err);
}

static void want(int32_t ndim, int64_t first, int64_t second)
{
    memset(&plan, 0, sizeof(plan));
    plan.ndim = ndim;
    plan.shape[0] = first, plan.shape[1] = second;
    plan.dtype = khub_dtype_of(KHUB_DTYPE_FLOAT, 32);
}

static void check_prepared(void)
{
    khub_array out;
    khub_error err = {0};
    ck_khub_ok(run(&out, &err), &err);
    ck_assert_int_eq(plan.calls, 2);
    ck_assert_int_eq(out.tensor.ndim, 2);
    ck_assert_int_eq(out.tensor.shape[0], 2);
    ck_assert_int_eq(out.tensor.shape[1], 4);
    ck_assert_int_eq(out.tensor.dtype.bits, 32);
    ck_assert_mem_eq(out.tensor.data, weights, sizeof(weights));
    ck_assert_float_eq(((float *)out.tensor.data)[6], 0);
    ck_assert_float_eq(((float *)out.tensor.data)[7], 0);
    khub_array_free(&out);
}

START_TEST(as_agreed)
{
    want(2, 2, 4);
    check_prepared();
}
END_TEST

START_TEST(what_the_second_call_does_to_the_struct_is_lost)
{
    want(2, 2, 4);
    plan.spoil = 1;
    check_prepared();
}
END_TEST

START_TEST(shapes_that_make_no_sense)
{
    static const struct {
        int32_t ndim;
        int64_t first, second;
        const char *words;
    } table[] = {
        {-1, 0, 0, "./k:pack: asks for a tensor of -1 dimensions: 0 to 8 are possible"},
        {9, 1, 1, "./k:pack: asks for a tensor of 9 dimensions: 0 to 8 are possible"},
        {0x7fffffff, 1, 1, "2147483647 dimensions"},
        {2, -5, 3, "./k:pack: asks for float32[-5,3] in place of 24 bytes, which makes no sense"},
        {2, (int64_t)1 << 40, (int64_t)1 << 40, "./k:pack: asks for float32[1099511627776,1099511627776] in"},
        {1, 262145 + 24 * 16, 0, "./k:pack: asks for float32[262529] in place of 24 bytes"},
    };
    khub_array out;
    khub_error err = {0};
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
        want(table[i].ndim, table[i].first, table[i].second);
        ck_khub_fails(run(&out, &err), &err, KHUB_E_KERNEL, table[i].words);
        ck_assert_int_eq(plan.calls, 1);
        ck_assert_ptr_null(out.memory);
    }
    want(1, 262144 + 24 * 16, 0); /* 1 MiB and 64 times 24 bytes: the most there is */
    ck_khub_ok(run(&out, &err), &err);
    khub_array_free(&out);
    int64_t other[1] = {4};
    want(1, 4, 0);
    plan.other_shape = other;
    ck_khub_fails(run(&out, &err), &err, KHUB_E_KERNEL, "./k:pack: replaced the shape");
    want(1, 4, 0);
    plan.dtype = (khub_dtype){KHUB_DTYPE_FLOAT, 0, 0};
    ck_khub_fails(run(&out, &err), &err, KHUB_E_INVAL, "./k:pack: float0x0[4]: the dtype has no size");
}
END_TEST

START_TEST(a_call_that_fails)
{
    khub_array out;
    khub_error err = {0};
    for (int at = 1; at <= 2; at++) {
        want(2, 2, 4);
        plan.fail_at = at;
        ck_khub_fails(run(&out, &err), &err, KHUB_E_KERNEL, "./k:pack: ValueError: no more");
        ck_assert_int_eq(plan.calls, at);
        ck_assert_ptr_null(out.memory);
    }
}
END_TEST

START_TEST(nothing_to_fill)
{
    khub_array out;
    khub_error err = {0};
    want(1, 0, 0);
    ck_khub_ok(run(&out, &err), &err);
    ck_assert_int_eq(plan.calls, 2);
    ck_assert_ptr_null(out.tensor.data);
    khub_array_free(&out);
}
END_TEST

UNIT("prepare", as_agreed, what_the_second_call_does_to_the_struct_is_lost, shapes_that_make_no_sense,
     a_call_that_fails, nothing_to_fill)
