/* Slots on a GPU: by the driver of tests/drivers, with the kernels of tests/fake. */
#include "unit.h"

#include "drivers/stream.h"

#include <khub/layer.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static khub_platform *fake_machine(void)
{
    char json[4096];
    khub_platform *platform;
    khub_error err = {0};
    snprintf(
        json, sizeof(json),
        "{\"os\":\"linux\",\"arch\":\"x86_64\",\"backend\":\"cu130\",\"tvm_ffi\":\"0.1\",\"archs\":[\"9.0\"],"
        "\"accelerators\":[{\"backend\":\"cuda\",\"presence\":\"found\",\"version\":\"13.0\",\"path\":\"%s/"
        "tests/"
        "drivers/libcuda.so.1\",\"devices\":[{\"name\":\"Fake Hopper\",\"arch\":\"9.0\"},"
        "{\"name\":\"Fake Hopper\",\"arch\":\"9.0\"}]}]}",
        getenv("KHUB_BINARY"));
    ck_khub_ok(khub_platform_parse(&platform, json, strlen(json), "fake", &err), &err);
    return platform;
}

/* "LAYER=REPOSITORY" of tests/fake, one after the other up to NULL. */
static khub_mapping *map(const char *const *layers)
{
    khub_mapping *mapping;
    khub_error err = {0};
    ck_khub_ok(khub_mapping_new(&mapping, &err), &err);
    for (; *layers; layers += 2) {
        char path[4096];
        khub_mapping_entry entry;
        KHUB_INIT(&entry);
        snprintf(path, sizeof(path), "%s/tests/fake/repos/%s", getenv("KHUB_BINARY"), layers[1]);
        entry.kernel = path;
        ck_khub_ok(khub_mapping_set(mapping, layers[0], &entry, &err), &err);
    }
    return mapping;
}

/* What the test's model is. */
static struct {
    khub_platform *platform;
    khub_gpu *gpu;
    khub_layers *layers;
    khub_report *report;
} model;

static void open_model(void)
{
    khub_error err = {0};
    model.platform = fake_machine();
    ck_khub_ok(khub_gpu_open(&model.gpu, "cuda:1", model.platform, &err), &err);
    ck_khub_ok(khub_layers_new(&model.layers, &err), &err);
}

static void close_model(void)
{
    khub_report_free(model.report);
    khub_layers_free(model.layers);
    khub_gpu_close(model.gpu);
    khub_platform_free(model.platform);
    memset(&model, 0, sizeof(model));
}

static void kernelize(const char *const *layers, const khub_kernelize_options *more)
{
    khub_error err = {0};
    khub_kernelize_options options;
    KHUB_INIT(&options);
    if (more) options = *more;
    khub_mapping *mapping = map(layers);
    options.mapping = mapping;
    options.platform = model.platform;
    khub_report_free(model.report);
    ck_khub_ok(khub_kernelize(model.layers, &options, &model.report, &err), &err);
    khub_mapping_free(mapping);
}

static const char *reason(size_t i)
{
    const khub_slot_report *line = khub_report_at(model.report, i);
    return line->reason ? line->reason : "";
}

static void put(khub_gpu_array *array, const float *numbers, int32_t ndim, const int64_t *shape)
{
    khub_error err = {0};
    const khub_tensor from = khub_tensor_f32((float *)(uintptr_t)numbers, ndim, shape);
    ck_khub_ok(khub_gpu_array_new(array, model.gpu, &from, &err), &err);
    ck_khub_ok(khub_gpu_put(model.gpu, &array->tensor, &from, &err), &err);
}

static void fetch(float *numbers, const khub_gpu_array *array)
{
    khub_error err = {0};
    const khub_tensor to = khub_tensor_f32(numbers, array->tensor.ndim, array->tensor.shape);
    ck_khub_ok(khub_gpu_take(model.gpu, &to, &array->tensor, &err), &err);
    ck_khub_ok(khub_gpu_synchronize(model.gpu, &err), &err);
}

