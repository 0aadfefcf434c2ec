/* What the built-in kernels say when a call doesn't fit, and what they say about themselves. */
#include "kernels.h"

static library norm, activation, rotary;

/* out and x (2, 3, 8), weight and bias (8), float32, over memory that is never reached by a call that fails.
 */
static float memory[4][64];
static int64_t shape[3] = {2, 3, 8}, n8[1] = {8};
static khub_tensor out, x, weight;

static void setup(void)
{
    if (!norm.handle) {
        norm = library_open("norm", NULL);
        activation = library_open("activation", NULL);
        rotary = library_open("rotary", NULL);
    }
    out = khub_tensor_f32(memory[0], 3, shape);
    x = khub_tensor_f32(memory[1], 3, shape);
    weight = khub_tensor_f32(memory[2], 1, n8);
    for (int i = 0; i < 64; i++)
        memory[0][i] = memory[1][i] = memory[2][i] = 1;
}

#define NORM_ARGS         khub_arg_tensor(&out), khub_arg_tensor(&x), khub_arg_tensor(&weight)
#define norm_fails(words) ck_kernel_fails(words, &norm, "rms_norm", NORM_ARGS, khub_arg_float(1e-5))

START_TEST(number_of_arguments)
{
    setup();
    ck_kernel_fails("TypeError: rms_norm: 3 arguments given, 4 expected: out, x, weight, eps", &norm,
                    "rms_norm", NORM_ARGS);
    ck_kernel_fails("TypeError: relu: 3 arguments given, 2 expected: out, x", &activation, "relu", NORM_ARGS);
    char words[1024];
    ck_assert_int_eq(call_kernel(&activation, "relu", NULL, 0, words), -1);
    ck_assert_str_eq(words, "TypeError: relu: 0 arguments given, 2 expected: out, x");
}
END_TEST

START_TEST(types_of_arguments)
{
    static const struct {
        khub_value eps;
        const char *words;
    } table[] = {
        {{.type = KHUB_TYPE_NONE}, "TypeError: rms_norm: eps is None, a float is expected"},
        {{.type = KHUB_TYPE_CSTRING}, "TypeError: rms_norm: eps is a string, a float is expected"},
        {{.type = KHUB_TYPE_BOOL, .as.i64 = 1}, "TypeError: rms_norm: eps is a bool, a float is expected"},
        {{.type = KHUB_TYPE_MAP}, "TypeError: rms_norm: eps is something else, a float is expected"},
        {{.type = KHUB_TYPE_TENSOR_VIEW}, "TypeError: rms_norm: eps is a tensor, a float is expected"},
    };
    setup();
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
        ck_kernel_fails(table[i].words, &norm, "rms_norm", NORM_ARGS, table[i].eps);
    ck_kernel_ok(&norm, "rms_norm", NORM_ARGS, khub_arg_int(1)); /* as tvm-ffi converts it */
    ck_kernel_fails("TypeError: rms_norm: x is None, a tensor is expected", &norm, "rms_norm",
                    khub_arg_tensor(&out), khub_arg_none(), khub_arg_tensor(&weight), khub_arg_float(1));
    ck_kernel_fails("TypeError: layer_norm: bias is a float, a tensor or None is expected", &norm,
                    "layer_norm", NORM_ARGS, khub_arg_float(1), khub_arg_float(1));
}
END_TEST

START_TEST(dtypes)
{
    static const struct {
        khub_dtype dtype;
        const char *out_words, *x_words;
    } table[] = {
        {{KHUB_DTYPE_FLOAT, 64, 1},
         "out is float64, float32 or bfloat16 is expected",
         "x is float64, out is float32"},
        {{KHUB_DTYPE_FLOAT, 16, 1},
         "out is float16, float32 or bfloat16 is expected",
         "x is float16, out is float32"},
        {{KHUB_DTYPE_INT, 32, 1},
         "out is int32, float32 or bfloat16 is expected",
         "x is int32, out is float32"},
        {{KHUB_DTYPE_BOOL, 8, 1},
         "out is bool, float32 or bfloat16 is expected",
         "x is bool, out is float32"},
        {{KHUB_DTYPE_FLOAT, 32, 4},
         "out is float32x4, float32 or bfloat16 is expected",
         "x is float32x4, out is float32"},
        {{KHUB_DTYPE_FLOAT8_E5M2, 8, 1},
         "out is dtype 12 of 8 bits, float32 or bfloat16 is expected",
         "x is dtype 12 of 8 bits, out is float32"},
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
        char words[256];
        setup();
        out.dtype = table[i].dtype;
        snprintf(words, sizeof(words), "TypeError: rms_norm: %s", table[i].out_words);
        norm_fails(words);
        setup();
        x.dtype = table[i].dtype;
        snprintf(words, sizeof(words), "TypeError: rms_norm: %s", table[i].x_words);
        norm_fails(words);
    }
    setup();
    out.dtype = bf16;
    norm_fails("TypeError: rms_norm: x is float32, out is bfloat16");
}
END_TEST

