/* A GPU through libkhub's functions, by the driver of tests/drivers. */
#include "unit.h"

#include "drivers/stream.h"
#include "kernel/runtime.h"

#include <khub/gpu.h>

#include <stdio.h>
#include <stdlib.h>

/* A machine with both kinds. */
static int open_gpu(khub_gpu **gpu, const char *name, khub_error *err)
{
    char json[4096];
    khub_platform *platform;
    const char *binary = getenv("KHUB_BINARY");
    snprintf(
        json, sizeof(json),
        "{\"os\":\"linux\",\"arch\":\"x86_64\",\"backend\":\"cu130\",\"tvm_ffi\":\"0.1\",\"accelerators\":["
        "{\"backend\":\"cuda\",\"presence\":\"found\",\"version\":\"13.0\",\"path\":\"%s/tests/drivers/"
        "libcuda.so.1\"},"
        "{\"backend\":\"rocm\",\"presence\":\"found\",\"version\":\"6.4\",\"path\":\"%s/tests/drivers/"
        "libamdhip64.so.6\"}]}",
        binary, binary);
    ck_khub_ok(khub_platform_parse(&platform, json, strlen(json), "fake", err), err);
    int rc = khub_gpu_open(gpu, name, platform, err);
    khub_platform_free(platform);
    return rc;
}

/* What a kernel does: all that is on the stream comes first. `self` is the GPU. */
static int works(void *self, const khub_value *args, int32_t n, khub_value *result)
{
    (void)args, (void)n, (void)result;
    stream_flush(khub_gpu_stream(self));
    return 0;
}

static int breaks(void *self, const khub_value *args, int32_t n, khub_value *result)
{
    fake_stream *stream = khub_gpu_stream(self);
    works(self, args, n, result);
    if (!stream->fault) stream->fault = 700;
    return 0;
}

static void call(khub_gpu *gpu, const char *what, khub_call_fn f)
{
    khub_error err = {0};
    const khub_function function = {f, gpu};
    ck_khub_ok(khub_gpu_call(gpu, what, &function, NULL, 0, NULL, &err), &err);
}

START_TEST(the_first_that_failed_is_named)
{
    khub_gpu *gpu;
    khub_error err = {0};
    float x = 1;
    const khub_tensor one = khub_tensor_f32(&x, 0, NULL);
    khub_gpu_array array;
    ck_khub_ok(khub__runtime_open(&err), &err);
    ck_khub_ok(open_gpu(&gpu, "cuda:1", &err), &err);
    ck_assert_str_eq(khub_gpu_name(gpu), "cuda:1");
    ck_assert_int_eq(khub_gpu_device(gpu).id, 1);
    for (int i = 0; i < 100; i++) /* more than are kept */
        call(gpu, i % 2 ? "odd" : "even", works);
    ck_khub_ok(khub_gpu_synchronize(gpu, &err), &err);
    call(gpu, "works", works);
    call(gpu, "breaks", breaks);
    call(gpu, "breaks", works);
    call(gpu, "comes later", works);
    ck_khub_fails(khub_gpu_synchronize(gpu, &err), &err, KHUB_E_KERNEL,
                  "breaks: failed on cuda:1 after the call had returned: CUDA_ERROR_ILLEGAL_ADDRESS (700)");
    ck_khub_fails(khub_gpu_array_new(&array, gpu, &one, &err), &err, KHUB_E_KERNEL,
                  "breaks: failed on cuda:1");
    khub_gpu_close(gpu);
}
END_TEST

START_TEST(time_between_events)
{
    khub_gpu *gpu;
    khub_gpu_event *start, *end;
    khub_error err = {0};
    double ms = -1;
    ck_khub_ok(open_gpu(&gpu, "cuda", &err), &err);
    ck_khub_ok(khub_gpu_event_new(&start, gpu, &err), &err);
    ck_khub_ok(khub_gpu_event_new(&end, gpu, &err), &err);
    ck_khub_fails(khub_gpu_event_elapsed(&ms, start, end, &err), &err, KHUB_E_KERNEL, "(400)");
    ck_khub_ok(khub_gpu_event_record(start, &err), &err);
    ck_khub_ok(khub_gpu_event_record(end, &err), &err);
    ck_khub_ok(khub_gpu_event_elapsed(&ms, start, end, &err), &err);
    ck_assert(ms == 1.5); /* as the driver says */
    khub_gpu_event_free(start);
    khub_gpu_event_free(end);
    khub_gpu_close(gpu);
}
END_TEST