/* The program's own function of a layer, for tensors of the device. */
static int own_calls;
static int own(void *self, const khub_value *args, int32_t n, khub_value *result)
{
    (void)self, (void)args, (void)n, (void)result;
    own_calls++;
    return 0;
}

static khub_slot *add(const char *path, const char *layer, khub_gpu *gpu)
{
    khub_slot *slot;
    khub_slot_options options;
    khub_error err = {0};
    KHUB_INIT(&options);
    options.gpu = gpu;
    options.dtype = khub_dtype_of(KHUB_DTYPE_FLOAT, 32);
    ck_khub_ok(khub_layers_add(model.layers, path, layer, (khub_function){own, NULL}, &options, &slot, &err),
               &err);
    return slot;
}

static const int64_t rows[] = {2, 4}, width[] = {4};
static const float x[8] = {-1, 2, -3, 4, 1, 1, 1, 1}, weight[4] = {1, 2, 3, 4};

/* A weight is prepared in the device's memory, calls are on its stream, and what no kernel serves is the
 * program's. */
START_TEST(a_model_on_a_gpu)
{
    khub_gpu_array out, in, w;
    khub_error err = {0};
    float got[8];
    open_model();
    khub_slot *relu = add("relu", "ReLU", model.gpu), *norm = add("norm", "RMSNorm", model.gpu),
              *softmax = add("softmax", "Softmax", model.gpu);
    put(&w, weight, 1, width);
    put(&in, x, 2, rows);
    put(&out, x, 2, rows);
    ck_khub_ok(khub_slot_bind(norm, "weight", &w.tensor, &err), &err);
    kernelize((const char *const[]){"ReLU", "gpu_liar_honest", "RMSNorm", "gpu", NULL}, NULL);
    ck_assert_str_eq(reason(0), "");
    ck_assert_str_eq(reason(1), "");
    ck_assert_uint_eq(khub_report_filled(model.report), 2);
    const khub_value of_relu[] = {khub_arg_tensor(&out.tensor), khub_arg_tensor(&in.tensor)};
    ck_khub_ok(khub_slot_call(relu, of_relu, 2, &err), &err);
    fetch(got, &out);
    for (int i = 0; i < 8; i++)
        ck_assert_float_eq(got[i], x[i] > 0 ? x[i] : 0);
    const khub_value of_norm[] = {of_relu[0], of_relu[1], khub_arg_tensor(&w.tensor), khub_arg_float(0)};
    ck_khub_ok(khub_slot_call(norm, of_norm, 4, &err), &err);
    fetch(got, &out);
    for (int i = 0; i < 4; i++) {
        ck_assert_float_eq_tol(got[i], x[i] / sqrtf(7.5f) * weight[i], 1e-5f);
        ck_assert_float_eq(got[4 + i], weight[i]);
    }
    ck_khub_ok(khub_slot_call(softmax, of_relu, 2, &err), &err);
    ck_assert_int_eq(own_calls, 1);
    khub_gpu_array_free(&out);
    khub_gpu_array_free(&in);
    khub_gpu_array_free(&w);
    close_model();
}
END_TEST

START_TEST(a_late_error_is_the_kernel_s)
{
    enum { MANY = 600 };
    static const int64_t many[] = {MANY};
    static const float zeros[MANY];
    khub_gpu_array out, in;
    khub_error err = {0};
    khub_kernelize_options options;
    KHUB_INIT(&options);
    open_model();
    options.gpu = model.gpu; /* of slots that say nothing */
    khub_slot *relu = add("relu", "ReLU", NULL);
    put(&in, zeros, 1, many);
    put(&out, zeros, 1, many);
    kernelize((const char *const[]){"ReLU", "gpu_liar_illegal", NULL}, &options);
    const khub_value args[] = {khub_arg_tensor(&out.tensor), khub_arg_tensor(&in.tensor)};
    ck_khub_ok(khub_slot_call(relu, args, 2, &err), &err);
    ck_khub_fails(khub_gpu_synchronize(model.gpu, &err), &err, KHUB_E_KERNEL,
                  "gpu_liar_illegal:relu: failed on cuda:1 after the call had returned");
    ck_khub_fails(khub_slot_call(relu, args, 2, &err), &err, KHUB_E_KERNEL, "can't use the device any more");
    khub_gpu_array_free(&out);
    khub_gpu_array_free(&in);
    close_model();
}
END_TEST

