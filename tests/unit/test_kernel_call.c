/* Calling functions of a library, and what comes back: tests/fake/README.md says what each function does. */
#include "fakes.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>

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

/* The stream of device (CUDA, 0) that kernels see in this thread. */
static int64_t stream_now(void *self)
{
    const khub_value device[2] = {khub_arg_int(KHUB_DEVICE_CUDA), khub_arg_int(0)};
    khub_error err = {0};
    khub_value result;
    ck_khub_ok(khub_function_call(self, device, 2, &result, &err), &err);
    return result.as.i64;
}

static void *stream_elsewhere(void *self)
{
    return (void *)(uintptr_t)stream_now(self);
}

/* A function of one's own: looks at the stream here and in another thread; fails on request. */
static int64_t seen_here, seen_elsewhere;
static int look_at_streams(void *self, const khub_value *args, int32_t n, khub_value *result)
{
    pthread_t thread;
    void *elsewhere;
    (void)n;
    seen_here = stream_now(self);
    ck_assert_int_eq(pthread_create(&thread, NULL, stream_elsewhere, self), 0);
    pthread_join(thread, &elsewhere);
    seen_elsewhere = (int64_t)(uintptr_t)elsewhere;
    *result = khub_arg_int(1);
    return args[0].as.i64 ? khub_raise("ValueError", "on request") : 0;
}

START_TEST(M1_the_stream_of_a_call)
{
    khub_kernel *kernel = fake_get("good");
    khub_function stream = fake_function(kernel, "stream"), look = {look_at_streams, &stream};
    const khub_device cuda = {KHUB_DEVICE_CUDA, 0}, second = {KHUB_DEVICE_CUDA, 1};
    void *beef = (void *)(uintptr_t)0xBEEF, *outer = (void *)(uintptr_t)0xF00D;
    const khub_value fine[2] = {khub_arg_int(0), khub_arg_none()},
                     bad[2] = {khub_arg_int(1), khub_arg_none()};
    khub_error err = {0};
    khub_value result;
    for (int failing = 0; failing < 2; failing++) {
        int rc = khub_function_call_on(&look, cuda, beef, failing ? bad : fine, 2, &result, &err);
        ck_assert_int_eq(rc, failing ? KHUB_E_KERNEL : KHUB_OK);
        ck_assert_int_eq(seen_here, 0xBEEF);
        ck_assert_int_eq(seen_elsewhere, 0);
        ck_assert_int_eq(result.type, failing ? KHUB_TYPE_NONE : KHUB_TYPE_INT);
        ck_assert_int_eq(stream_now(&stream), 0);
    }
    ck_assert_str_eq(err.message, "ValueError: on request");
    khub_error_clear(&err);
    /* another device's stream is another; the kernel's own failure; what was there before comes back */
    ck_khub_ok(khub_function_call_on(&look, second, beef, fine, 2, NULL, &err), &err);
    ck_assert_int_eq(seen_here, 0);
    ck_khub_fails(khub_function_call_on(&stream, cuda, beef, fine, 1, NULL, &err), &err, KHUB_E_KERNEL,
                  "TypeError: stream takes a device type and an id");
    ck_assert_int_eq(stream_now(&stream), 0);
    int (*set)(int32_t, int32_t, void *, void **);
    *(void **)&set = dlsym(RTLD_DEFAULT, "TVMFFIEnvSetStream");
    ck_assert_int_eq(set(KHUB_DEVICE_CUDA, 0, outer, NULL), 0);
    ck_khub_ok(khub_function_call_on(&look, cuda, beef, fine, 2, NULL, &err), &err);
    ck_assert_int_eq(seen_here, 0xBEEF);
    ck_assert_int_eq(stream_now(&stream), 0xF00D);
    khub_kernel_close(kernel);
}
END_TEST

START_TEST(no_stream_without_a_kernel)
{
    khub_function never = {look_at_streams, NULL};
    khub_error err = {0};
    ck_khub_fails(
        khub_function_call_on(&never, (khub_device){KHUB_DEVICE_CUDA, 0}, NULL, NULL, 0, NULL, &err), &err,
        KHUB_E_UNSUPPORTED, "no kernel was loaded");
}
END_TEST

UNIT("kernel_call", tensors_in_and_out, every_kind_of_argument_and_result, texts_short_and_long,
     tensors_that_come_back_are_released, M3_errors_arrive, M3_the_newest_error_is_the_one,
     M3_long_errors_are_cut, M1_the_stream_of_a_call, no_stream_without_a_kernel)