START_TEST(rocm_is_alike)
{
    khub_gpu *gpu;
    khub_gpu_event *start, *end;
    khub_error err = {0};
    float x[2] = {1, 2}, back[2] = {0};
    double ms = -1;
    const int64_t two = 2, much = 1000000;
    const khub_tensor from = khub_tensor_f32(x, 1, &two), to = khub_tensor_f32(back, 1, &two);
    const khub_tensor large = khub_tensor_f32(NULL, 1, &much);
    khub_gpu_array array, none;
    ck_khub_ok(khub__runtime_open(&err), &err);
    ck_khub_ok(open_gpu(&gpu, "rocm:1", &err), &err);
    ck_assert_int_eq(khub_gpu_device(gpu).type, KHUB_DEVICE_ROCM);
    ck_khub_fails(khub_gpu_array_new(&none, gpu, &large, &err), &err, KHUB_E_NOMEM,
                  "rocm:1: allocating 4000000 bytes: hipErrorOutOfMemory (2)");
    ck_khub_ok(khub_gpu_array_new(&array, gpu, &from, &err), &err);
    ck_khub_ok(khub_gpu_event_new(&start, gpu, &err), &err);
    ck_khub_ok(khub_gpu_event_new(&end, gpu, &err), &err);
    ck_khub_ok(khub_gpu_event_record(start, &err), &err);
    ck_khub_ok(khub_gpu_put(gpu, &array.tensor, &from, &err), &err);
    ck_khub_ok(khub_gpu_take(gpu, &to, &array.tensor, &err), &err);
    ck_khub_ok(khub_gpu_event_record(end, &err), &err);
    ck_khub_ok(khub_gpu_synchronize(gpu, &err), &err);
    ck_khub_ok(khub_gpu_event_elapsed(&ms, start, end, &err), &err);
    ck_assert(back[0] == 1 && back[1] == 2 && ms == 1.5);
    khub_gpu_event_free(start);
    khub_gpu_event_free(end);
    call(gpu, "works", works);
    call(gpu, "breaks", breaks);
    ck_khub_fails(khub_gpu_synchronize(gpu, &err), &err, KHUB_E_KERNEL,
                  "breaks: failed on rocm:1 after the call had returned: hipErrorIllegalAddress (700)");
    khub_gpu_array_free(&array);
    khub_gpu_close(gpu);
}
END_TEST

static const int64_t two[] = {2};

static void hold(khub_gpu_array *array, khub_gpu *gpu, const float *numbers)
{
    khub_error err = {0};
    const khub_tensor from = khub_tensor_f32((float *)(uintptr_t)numbers, 1, two);
    ck_khub_ok(khub_gpu_array_new(array, gpu, &from, &err), &err);
    ck_khub_ok(khub_gpu_put(gpu, &array->tensor, &from, &err), &err);
}

static void expect(khub_gpu *gpu, const khub_gpu_array *array, float first)
{
    khub_error err = {0};
    float back[2];
    const khub_tensor to = khub_tensor_f32(back, 1, two);
    ck_khub_ok(khub_gpu_take(gpu, &to, &array->tensor, &err), &err);
    ck_khub_ok(khub_gpu_synchronize(gpu, &err), &err);
    ck_assert_float_eq(back[0], first);
    ck_assert_float_eq(back[1], first + 1);
}

/* Each device has its own stream, so what is on the other's must be waited for. */
START_TEST(from_device_to_device)
{
    static const float one[] = {1, 2}, five[] = {5, 6};
    static const char *const names[][2] = {{"cuda:0", "cuda:1"}, {"rocm:0", "rocm:1"}};
    for (size_t i = 0; i < 2; i++) {
        khub_gpu *a, *b;
        khub_gpu_array here, there, again;
        khub_error err = {0};
        ck_khub_ok(open_gpu(&a, names[i][0], &err), &err);
        ck_khub_ok(open_gpu(&b, names[i][1], &err), &err);
        hold(&here, a, one);
        hold(&again, a, five);
        hold(&there, b, five);
        ck_khub_ok(khub_gpu_copy(b, &there.tensor, a, &here.tensor, &err), &err);
        ck_khub_ok(khub_gpu_copy(a, &again.tensor, a, &here.tensor, &err), &err);
        expect(b, &there, 1);
        expect(a, &again, 1);
        khub_gpu_array_free(&here);
        khub_gpu_array_free(&there);
        khub_gpu_array_free(&again);
        khub_gpu_close(a);
        khub_gpu_close(b);
    }
}
END_TEST

START_TEST(what_cant_be_copied_over)
{
    static const float one[] = {1, 2};
    khub_gpu *a, *b;
    khub_gpu_array here, there;
    khub_error err = {0};
    ck_khub_ok(open_gpu(&a, "cuda", &err), &err);
    ck_khub_ok(open_gpu(&b, "rocm", &err), &err);
    hold(&here, a, one);
    hold(&there, b, one);
    ck_khub_fails(khub_gpu_copy(b, &there.tensor, a, &here.tensor, &err), &err, KHUB_E_INVAL,
                  "from cuda:0 to rocm:0, which have other drivers");
    const int64_t one_extent = 1;
    there.tensor.shape = (int64_t *)(uintptr_t)&one_extent;
    ck_khub_fails(khub_gpu_copy(b, &there.tensor, b, &here.tensor, &err), &err, KHUB_E_INVAL, "of one size");
    khub_gpu_array_free(&here);
    khub_gpu_array_free(&there);
    khub_gpu_close(a);
    khub_gpu_close(b);
}
END_TEST

START_TEST(names_that_are_none)
{
    khub_gpu *gpu;
    khub_error err = {0};
    static const char *const names[] = {
        "", "gpu", "cuda:", "cuda:-1", "cuda:1x", "cuda:99999999999999999999", ":0"};
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        ck_khub_fails(open_gpu(&gpu, names[i], &err), &err, KHUB_E_INVAL, "isn't the name of a device");
    ck_khub_fails(open_gpu(&gpu, "cuda:2", &err), &err, KHUB_E_NOTFOUND, "the driver has 2");
    ck_khub_fails(open_gpu(&gpu, "xpu", &err), &err, KHUB_E_UNSUPPORTED, "xpu");
    ck_assert_ptr_null(gpu);
    khub_gpu_close(NULL);
    khub_gpu_array_free(NULL);
    khub_gpu_event_free(NULL);
}
END_TEST

UNIT("gpu", the_first_that_failed_is_named, time_between_events, rocm_is_alike, from_device_to_device,
     what_cant_be_copied_over, names_that_are_none)