/* Builds for the CPU stay out of a GPU's slots, and a slot of a second device has its own stream. */
START_TEST(what_a_slot_s_device_decides)
{
    khub_gpu *other;
    khub_gpu_array out, in;
    khub_error err = {0};
    float got[8];
    khub_slot_options options;
    open_model();
    ck_khub_ok(khub_gpu_open(&other, "cuda:0", model.platform, &err), &err);
    khub_slot *here = add("here", "ReLU", model.gpu), *there = add("there", "ReLU", other);
    add("gelu", "GeLU", model.gpu);
    kernelize((const char *const[]){"ReLU", "gpu_liar_honest", "GeLU", "good", NULL}, NULL);
    ck_assert(khub_slot_is_served(here) && khub_slot_is_served(there));
    ck_assert(khub_slot_filling(here) != khub_slot_filling(there));
    ck_assert_ptr_nonnull(strstr(reason(2), "no build fits"));
    put(&in, x, 2, rows);
    put(&out, x, 2, rows);
    const khub_value args[] = {khub_arg_tensor(&out.tensor), khub_arg_tensor(&in.tensor)};
    ck_khub_ok(khub_slot_call(here, args, 2, &err), &err);
    fetch(got, &out);
    ck_assert_float_eq(got[0], 0);
    ck_khub_fails(khub_slot_call(there, args, 2, &err), &err, KHUB_E_KERNEL,
                  "no stream was set"); /* for cuda:1 */
    KHUB_INIT(&options);
    options.gpu = other;
    options.device = "cpu";
    ck_khub_fails(
        khub_layers_add(model.layers, "wrong", "ReLU", (khub_function){own, NULL}, &options, NULL, &err),
        &err, KHUB_E_INVAL, "wrong: the device is \"cpu\", and the GPU is cuda:0");
    khub_gpu_array_free(&out);
    khub_gpu_array_free(&in);
    khub_standardize(model.layers);
    khub_gpu_close(other);
    close_model();
}
END_TEST

/* An engine has a stream already, on which its own functions are. */
START_TEST(the_program_s_stream)
{
    khub_gpu *of_engine;
    khub_gpu_array out, in;
    khub_error err = {0};
    open_model();
    ck_khub_ok(khub_gpu_open(&of_engine, "cuda:1", model.platform, &err), &err);
    fake_stream *stream = khub_gpu_stream(of_engine);
    ck_khub_ok(khub_gpu_use_stream(model.gpu, stream, &err), &err);
    khub_slot *relu = add("relu", "ReLU", model.gpu);
    kernelize((const char *const[]){"ReLU", "gpu_liar_honest", NULL}, NULL);
    put(&in, x, 2, rows);
    put(&out, x, 2, rows);
    ck_assert_ptr_nonnull(stream->first); /* copies wait there, and the kernel for them */
    const khub_value args[] = {khub_arg_tensor(&out.tensor), khub_arg_tensor(&in.tensor)};
    ck_khub_ok(khub_slot_call(relu, args, 2, &err), &err);
    ck_assert_ptr_null(stream->first);
    ck_khub_ok(khub_gpu_use_stream(model.gpu, NULL, &err), &err);
    ck_assert_ptr_ne(khub_gpu_stream(model.gpu), stream);
    khub_gpu_array_free(&out);
    khub_gpu_array_free(&in);
    close_model();
    khub_gpu_close(of_engine);
}
END_TEST

UNIT("gpu_layers", a_model_on_a_gpu, a_late_error_is_the_kernel_s, what_a_slot_s_device_decides,
     the_program_s_stream)
