/* A GPU through libkhub's functions, by the driver of tests/drivers. */
#include "unit.h"

#include "drivers/stream.h"
#include "kernel/runtime.h"

#include <khub/gpu.h>

#include <stdio.h>
#include <stdlib.h>

static int open_gpu(khub_gpu **gpu, const char *name, khub_error *err)
{
    char json[4096];
    khub_platform *platform;
    int is_rocm = !strncmp(name, "rocm", 4);
    snprintf(
        json, sizeof(json),
        "{\"os\":\"linux\",\"arch\":\"x86_64\",\"backend\":\"%s\",\"tvm_ffi\":\"0.1\",\"accelerators\":"
        "[{\"backend\":\"%s\",\"presence\":\"found\",\"version\":\"%s\",\"path\":\"%s/tests/drivers/%s\"}]}",
        is_rocm ? "rocm64" : "cu130", is_rocm ? "rocm" : "cuda", is_rocm ? "6.4" : "13.0",
        getenv("KHUB_BINARY"), is_rocm ? "libamdhip64.so.6" : "libcuda.so.1");
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

UNIT("gpu", the_first_that_failed_is_named, time_between_events, rocm_is_alike, names_that_are_none)