START_TEST(shapes)
{
    static const struct {
        int32_t ndim;
        int64_t shape[3];
        const char *words;
    } table[] = {
        {2, {3, 8}, "ValueError: rms_norm: x has shape (3, 8), out has (2, 3, 8): the leading axes differ"},
        {3,
         {3, 2, 8},
         "ValueError: rms_norm: x has shape (3, 2, 8), out has (2, 3, 8): the leading axes differ"},
        {3, {2, 3, 7}, "ValueError: rms_norm: x has shape (2, 3, 7), (..., n) is expected with n = 8"},
        {3,
         {2, -3, 8},
         "ValueError: rms_norm: x has shape (2, -3, 8), (..., n) is expected, none of them negative"},
        {0, {0}, "ValueError: rms_norm: x has shape (), (..., n) is expected"},
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
        setup();
        int64_t other[3];
        memcpy(other, table[i].shape, sizeof(other));
        x.ndim = table[i].ndim;
        x.shape = other;
        norm_fails(table[i].words);
    }
    setup();
    int64_t seven = 7, none = 0, nine[9] = {1, 1, 1, 1, 1, 1, 1, 1, 8};
    weight.shape = &seven;
    norm_fails("ValueError: rms_norm: weight has shape (7), (n) is expected with n = 8");
    weight = x;
    norm_fails("ValueError: rms_norm: weight has shape (2, 3, 8), (n) is expected");
    out.ndim = x.ndim = 9;
    out.shape = x.shape = nine;
    norm_fails("ValueError: rms_norm: out has 9 axes, at most 8 are handled");
    out.ndim = x.ndim = 1;
    out.shape = x.shape = &none;
    norm_fails("ValueError: rms_norm: out has shape (0), (..., n) is expected, none of them 0");
    setup();
    ck_kernel_fails("ValueError: silu_and_mul: x has shape (2, 3, 8), (..., 2n) is expected with n = 8",
                    &activation, "silu_and_mul", khub_arg_tensor(&out), khub_arg_tensor(&x));
    int64_t odd[3] = {2, 3, 7};
    x.shape = odd;
    ck_kernel_fails("ValueError: rotary: out has shape (2, 3, 7), (t, h, 2d) is expected", &rotary, "rotary",
                    khub_arg_tensor(&x), khub_arg_tensor(&x), khub_arg_tensor(&weight),
                    khub_arg_tensor(&weight));
}
END_TEST

START_TEST(memory_of_tensors)
{
    setup();
    int64_t every_second[3] = {48, 16, 2}, onto_one[3] = {24, 0, 1};
    x.strides = every_second;
    norm_fails("ValueError: rms_norm: x's last axis has stride 2, 1 is expected");
    x.strides = NULL;
    out.strides = onto_one;
    norm_fails("ValueError: rms_norm: out's axis 1 has stride 0 and is written");
    out.strides = NULL;
    out.device.type = KHUB_DEVICE_CUDA;
    norm_fails("ValueError: rms_norm: out is on a device of DLPack's type 2, the CPU is expected");
    setup();
    x.data = NULL;
    norm_fails("ValueError: rms_norm: x has elements and no memory");
    setup();
    x.strides = onto_one; /* one row, read three times */
    ck_kernel_ok(&norm, "rms_norm", NORM_ARGS, khub_arg_float(1e-5));
}
END_TEST

START_TEST(a_failed_call_writes_nothing)
{
    setup();
    int64_t seven = 7;
    weight.shape = &seven;
    norm_fails("ValueError: rms_norm: weight has shape (7), (n) is expected with n = 8");
    for (int i = 0; i < 64; i++)
        ck_assert(memory[0][i] == 1);
}
END_TEST

