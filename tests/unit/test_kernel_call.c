/* Calling functions of a library, and what comes back: tests/fake/README.md says what each function does. */
#include "fakes.h"

START_TEST(tensors_in_and_out)
{
    khub_kernel *kernel = fake_get("good");
    khub_function add_one = fake_function(kernel, "add_one");
    float x[6] = {0, 1, 2, 3, 4, -5}, y[6] = {0};
    int64_t shape[] = {2, 3};
    khub_tensor in = khub_tensor_f32(x, 2, shape), out = khub_tensor_f32(y, 2, shape);
    khub_error err = {0};
    ck_khub_ok(khub_call(&add_one, &err, khub_arg_tensor(&out), khub_arg_tensor(&in)), &err);
    for (int i = 0; i < 6; i++)
        ck_assert_float_eq(y[i], x[i] + 1);
    ck_khub_fails(khub_call(&add_one, &err, khub_arg_tensor(&out), khub_arg_int(1)), &err, KHUB_E_KERNEL,
                  "TypeError: the second argument must be a float32 tensor");
    khub_kernel_close(kernel);
}
END_TEST

START_TEST(every_kind_of_argument_and_result)
{
    khub_kernel *kernel = fake_get("good");
    khub_error err = {0};
    khub_value result;
    khub_function f = fake_function(kernel, "forty_two");
    ck_khub_ok(khub_function_call(&f, NULL, 0, &result, &err), &err);
    ck_assert(result.type == KHUB_TYPE_INT && result.as.i64 == 42);
    f = fake_function(kernel, "half");
    khub_value arg = khub_arg_float(5);
    ck_khub_ok(khub_function_call(&f, &arg, 1, &result, &err), &err);
    ck_assert(result.type == KHUB_TYPE_FLOAT && result.as.f64 == 2.5);
    f = fake_function(kernel, "negate");
    arg = khub_arg_bool(1);
    ck_khub_ok(khub_function_call(&f, &arg, 1, &result, &err), &err);
    ck_assert(result.type == KHUB_TYPE_BOOL && result.as.i64 == 0);
    f = fake_function(kernel, "nothing");
    ck_khub_ok(khub_function_call(&f, &arg, 1, &result, &err), &err);
    ck_assert_int_eq(result.type, KHUB_TYPE_NONE);
    f = fake_function(kernel, "first_argument_kind");
    arg = khub_arg_none();
    ck_khub_ok(khub_function_call(&f, &arg, 1, &result, &err), &err);
    ck_assert_int_eq(result.as.i64, 0);
    khub_kernel_close(kernel);
}
END_TEST

START_TEST(texts_short_and_long)
{
    khub_kernel *kernel = fake_get("good");
    khub_error err = {0};
    khub_value result;
    size_t n;
    khub_function f = fake_function(kernel, "short_text");
    ck_khub_ok(khub_function_call(&f, NULL, 0, &result, &err), &err);
    ck_assert_int_eq(result.type, KHUB_TYPE_SMALL_STR);
    ck_assert_str_eq(khub_value_text(&result, &n), "seven b");
    ck_assert_uint_eq(n, 7);
    khub_value_release(&result);
    f = fake_function(kernel, "repeat");
    khub_value arg = khub_arg_string("kernel ");
    ck_khub_ok(khub_function_call(&f, &arg, 1, &result, &err), &err);
    ck_assert_int_eq(result.type, KHUB_TYPE_STR);
    ck_assert_str_eq(khub_value_text(&result, &n), "kernel kernel ");
    ck_assert_uint_eq(n, 14);
    khub_value_release(&result);
    ck_assert_int_eq(result.type, KHUB_TYPE_NONE);
    ck_assert_ptr_null(khub_value_text(&result, &n));
    khub_value_release(&result); /* a second time is a no-op */
    khub_kernel_close(kernel);
}
END_TEST

static int64_t ones_alive(const khub_kernel *kernel)
{
    khub_function f = fake_function(kernel, "ones_alive");
    khub_error err = {0};
    khub_value result;
    ck_khub_ok(khub_function_call(&f, NULL, 0, &result, &err), &err);
    return result.as.i64;
}

