/* Preparing a weight with functions that keep to the protocol, and with ones that lie in each way there is.
 */
#include "unit.h"

#include "layer/prepare.h"

#include <stdio.h>
#include <unistd.h>

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

static khub__shelf *last;

static int run(khub__prepared *out, khub_error *err)
{
    khub_function function = {prepare, NULL};
    khub_tensor original = weight();
    plan.calls = 0;
    return khub__prepare(out, &last, NULL, &function, "./k:pack", &original, err);
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
    khub__prepared out;
    khub_error err = {0};
    ck_khub_ok(run(&out, &err), &err);
    ck_assert_int_eq(plan.calls, 2);
    ck_assert_int_eq(out.array.tensor.ndim, 2);
    ck_assert_int_eq(out.array.tensor.shape[0], 2);
    ck_assert_int_eq(out.array.tensor.shape[1], 4);
    ck_assert_int_eq(out.array.tensor.dtype.bits, 32);
    ck_assert_mem_eq(out.array.tensor.data, weights, sizeof(weights));
    ck_assert_float_eq(((float *)out.array.tensor.data)[6], 0);
    ck_assert_float_eq(((float *)out.array.tensor.data)[7], 0);
    khub__prepared_free(&out);
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
    khub__prepared out;
    khub_error err = {0};
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
        want(table[i].ndim, table[i].first, table[i].second);
        ck_khub_fails(run(&out, &err), &err, KHUB_E_KERNEL, table[i].words);
        ck_assert_int_eq(plan.calls, 1);
        ck_assert_ptr_null(out.array.memory);
    }
    want(1, 262144 + 24 * 16, 0); /* 1 MiB and 64 times 24 bytes: the most there is */
    ck_khub_ok(run(&out, &err), &err);
    khub__prepared_free(&out);
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
    khub__prepared out;
    khub_error err = {0};
    for (int at = 1; at <= 2; at++) {
        want(2, 2, 4);
        plan.fail_at = at;
        ck_khub_fails(run(&out, &err), &err, KHUB_E_KERNEL, "./k:pack: ValueError: no more");
        ck_assert_int_eq(plan.calls, at);
        ck_assert_ptr_null(out.array.memory);
    }
}
END_TEST

START_TEST(nothing_to_fill)
{
    khub__prepared out;
    khub_error err = {0};
    want(1, 0, 0);
    ck_khub_ok(run(&out, &err), &err);
    ck_assert_int_eq(plan.calls, 2);
    ck_assert_ptr_null(out.array.tensor.data);
    khub__prepared_free(&out);
}
END_TEST

/* 1: advised to be made of huge pages; 0: not; -1: the system has none. */
static int is_huge(const void *at)
{
    char line[256];
    unsigned long from, to;
    int inside = 0, huge = -1;
    if (access("/sys/kernel/mm/transparent_hugepage", F_OK) != 0) return -1;
    FILE *file = fopen("/proc/self/smaps", "r");
    ck_assert_ptr_nonnull(file);
    while (fgets(line, sizeof(line), file)) {
        if (sscanf(line, "%lx-%lx ", &from, &to) == 2)
            inside = (uintptr_t)at >= from && (uintptr_t)at < to;
        else if (inside && !strncmp(line, "VmFlags:", 8))
            huge = strstr(line, " hg") != NULL;
    }
    fclose(file);
    return huge;
}

static void prepare_large(khub__prepared *out, int64_t floats)
{
    static float original[1 << 18];
    const int64_t shape[1] = {1 << 18};
    khub_function function = {prepare, NULL};
    khub_tensor from = khub_tensor_f32(original, 1, shape);
    khub_error err = {0};
    want(1, floats, 0);
    ck_khub_ok(khub__prepare(out, &last, NULL, &function, "./k:pack", &from, &err), &err);
    ck_assert_mem_eq(out->array.tensor.data, weights, sizeof(weights));
    ck_assert_float_eq(((float *)out->array.tensor.data)[floats - 1], 0);
}

START_TEST(large_ones_lie_side_by_side_in_huge_pages)
{
    enum { FLOATS = 100001 };
    khub__prepared one, other, huge;
    prepare_large(&one, FLOATS);
    prepare_large(&other, FLOATS);
    char *first = one.array.tensor.data, *second = other.array.tensor.data;
    ck_assert_int_eq(second - first, (FLOATS * 4 + 63) / 64 * 64);
    ck_assert_uint_eq((uintptr_t)first % ((size_t)2 << 20), 0);
    ck_assert_int_ne(is_huge(first), 0);
    ck_assert_int_ne(is_huge(second + FLOATS * 4L - 1), 0);
    prepare_large(&huge, 5 << 20); /* 20 MiB: a block of its own */
    ck_assert_int_ne(is_huge((char *)huge.array.tensor.data + (20L << 20) - 1), 0);
    khub__prepared_free(&one);
    ck_assert_mem_eq(second, weights, sizeof(weights)); /* what the other one lies in is still there */
    khub__prepared_free(&other);
    khub__prepared_free(&huge);
    khub__shelf_give_up(last);
    last = NULL;
}
END_TEST

UNIT("prepare", large_ones_lie_side_by_side_in_huge_pages, as_agreed,
     what_the_second_call_does_to_the_struct_is_lost, shapes_that_make_no_sense, a_call_that_fails,
     nothing_to_fill)