START_TEST(an_unknown_instruction_set_is_an_error)
{
    setup();
    library l = library_open("norm", "mmx");
    char words[1024];
    const khub_value args[] = {NORM_ARGS, khub_arg_float(1e-5)};
    ck_assert_int_eq(call_kernel(&l, "rms_norm", args, 4, words), -1);
    ck_assert_msg(
        strstr(words, "RuntimeError: rms_norm: KHUB_KERNEL_ISA is \"mmx\", known here are portable") == words,
        "%s", words);
    l.isa = "portable"; /* decided once: no second thoughts */
    ck_assert_int_eq(call_kernel(&l, "rms_norm", args, 4, words), -1);
}
END_TEST

/* The string that a function without arguments returns. */
static void text_of(const library *l, const char *name, char text[2048])
{
    khub_function f = function_of(l, name);
    khub_value v = khub_arg_none();
    ck_assert_int_eq(f.call(f.self, NULL, 0, &v), 0);
    ck_assert_int_eq(v.type, KHUB_TYPE_STR);
    const TVMFFIByteArray *bytes = (const TVMFFIByteArray *)((const char *)v.as.ptr + sizeof(TVMFFIObject));
    ck_assert_uint_lt(bytes->size, 2048);
    memcpy(text, bytes->data, bytes->size);
    text[bytes->size] = 0;
    int (*release)(TVMFFIObjectHandle);
    *(void **)&release = tvm_ffi("TVMFFIObjectDecRef");
    release(v.as.ptr);
}

START_TEST(schema_and_documentation)
{
    setup();
    char text[2048];
    text_of(&norm, "_metadata_layer_norm", text);
    ck_assert_str_eq(
        text,
        "{\"type_schema\":\"{\\\"type\\\":\\\"ffi.Function\\\",\\\"named_args\\\":{\\\"return\\\":"
        "[{\\\"type\\\":\\\"None\\\"}],\\\"params\\\":[{\\\"type\\\":\\\"DLTensor*\\\"},"
        "{\\\"type\\\":\\\"DLTensor*\\\"},{\\\"type\\\":\\\"DLTensor*\\\"},{\\\"type\\\":\\\"Optional\\\","
        "\\\"args\\\":[{\\\"type\\\":\\\"DLTensor*\\\"}]},{\\\"type\\\":\\\"float\\\"}]}}\"}");
    text_of(&rotary, "_doc_rotary", text);
    ck_assert_msg(strstr(text, "rotary(out (t, h, 2d), x (t, h, 2d), cos (t, d), sin (t, d))\n\n") == text,
                  "%s", text);
}
END_TEST

/* The same words from the kernels for CUDA, for which everything that isn't said to be elsewhere is on their
 * device 0. */
START_TEST(on_a_gpu)
{
    setup();
    library l = library_open("norm", emulated);
#define gpu_fails(words) ck_kernel_fails(words, &l, "rms_norm", NORM_ARGS, khub_arg_float(1e-5))
    ck_kernel_ok(&l, "rms_norm", NORM_ARGS, khub_arg_float(1e-5));
    x.device.type = KHUB_DEVICE_ROCM;
    gpu_fails("ValueError: rms_norm: x is on a device of DLPack's type 10, CUDA is expected");
    setup();
    weight.device = (khub_device){KHUB_DEVICE_CUDA, 1};
    gpu_fails("ValueError: rms_norm: weight is on CUDA device 1, out is on 0");
    setup();
    x.byte_offset = 2;
    gpu_fails("ValueError: rms_norm: x isn't aligned to its elements of 4 bytes");
    setup();
    out.dtype.bits = 64;
    gpu_fails("TypeError: rms_norm: out is float64, float32, bfloat16 or float16 is expected");
    setup();
    out.dtype = f16;
    gpu_fails("TypeError: rms_norm: x is float32, out is float16");
}
END_TEST

UNIT("kernels_arguments", number_of_arguments, types_of_arguments, dtypes, shapes, memory_of_tensors,
     a_failed_call_writes_nothing, an_unknown_instruction_set_is_an_error, schema_and_documentation, on_a_gpu)