START_TEST(tensors_that_come_back_are_released)
{
    khub_kernel *kernel = fake_get("good");
    khub_function ones = fake_function(kernel, "ones"), fails = fake_function(kernel, "fail_with_result");
    khub_error err = {0};
    khub_value result, three = khub_arg_int(3);
    ck_khub_ok(khub_function_call(&ones, &three, 1, &result, &err), &err);
    const khub_tensor *t = khub_value_tensor(&result);
    ck_assert_ptr_nonnull(t);
    ck_assert_int_eq(t->ndim, 1);
    ck_assert_int_eq(t->shape[0], 3);
    for (int i = 0; i < 3; i++)
        ck_assert_float_eq(((const float *)t->data)[i], 1);
    ck_assert_int_eq(ones_alive(kernel), 1);
    khub_value_release(&result);
    ck_assert_int_eq(ones_alive(kernel), 0);
    ck_khub_ok(khub_function_call(&ones, &three, 1, NULL, &err), &err); /* not wanted */
    ck_assert_int_eq(ones_alive(kernel), 0);
    /* M3: the result slot is released when a call fails */
    ck_khub_fails(khub_function_call(&fails, NULL, 0, &result, &err), &err, KHUB_E_KERNEL,
                  "failed, with a result");
    ck_assert_int_eq(result.type, KHUB_TYPE_NONE);
    ck_assert_int_eq(ones_alive(kernel), 0);
    khub_kernel_close(kernel);
}
END_TEST

START_TEST(M3_errors_arrive)
{
    khub_kernel *kernel = fake_get("good");
    khub_function fail = fake_function(kernel, "fail"), silent = fake_function(kernel, "fail_silently");
    khub_function stale = fake_function(kernel, "succeed_after_error");
    khub_error err = {0};
    ck_khub_fails(khub_call(&fail, &err, khub_arg_string("IndexError"), khub_arg_string("row 7 of 3")), &err,
                  KHUB_E_KERNEL, "IndexError: row 7 of 3");
    ck_khub_fails(khub_function_call(&silent, NULL, 0, NULL, &err), &err, KHUB_E_KERNEL,
                  "failed without a message");
    khub_value result;
    ck_khub_ok(khub_function_call(&stale, NULL, 0, &result, &err), &err);
    ck_assert_int_eq(result.as.i64, 1);
    ck_assert_str_eq(err.message, "");
    khub_kernel_close(kernel);
}
END_TEST

START_TEST(M3_the_newest_error_is_the_one)
{
    khub_kernel *kernel = fake_get("good");
    khub_function fail = fake_function(kernel, "fail"), stale = fake_function(kernel, "succeed_after_error");
    khub_error err = {0};
    khub_value result;
    khub_raise("ValueError", "raised here, taken by nobody");
    ck_khub_fails(khub_call(&fail, &err, khub_arg_string("IndexError"), khub_arg_string("later")), &err,
                  KHUB_E_KERNEL, "IndexError: later");
    ck_khub_ok(khub_function_call(&stale, NULL, 0, &result, &err), &err);
    khub_raise("ValueError", "raised here, later");
    ck_khub_fails(khub__function_settle(-1, &result, 1, &err), &err, KHUB_E_KERNEL,
                  "ValueError: raised here, later");
    ck_khub_fails(khub__function_settle(-1, &result, 1, &err), &err, KHUB_E_KERNEL, "without a message");
    khub_kernel_close(kernel);
}
END_TEST

START_TEST(M3_long_errors_are_cut)
{
    khub_kernel *kernel = fake_get("good");
    khub_function fail = fake_function(kernel, "fail");
    char *text = calloc(1, 1000001);
    memset(text, 'y', 1000000);
    khub_error err = {0};
    ck_khub_fails(khub_call(&fail, &err, khub_arg_string(text), khub_arg_string(text)), &err, KHUB_E_KERNEL,
                  "yyy: yyy");
    free(text);
    khub_kernel_close(kernel);
}
END_TEST

UNIT("kernel_call", tensors_in_and_out, every_kind_of_argument_and_result, texts_short_and_long,
     tensors_that_come_back_are_released, M3_errors_arrive, M3_the_newest_error_is_the_one,
     M3_long_errors_are_cut)
