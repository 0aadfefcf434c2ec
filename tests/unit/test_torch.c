/* libtorch's operators through the adapter. What comes out is held against what ATen's operators are defined
 * to do, by hand. */
#include "torch.h"

#include "base/memory.h"
#include "failing_memory.h"
#include "tensor/object.h"
#include "torch/call.h"
#include "torch/schema.h"
#include "torch/shim.h"

#include <dlfcn.h>
#include <glob.h>
#include <math.h>
#include <pthread.h>

static khub_error err;

static const khub__torch_operator *find(const char *ns, const char *name)
{
    const khub__torch_operator *op;
    torch_open();
    ck_khub_ok(khub__torch_operator_find(&op, ns, name, &err), &err);
    return op;
}

static khub_function function_of(const khub__torch_operator *op)
{
    return (khub_function){khub__torch_call, (void *)(uintptr_t)op};
}

static int call_error(khub_value *result, const char *name, const khub_value *args, int32_t n)
{
    khub_function f = function_of(find("aten", name));
    return khub_function_call(&f, args, n, result, &err);
}

static khub_value call(const char *name, const khub_value *args, int32_t n)
{
    khub_value result;
    ck_khub_ok(call_error(&result, name, args, n), &err);
    return result;
}

#define COUNT(a) ((int32_t)(sizeof(a) / sizeof(*(a))))
#define CALL(name, ...)                                                                                      \
    call(name, (const khub_value[]){__VA_ARGS__}, COUNT(((const khub_value[]){__VA_ARGS__})))
#define ck_call_fails(words, name, ...)                                                                      \
    do {                                                                                                     \
        khub_value ck_result;                                                                                \
        ck_khub_fails(call_error(&ck_result, name, (const khub_value[]){__VA_ARGS__},                        \
                                 COUNT(((const khub_value[]){__VA_ARGS__}))),                                \
                      &err, KHUB_E_KERNEL, words);                                                           \
        ck_assert_int_eq(ck_result.type, KHUB_TYPE_NONE);                                                    \
    } while (0)

static const khub_tensor *tensor_of(const khub_value *v, int32_t ndim, const int64_t *shape)
{
    const khub_tensor *t = khub_value_tensor(v);
    ck_assert_ptr_nonnull(t);
    ck_assert_int_eq(t->ndim, ndim);
    for (int32_t i = 0; i < ndim; i++)
        ck_assert_int_eq(t->shape[i], shape[i]);
    return t;
}

/* The elements of a compact tensor of float32 are these; releases it. */
static void check_floats(khub_value v, int32_t ndim, const int64_t *shape, const float *expected,
                         int64_t count)
{
    const khub_tensor *t = tensor_of(&v, ndim, shape);
    ck_assert(t->dtype.code == KHUB_DTYPE_FLOAT && t->dtype.bits == 32 && khub_tensor_is_compact(t));
    ck_assert_int_eq(khub_tensor_count(t), count);
    for (int64_t i = 0; i < count; i++)
        ck_assert_double_eq_tol(((float *)t->data)[i], expected[i], 1e-6);
    khub_value_release(&v);
}

#define FLOATS(...) (const float[]){__VA_ARGS__}, COUNT(((const float[]){__VA_ARGS__}))

static khub_value list_of(const khub_value *items, size_t count)
{
    khub_value v;
    ck_khub_ok(khub_value_array(&v, items, count, &err), &err);
    return v;
}

static khub_value ints(int64_t a, int64_t b)
{
    return list_of((const khub_value[]){khub_arg_int(a), khub_arg_int(b)}, 2);
}

static float six[6] = {1, 2, 3, 4, 5, 6};
static int64_t two_three[2] = {2, 3}, three_two[2] = {3, 2}, of_three[1] = {3}, of_six[1] = {6};

/* Every schema of libtorch is read, and written as it was. */
START_TEST(all_schemas)
{
    static const char *const namespaces[] = {"aten",           "prim",   "prims",  "quantized", "_quantized",
                                             "static_runtime", "sparse", "mkldnn", "c10d",      "inductor",
                                             "profiler",       "mkl",    "onednn", "symm_mem"};
    size_t all = 0, callable = 0;
    torch_open();
    for (size_t n = 0; n < sizeof(namespaces) / sizeof(*namespaces); n++) {
        const khub__torch_operator **list;
        size_t count;
        ck_khub_ok(khub__torch_operators(&list, &count, namespaces[n], &err), &err);
        for (size_t i = 0; i < count; i++) {
            khub__schema schema;
            khub__text text = {0};
            const char *said = khub__torch_operator_schema(list[i]);
            ck_khub_ok(khub__schema_parse(&schema, said, &err), &err);
            khub__schema_write(&text, &schema);
            ck_assert_str_eq(text.data, said);
            khub__text_free(&text);
            khub__schema_free(&schema);
            callable += khub__torch_operator_refusal(list[i]) == NULL;
            ck_assert(i == 0 ||
                      strcmp(khub__torch_operator_name(list[i - 1]), khub__torch_operator_name(list[i])) < 0);
        }
        all += count;
        khub__free(list);
    }
    ck_assert_uint_gt(all, 3300);
    ck_assert_uint_gt(callable, 2000);
}
END_TEST

static void one_operator(void)
{
    float x[3] = {0, 1, -2}, y[3];
    khub_tensor t = khub_tensor_f32(x, 1, of_three);
    for (int i = 0; i < 3; i++)
        y[i] = x[i] / (1 + expf(-x[i]));
    check_floats(CALL("silu", khub_arg_tensor(&t)), 1, of_three, y, 3);
    const khub__torch_operator *op = find("aten", "silu");
    ck_assert_str_eq(khub__torch_operator_name(op), "silu");
    ck_assert_str_eq(khub__torch_operator_schema(op), "aten::silu(Tensor self) -> Tensor");
    ck_assert(khub__torch_operator_has(op, "CPU") && !khub__torch_operator_has(op, "CP"));
    ck_assert_ptr_eq(find("aten", "silu"), op);
    ck_assert_str_eq(khub__torch_operator_name(find("aten", "silu.out")), "silu.out");
}

/* Strides, offsets, scalars, no elements, one dtype after the other. */
static void tensors(void)
{
    khub_tensor t = khub_tensor_f32(six, 2, two_three);
    int64_t strides[2] = {1, 2}; /* [[1, 3, 5], [2, 4, 6]] */
    t.strides = strides;
    check_floats(CALL("sum.dim_IntList", khub_arg_tensor(&t), khub_arg_none()), 0, NULL, FLOATS(21));
    khub_value dim = list_of((const khub_value[]){khub_arg_int(1)}, 1);
    check_floats(CALL("sum.dim_IntList", khub_arg_tensor(&t), dim), 1, (int64_t[]){2}, FLOATS(9, 12));
    khub_value_release(&dim);
    khub_tensor rest = khub_tensor_f32(six, 1, of_three);
    rest.byte_offset = 3 * sizeof(float);
    check_floats(CALL("relu", khub_arg_tensor(&rest)), 1, of_three, FLOATS(4, 5, 6));
    khub_tensor scalar = khub_tensor_f32(six + 1, 0, NULL);
    check_floats(CALL("neg", khub_arg_tensor(&scalar)), 0, NULL, FLOATS(-2));
    int64_t nothing[2] = {0, 3};
    khub_tensor empty = khub_tensor_f32(NULL, 2, nothing);
    check_floats(CALL("neg", khub_arg_tensor(&empty)), 2, nothing, NULL, 0);
    static const char *const dtypes[] = {"float32",       "bfloat16",   "float16", "int64",  "int32",
                                         "float64",       "bool",       "uint8",   "int8",   "int16",
                                         "complex64",     "complex128", "uint16",  "uint32", "uint64",
                                         "float8_e4m3fn", "float8_e5m2"};
    char memory[48] = {0};
    for (size_t i = 0; i < sizeof(dtypes) / sizeof(*dtypes); i++) {
        khub_dtype dtype;
        ck_khub_ok(khub_dtype_parse(&dtype, dtypes[i], &err), &err);
        khub_tensor x = khub_tensor_over(memory, dtype, 1, of_three);
        khub_value y = CALL("clone", khub_arg_tensor(&x));
        const khub_tensor *out = tensor_of(&y, 1, of_three);
        ck_assert(memcmp(&out->dtype, &dtype, sizeof(dtype)) == 0 && out->data != memory);
        khub_value_release(&y);
    }
}

static void kinds_of_arguments(void)
{
    khub_tensor t = khub_tensor_f32(six, 2, two_three);
    khub_value x = khub_arg_tensor(&t), shape = ints(3, 2);
    /* ints: a list, a shape, a tensor of int64, one for all */
    check_floats(CALL("reshape", x, shape), 2, three_two, six, 6);
    struct {
        khub__object header;
        khub__shape_cell cell;
    } object = {{.counts = 1}, {three_two, 2}};
    khub_value as_shape = khub_value_of(KHUB_TYPE_SHAPE, 0);
    as_shape.as.ptr = &object;
    check_floats(CALL("reshape", x, as_shape), 2, three_two, six, 6);
    int64_t spread[4] = {3, 0, 2, 0}, stride[1] = {2};
    khub_tensor as_tensor = khub_tensor_over(spread, khub_dtype_of(KHUB_DTYPE_INT, 64), 1, (int64_t[]){2});
    as_tensor.strides = stride;
    check_floats(CALL("reshape", x, khub_arg_tensor(&as_tensor)), 2, three_two, six, 6);
    float image[16] = {0};
    khub_tensor in = khub_tensor_f32(image, 4, (int64_t[]){1, 1, 4, 4});
    check_floats(CALL("avg_pool2d", khub_arg_tensor(&in), khub_arg_int(4)), 4, (int64_t[]){1, 1, 1, 1},
                 FLOATS(0));
    khub_value_release(&shape);
    /* float and bool, given and by default; a string; optionals */
    check_floats(CALL("nan_to_num", x, khub_arg_float(0.5), khub_arg_int(7)), 2, two_three, six, 6);
    khub_value y = CALL("all.dim", x, khub_arg_int(0), khub_arg_bool(1));
    ck_assert_int_eq(tensor_of(&y, 2, (int64_t[]){1, 3})->dtype.code, KHUB_DTYPE_BOOL);
    khub_value_release(&y);
    float g = 0.5f * (1 + tanhf(sqrtf(2 / 3.14159265f) * (1 + 0.044715f)));
    khub_tensor one = khub_tensor_f32(six, 1, (int64_t[]){1});
    check_floats(CALL("gelu", khub_arg_tensor(&one), khub_arg_string("tanh")), 1, (int64_t[]){1}, &g, 1);
    /* dtype by value and name, layout, device, memory format */
    khub_value dtype = khub_value_of(KHUB_TYPE_DTYPE, 0);
    dtype.as.dtype = khub_dtype_of(KHUB_DTYPE_FLOAT, 64);
    y = CALL("sum", x, dtype);
    ck_assert_int_eq(tensor_of(&y, 0, NULL)->dtype.bits, 64);
    khub_value_release(&y);
    shape = ints(2, 3);
    khub_value device = khub_value_of(KHUB_TYPE_DEVICE, 0);
    device.as.device = (khub_device){KHUB_DEVICE_CPU, 0};
    y = CALL("empty.memory_format", shape, khub_arg_string("int16"), khub_arg_string("strided"), device,
             khub_arg_bool(0), khub_arg_string("contiguous_format"));
    ck_assert_int_eq(tensor_of(&y, 2, two_three)->dtype.bits, 16);
    khub_value_release(&y);
    y = CALL("zeros", shape, khub_arg_none(), khub_arg_none(), khub_arg_string("cpu"));
    ck_assert_float_eq(*(float *)tensor_of(&y, 2, two_three)->data, 0);
    khub_value_release(&y);
    khub_value_release(&shape);
    /* lists of tensors, with and without holes; a None where a Scalar could be */
    khub_value both = list_of((const khub_value[]){x, x}, 2);
    khub_value catted = CALL("cat", both, khub_arg_int(1));
    check_floats(catted, 2, (int64_t[]){2, 6}, FLOATS(1, 2, 3, 1, 2, 3, 4, 5, 6, 4, 5, 6));
    khub_value_release(&both);
    int64_t row = 1;
    khub_tensor index = khub_tensor_over(&row, khub_dtype_of(KHUB_DTYPE_INT, 64), 1, (int64_t[]){1});
    khub_value holes = list_of((const khub_value[]){khub_arg_none(), khub_arg_tensor(&index)}, 2);
    check_floats(CALL("index.Tensor", x, holes), 2, (int64_t[]){2, 1}, FLOATS(2, 5));
    khub_value_release(&holes);
}

static void results(void)
{
    khub_tensor t = khub_tensor_f32(six, 2, two_three);
    khub_value x = khub_arg_tensor(&t);
    /* several */
    khub_value y = CALL("max.dim", x, khub_arg_int(1));
    size_t count;
    const khub_value *items = khub_value_items(&y, &count);
    ck_assert_uint_eq(count, 2);
    ck_assert_float_eq(((float *)tensor_of(&items[0], 1, (int64_t[]){2})->data)[1], 6);
    ck_assert_int_eq(((int64_t *)tensor_of(&items[1], 1, (int64_t[]){2})->data)[1], 2);
    khub_value_release(&y);
    /* a list of views: of the argument's memory, with its strides */
    y = CALL("unbind.int", x, khub_arg_int(1));
    items = khub_value_items(&y, &count);
    ck_assert_uint_eq(count, 3);
    const khub_tensor *column = tensor_of(&items[2], 1, (int64_t[]){2});
    ck_assert(column->data == six + 2 && column->strides[0] == 3);
    khub_value_release(&y);
    /* a number, a truth, a list of numbers */
    ck_assert_int_eq(CALL("size.int", x, khub_arg_int(1)).as.i64, 3);
    y = CALL("is_floating_point", x);
    ck_assert(y.type == KHUB_TYPE_BOOL && y.as.i64 == 1);
    y = CALL("result_type.Tensor", x, x);
    ck_assert(y.type == KHUB_TYPE_DTYPE && y.as.dtype.code == KHUB_DTYPE_FLOAT && y.as.dtype.bits == 32);
}

static void in_place(void)
{
    float x[3] = {-1, 2, -3}, z[3];
    khub_tensor t = khub_tensor_f32(x, 1, of_three), out = khub_tensor_f32(z, 1, of_three);
    khub_value y = CALL("relu_", khub_arg_tensor(&t));
    ck_assert_ptr_eq(khub_value_tensor(&y)->data, x);
    ck_assert(x[0] == 0 && x[1] == 2 && x[2] == 0);
    khub_value_release(&y);
    y = CALL("neg.out", khub_arg_tensor(&t), khub_arg_tensor(&out));
    ck_assert_ptr_eq(khub_value_tensor(&y)->data, z);
    ck_assert_float_eq(z[1], -2);
    khub_value_release(&y);
    /* not wanted */
    khub_function f = function_of(find("aten", "neg.out"));
    ck_khub_ok(khub_call(&f, &err, khub_arg_tensor(&t), khub_arg_tensor(&out)), &err);
    /* an output of another shape isn't given new memory */
    khub_tensor large = khub_tensor_f32(six, 1, of_six);
    ck_call_fails("resiz", "neg.out", khub_arg_tensor(&large), khub_arg_tensor(&out));
}

static int layouts_asked;
static int32_t (*true_layout)(khub__aten_tensor *tensor, int32_t *out);

static int32_t count_layout(khub__aten_tensor *tensor, int32_t *out)
{
    layouts_asked++;
    return true_layout(tensor, out);
}

/* What is asked of a result that is an argument, besides where it is: nothing. *asked: how often. */
static khub_value call_counting(int *asked, const char *ns, const char *name, const khub_value *args,
                                int32_t n)
{
    khub_function f = function_of(find(ns, name));
    khub_value result;
    layouts_asked = 0;
    true_layout = khub__shim.get_layout;
    khub__shim.get_layout = count_layout;
    ck_khub_ok(khub_function_call(&f, args, n, &result, &err), &err);
    khub__shim.get_layout = true_layout;
    *asked = layouts_asked;
    return result;
}
#define COUNTING(asked, ns, name, ...)                                                                       \
    call_counting(asked, ns, name, (const khub_value[]){__VA_ARGS__},                                        \
                  COUNT(((const khub_value[]){__VA_ARGS__})))

/* (2, 3) with a number between any two, turned and given another dimension in place: strides (2, 1, 6). */
static void given_back_otherwise(void)
{
    float x[12];
    int64_t strides[2] = {6, 2}, turned[2] = {3, 2}, more[3] = {1, 2, 3};
    khub_tensor t = khub_tensor_over(x, khub_dtype_of(KHUB_DTYPE_FLOAT, 32), 2, two_three);
    int asked;
    t.strides = strides;
    t.byte_offset = 4;
    khub_value y = COUNTING(&asked, "aten", "t_", khub_arg_tensor(&t));
    const khub_tensor *back = tensor_of(&y, 2, turned);
    ck_assert_int_eq(asked, 0);
    ck_assert(back->data == x + 1 && back->byte_offset == 0 && back->strides[0] == 2 &&
              back->strides[1] == 6);
    ck_assert(back->device.type == KHUB_DEVICE_CPU && back->dtype.bits == 32);
    khub_value_release(&y);
    y = COUNTING(&asked, "aten", "unsqueeze_", khub_arg_tensor(&t), khub_arg_int(0));
    back = tensor_of(&y, 3, more);
    ck_assert_int_eq(asked, 0);
    ck_assert(back->data == x + 1 && back->strides[1] == 6 && back->strides[2] == 2);
    khub_value_release(&y);
    y = COUNTING(&asked, "aten", "neg", khub_arg_tensor(&t));
    ck_assert_int_eq(asked, 1);
    khub_value_release(&y);
}

/* Each of several is the argument that the schema says. */
static void several_given_back(void)
{
    float values[3];
    int64_t places[3];
    int asked;
    khub_tensor t = khub_tensor_f32(six, 2, three_two), a = khub_tensor_f32(values, 1, of_three),
                b = khub_tensor_over(places, khub_dtype_of(KHUB_DTYPE_INT, 64), 1, of_three);
    khub_value y = COUNTING(&asked, "aten", "max.dim_max", khub_arg_tensor(&t), khub_arg_int(1),
                            khub_arg_bool(0), khub_arg_tensor(&a), khub_arg_tensor(&b));
    const khub_value *items = khub_value_items(&y, NULL);
    const khub_tensor *first = tensor_of(&items[0], 1, of_three), *second = tensor_of(&items[1], 1, of_three);
    ck_assert_int_eq(asked, 0);
    ck_assert(first->data == values && first->dtype.code == KHUB_DTYPE_FLOAT && values[2] == 6);
    ck_assert(second->data == places && second->dtype.code == KHUB_DTYPE_INT && second->dtype.bits == 64 &&
              places[2] == 1);
    khub_value_release(&y);
}

/* What a result lies in is kept for it when it is given back, and when it has got other memory. */
static void results_given_back(void)
{
    int64_t of_two[1] = {2}, of_nine[1] = {9};
    khub_tensor t = khub_tensor_f32(six, 1, of_six);
    khub_value first = CALL("neg", khub_arg_tensor(&t)), again;
    int asked;
    again = COUNTING(&asked, "aten", "abs_", first);
    ck_assert_int_eq(asked, 0);
    khub_value_release(&first);
    check_floats(again, 1, of_six, six, 6);
    first = CALL("neg", khub_arg_tensor(&t));
    khub_value list = list_of((const khub_value[]){khub_arg_int(2)}, 1);
    again = COUNTING(&asked, "aten", "resize_", first, list);
    khub_value_release(&list);
    khub_value_release(&first);
    ck_assert_int_eq(asked, 0);
    check_floats(again, 1, of_two, FLOATS(-1, -2));
    list = list_of((const khub_value[]){khub_arg_int(9)}, 1);
    if (!khub__shim.from_blob) { /* that libtorch's own storage is passed, which can grow */
        first = CALL("neg", khub_arg_tensor(&t));
        again = COUNTING(&asked, "aten", "resize_", first, list);
        khub_value_release(&first);
        ck_assert_float_eq(((float *)tensor_of(&again, 1, of_nine)->data)[5], -6);
        khub_value_release(&again);
    }
    khub_value_release(&list);
}

static void given_back(void)
{
    given_back_otherwise();
    several_given_back();
    results_given_back();
}

/* A view of a result keeps the result's memory. */
static void results_as_arguments(void)
{
    khub_tensor t = khub_tensor_f32(six, 2, two_three);
    khub_value y = CALL("neg", khub_arg_tensor(&t)), view = CALL("t", y), again = view;
    const float *data = khub_value_tensor(&y)->data;
    khub_value_release(&y);
    ck_assert_ptr_eq(khub_value_tensor(&view)->data, data);
    ck_assert_float_eq(((float *)khub_value_tensor(&view)->data)[5], -6);
    khub_value list = list_of(&again, 1);
    khub_value_release(&view);
    ck_assert_float_eq(((float *)khub_value_tensor(khub_value_items(&list, NULL))->data)[4], -5);
    khub_value_release(&list);
}

static void wrong_arguments(void)
{
    khub_tensor t = khub_tensor_f32(six, 2, two_three);
    khub_value x = khub_arg_tensor(&t);
    ck_call_fails(
        "TypeError: aten::silu: argument 1, \"self\", is an int, Tensor is expected (aten::silu(Tensor self) "
        "-> Tensor)",
        "silu", khub_arg_int(1));
    ck_call_fails("was given 2 arguments, takes 1", "silu", x, x);
    ck_call_fails("argument 2, \"weight\", is missing", "linear", x);
    ck_call_fails("\"approximate\", is an int, str is expected", "gelu", x, khub_arg_int(1));
    ck_call_fails("\"dim\", is a float, int is expected", "size.int", x, khub_arg_float(1));
    ck_call_fails("\"shape\", is a string, SymInt[] is expected", "reshape", x, khub_arg_string("2"));
    ck_call_fails("\"keepdim\", is an int, bool is expected", "all.dim", x, khub_arg_int(0), khub_arg_int(1));
    ck_call_fails("\"dtype\", is None, ScalarType is expected", "to.dtype", x, khub_arg_none());
    ck_call_fails("\"device\", is \"moon\", which is no device", "to.device", x, khub_arg_string("moon"));
    ck_call_fails("\"device\", is \"cuda:x\", which is no device", "to.device", x, khub_arg_string("cuda:x"));
    ck_call_fails("\"max\", is a float, Scalar is expected", "clamp", x, khub_arg_none(), khub_arg_float(1));
    khub_value list = list_of((const khub_value[]){x, khub_arg_int(1)}, 2);
    ck_call_fails("\"tensors\", is an int, Tensor is expected", "cat", list);
    khub_value_release(&list);
    ck_call_fails("takes Scalar (\"negative_slope\"), which libtorch's C interface can't pass", "leaky_relu",
                  x);
    ck_call_fails("gives Scalar", "_local_scalar_dense", x);
    khub_tensor bad = t;
    bad.dtype = khub_dtype_of(KHUB_DTYPE_INT, 4);
    ck_call_fails("\"self\", is of int4, which libtorch hasn't", "silu", khub_arg_tensor(&bad));
    bad = t;
    bad.device = (khub_device){KHUB_DEVICE_CUDA, 0};
    ck_call_fails("libtorch was opened for the CPU alone", "silu", khub_arg_tensor(&bad));
    bad.device.type = 99;
    ck_call_fails("which libtorch doesn't know", "silu", khub_arg_tensor(&bad));
    bad = t;
    bad.data = NULL;
    ck_call_fails("has the shape [2,3] and no data", "silu", khub_arg_tensor(&bad));
    int64_t wrong[2] = {-1, 3}, backwards[2] = {-3, 1};
    bad = t;
    bad.shape = wrong;
    ck_call_fails("has the shape [-1,3]", "silu", khub_arg_tensor(&bad));
    bad = t;
    bad.strides = backwards;
    ck_call_fails("has a negative stride", "silu", khub_arg_tensor(&bad));
    bad = t;
    bad.ndim = 65;
    ck_call_fails("has 65 dimensions", "silu", khub_arg_tensor(&bad));
}

static void operators_that_are_not_there(void)
{
    const khub__torch_operator *op, **list;
    size_t count;
    torch_open();
    ck_khub_fails(khub__torch_operator_find(&op, "aten", "nobody", &err), &err, KHUB_E_NOTFOUND,
                  "aten::nobody: there is no such operator");
    ck_khub_fails(khub__torch_operator_find(&op, "aten", "silu.x", &err), &err, KHUB_E_NOTFOUND, "itself");
    ck_khub_fails(khub__torch_operator_find(&op, "aten", "add", &err), &err, KHUB_E_NOTFOUND, ".Tensor");
    ck_khub_ok(khub__torch_operators(&list, &count, "ate", &err), &err);
    ck_assert(list == NULL && count == 0);
}

static void errors(void)
{
    khub_tensor t = khub_tensor_f32(six, 2, two_three);
    khub_value x = khub_arg_tensor(&t);
    ck_call_fails("RuntimeError: aten::mm: mm: mat1 and mat2 shapes cannot be multiplied (2x3 and 2x3)", "mm",
                  x, x);
    ck_call_fails("RuntimeError: aten::size.int: Dimension out of range", "size.int", x, khub_arg_int(5));
    ck_call_fails("aten::to_sparse: result 1 is a tensor without strides", "to_sparse", x);
    ck_call_fails("Could not run 'aten::q_scale' with arguments from the 'CPU' backend", "q_scale", x);
}

/* An imaginary part that is only marked as negated, numbers that are only marked as conjugated. */
static void lazy_results(void)
{
    float z[2] = {1, 2};
    khub_tensor t = khub_tensor_over(z, khub_dtype_of(KHUB_DTYPE_COMPLEX, 64), 0, NULL);
    khub_value conj = CALL("conj", khub_arg_tensor(&t));
    ck_assert_float_eq(((float *)khub_value_tensor(&conj)->data)[1], -2);
    khub_value_release(&conj);
    khub_value neg = CALL("_neg_view", khub_arg_tensor(&t));
    ck_assert_float_eq(((float *)khub_value_tensor(&neg)->data)[0], -1);
    khub_value_release(&neg);
}

/* What is open is open: by any path, and no other beside it. */
static void opened_once(void)
{
    torch_open();
    khub_library_info info = torch_here();
    char path[4200];
    snprintf(path, sizeof(path), "%s/./lib/libtorch_cpu.so", getenv("KHUB_TORCH"));
    info.path = path;
    ck_khub_ok(khub__torch_open(&info, 0, &err), &err);
    info.path = "/elsewhere/libtorch_cpu.so";
    ck_khub_fails(khub__torch_open(&info, 0, &err), &err, KHUB_E_LOAD,
                  "/elsewhere/libtorch_cpu.so: another libtorch is in this process already: ");
}

static void *call_in_thread(void *user)
{
    khub_function f = function_of(user);
    float x[3] = {-1, 2, -3};
    khub_tensor t = khub_tensor_f32(x, 1, of_three);
    khub_value arg = khub_arg_tensor(&t), result;
    khub_error e = {0};
    uintptr_t wrong = 0;
    for (int i = 0; i < 300; i++) {
        if (khub_function_call(&f, &arg, 1, &result, &e) != KHUB_OK) return (void *)1;
        wrong += ((float *)khub_value_tensor(&result)->data)[0] != 1;
        khub_value_release(&result);
    }
    return (void *)(wrong + khub__shim.grad_is_enabled()); /* nobody else has this libtorch */
}

static void threads(void)
{
    pthread_t thread[4];
    const khub__torch_operator *op = find("aten", "neg");
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_create(&thread[i], NULL, call_in_thread, (void *)(uintptr_t)op), 0);
    for (int i = 0; i < 4; i++) {
        void *wrong;
        ck_assert_int_eq(pthread_join(thread[i], &wrong), 0);
        ck_assert_ptr_null(wrong);
    }
}

/* Each allocation of ours fails in turn: the call says so, and nothing is lost. */
static void no_memory(void)
{
    static const struct {
        const char *name;
        int32_t n;
    } cases[] = {{"silu", 1}, {"relu_", 1}, {"max.dim", 2}, {"unbind.int", 2}, {"cat", 1}};
    khub_tensor t = khub_tensor_f32(six, 2, two_three);
    khub_value x = khub_arg_tensor(&t), list = list_of((const khub_value[]){x, x}, 2), result;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        khub_value args[2] = {strcmp(cases[i].name, "cat") == 0 ? list : x, khub_arg_int(1)};
        khub_function f = function_of(find("aten", cases[i].name));
        fm_install_own();
        long n = 1, live = atomic_load(&fm_live);
        for (int rc = KHUB_E_KERNEL; rc != KHUB_OK; n++) {
            atomic_store(&fm_count, 0);
            atomic_store(&fm_fail_at, n);
            rc = khub_function_call(&f, args, cases[i].n, &result, &err);
            ck_assert_msg(rc == KHUB_OK || strstr(err.message, "memory"), "%s: %s", cases[i].name,
                          err.message);
            khub_error_clear(&err);
            khub_value_release(&result);
            ck_assert_int_eq(atomic_load(&fm_live), live);
        }
        atomic_store(&fm_fail_at, 0);
        ck_assert_int_gt(n, 2);
    }
    khub_value_release(&list);
}

/* Opening libtorch takes longer than all of these: they share a process. */
START_TEST(atens_operators)
{
    one_operator();
    tensors();
    kinds_of_arguments();
    results();
    in_place();
    given_back();
    results_as_arguments();
    wrong_arguments();
    operators_that_are_not_there();
    errors();
    lazy_results();
    opened_once();
    no_memory();
    threads();
}
END_TEST

#define NS_STABLE "_stable_cpu_7357000"
#define NS_FULL   "_full_cpu_7357000"

/* A kernel of tests/torch_kernels, whatever version its build is for. */
static void load(const char *name)
{
    char pattern[4096];
    glob_t found;
    snprintf(pattern, sizeof(pattern), "%s/tests/torch/repos/%s/build/*/_%s_cpu_7357000.so",
             getenv("KHUB_BINARY"), name, name);
    ck_assert_msg(glob(pattern, 0, NULL, &found) == 0 && found.gl_pathc == 1, "%s", pattern);
    ck_assert_msg(dlopen(found.gl_pathv[0], RTLD_NOW | RTLD_LOCAL) != NULL, "%s", dlerror());
    globfree(&found);
}

static khub_value call_of(const char *ns, const char *name, const khub_value *args, int32_t n)
{
    khub_function f = function_of(find(ns, name));
    khub_value result;
    ck_khub_ok(khub_function_call(&f, args, n, &result, &err), &err);
    return result;
}
#define KERNEL(name, ...)                                                                                    \
    call_of(NS_STABLE, name, (const khub_value[]){__VA_ARGS__}, COUNT(((const khub_value[]){__VA_ARGS__})))

static void check_text(khub_value v, const char *expected)
{
    ck_assert_str_eq(khub_value_text(&v, NULL), expected);
    khub_value_release(&v);
}

/* What comes in goes out. */
static void same(void)
{
    ck_assert(KERNEL("same_float", khub_arg_float(-0.5)).as.f64 == -0.5);
    ck_assert_int_eq(KERNEL("same_bool", khub_arg_bool(1)).as.i64, 1);
    ck_assert_int_eq(KERNEL("same_bool", khub_arg_bool(0)).as.i64, 0);
    check_text(KERNEL("same_str", khub_arg_string("short")), "short");
    check_text(KERNEL("same_str", khub_arg_string("longer than seven bytes")), "longer than seven bytes");
    khub_value v = KERNEL("same_dtype", khub_arg_string("bfloat16"));
    ck_assert(v.type == KHUB_TYPE_DTYPE && v.as.dtype.code == KHUB_DTYPE_BFLOAT && v.as.dtype.bits == 16);
    v = KERNEL("same_device", khub_arg_string("cuda:3"));
    ck_assert(v.type == KHUB_TYPE_DEVICE && v.as.device.type == KHUB_DEVICE_CUDA && v.as.device.id == 3);
    khub_value list = ints(7, INT64_MIN);
    v = KERNEL("same_ints", list);
    size_t count;
    const khub_value *items = khub_value_items(&v, &count);
    ck_assert(count == 2 && items[0].as.i64 == 7 && items[1].as.i64 == INT64_MIN);
    khub_value_release(&v);
    khub_value_release(&list);
    list = list_of((const khub_value[]){khub_arg_string("a"), khub_arg_string("and a longer one")}, 2);
    v = KERNEL("same_strings", list);
    items = khub_value_items(&v, &count);
    ck_assert_uint_eq(count, 2);
    ck_assert_str_eq(khub_value_text(&items[1], NULL), "and a longer one");
    khub_value_release(&v);
    khub_value_release(&list);
    list = list_of(NULL, 0);
    v = KERNEL("same_floats", list);
    ck_assert(v.type == KHUB_TYPE_ARRAY && khub_value_items(&v, &count) != NULL && count == 0);
    khub_value_release(&v);
    khub_value_release(&list);
}

static void optional_results(void)
{
    khub_tensor t = khub_tensor_f32(six, 1, of_three);
    khub_value x = khub_arg_tensor(&t);
    check_floats(KERNEL("perhaps", x), 1, of_three, FLOATS(2, 4, 6));
    ck_assert_int_eq(KERNEL("perhaps", x, khub_arg_bool(0)).type, KHUB_TYPE_NONE);
    ck_assert_int_eq(KERNEL("perhaps_int", khub_arg_int(5)).as.i64, 5);
    ck_assert_int_eq(KERNEL("perhaps_int", khub_arg_int(-5)).type, KHUB_TYPE_NONE);
    ck_assert_int_eq(KERNEL("nothing", x).type, KHUB_TYPE_NONE);
    khub_value v;
    size_t count;
    const khub_value *items;
    v = KERNEL("pieces", x, khub_arg_int(3));
    items = khub_value_items(&v, &count);
    ck_assert_uint_eq(count, 3);
    ck_assert_float_eq(((float *)tensor_of(&items[2], 1, of_three)->data)[2], 6);
    khub_value_release(&v);
}

/* Every kind of argument, as it arrived in the kernel. */
static void in_words(void)
{
    khub_tensor t = khub_tensor_f32(six, 2, two_three);
    int64_t strides[2] = {1, 2};
    t.strides = strides;
    khub_value x = khub_arg_tensor(&t), none = khub_arg_none(), dtype = khub_value_of(KHUB_TYPE_DTYPE, 0);
    dtype.as.dtype = khub_dtype_of(KHUB_DTYPE_INT, 32);
#define X "Float[2,3] strides [1,2] device 0:-1"
    check_text(KERNEL("kinds", x, none, khub_arg_int(-5), khub_arg_int(INT64_MAX), khub_arg_float(0.5),
                      khub_arg_bool(1), khub_arg_string("w"), dtype, khub_arg_string("cpu"),
                      khub_arg_string("strided"), khub_arg_string("channels_last"), none, none, none, none,
                      none, none),
               X "; none; -5; 9223372036854775807; 0x1p-1; true; 'w'; Int; device 0:-1; layout 0; format 2; "
                 "none; none; "
                 "none; none; none; none");
    check_text(
        KERNEL("kinds", x, x, khub_arg_bool(1), khub_arg_int(0), khub_arg_int(2), khub_arg_bool(0),
               khub_arg_string("a longer text"), khub_arg_string("float16"), khub_arg_string("cuda:2"),
               khub_arg_string("strided"), khub_arg_string("preserve_format"), khub_arg_int(-1),
               khub_arg_float(-0.0), khub_arg_bool(0), khub_arg_string(""), dtype, khub_arg_string("cpu")),
        X "; some " X
          "; 1; 0; 0x1p+1; false; 'a longer text'; Half; device 1:2; layout 0; format 1; some -1; some "
          "-0x0p+0; some false; some ''; some Int; some device 0:-1");
    khub_value lists[10] = {ints(1, -2),
                            list_of((const khub_value[]){khub_arg_float(0.5), khub_arg_int(3)}, 2),
                            list_of((const khub_value[]){khub_arg_bool(1), khub_arg_bool(0)}, 2),
                            list_of((const khub_value[]){khub_arg_string("a"), khub_arg_string("")}, 2),
                            list_of(&x, 1),
                            list_of((const khub_value[]){none, x}, 2),
                            khub_arg_int(9),
                            ints(4, 5),
                            none,
                            list_of(&dtype, 1)};
    check_text(call_of(NS_STABLE, "lists", lists, 10),
               "[1, -2]; [0x1p-1, 0x1.8p+1]; [true, false]; ['a', '']; [" X "]; [none, some " X
               "]; [9, 9]; some [4, 5]; none; [Int]");
    for (int i = 0; i < 10; i++)
        khub_value_release(&lists[i]);
}

/* What a kernel throws arrives in words, also what no C++ standard knows. */
static void thrown(void)
{
    static const struct {
        const char *ns, *how, *words;
    } cases[] = {{NS_STABLE, "runtime", "RuntimeError: " NS_STABLE "::fail: why"},
                 {NS_STABLE, "check", "why"},
                 {NS_STABLE, "number", "RuntimeError: " NS_STABLE "::fail: UNKNOWN"},
                 {NS_FULL, "runtime", "RuntimeError: " NS_FULL "::fail: "},
                 {NS_FULL, "check", "RuntimeError: " NS_FULL "::fail: "},
                 {NS_FULL, "index", "RuntimeError: " NS_FULL "::fail: "}};
    khub_tensor t = khub_tensor_f32(six, 1, of_three);
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        khub_function f = function_of(find(cases[i].ns, "fail"));
        khub_value args[3] = {khub_arg_tensor(&t), khub_arg_string(cases[i].how), khub_arg_string("why")},
                   result;
        int32_t n = i < 3 ? 3 : 2;
        ck_khub_fails(khub_function_call(&f, args, n, &result, &err), &err, KHUB_E_KERNEL, cases[i].words);
    }
}

/* An operator that gives something else than the argument which its schema says: that is what comes. */
static void lies(void)
{
    float x[6] = {1, 2, 3, 4, 5, 6};
    khub_tensor t = khub_tensor_f32(x, 2, two_three);
    khub_value same = khub_arg_tensor(&t), y;
    int asked;
    y = COUNTING(&asked, NS_FULL, "lie", same, khub_arg_string("no"));
    ck_assert(asked == 0 && tensor_of(&y, 2, two_three)->data == x);
    khub_value_release(&y);
    y = COUNTING(&asked, NS_FULL, "lie", same, khub_arg_string("copy"));
    ck_assert(asked == 1 && khub_value_tensor(&y)->data != x);
    check_floats(y, 2, two_three, six, 6);
    y = COUNTING(&asked, NS_FULL, "lie", same, khub_arg_string("dtype"));
    const khub_tensor *back = tensor_of(&y, 2, two_three);
    ck_assert(asked == 1 && back->data == x && back->dtype.code == KHUB_DTYPE_INT && back->dtype.bits == 32);
    khub_value_release(&y);
    y = COUNTING(&asked, NS_FULL, "lie", same, khub_arg_string("part"));
    ck_assert(tensor_of(&y, 2, (int64_t[]){1, 3})->data == x + 3);
    khub_value_release(&y);
    ck_assert_int_eq(COUNTING(&asked, NS_FULL, "lie", same, khub_arg_string("undefined")).type,
                     KHUB_TYPE_NONE);
    khub_function f = function_of(find(NS_FULL, "lie"));
    khub_value args[2] = {same, khub_arg_string("sparse")};
    ck_khub_fails(khub_function_call(&f, args, 2, &y, &err), &err, KHUB_E_KERNEL,
                  "result 1 is a tensor without strides");
}

/* An older libtorch, as far as it is one: what came later isn't there. The last thing that a process does. */
static void older_ones(void)
{
    khub_value list = ints(3, 2);
    khub__shim.call_versioned = NULL; /* 2.10 */
    khub__shim.what = NULL;           /* 2.13 */
    khub__shim.from_blob = NULL;      /* 2.11 */
    khub__shim.is_defined = NULL;     /* 2.9 */
    khub__shim.new_value = NULL;      /* 2.13 */
    khub__shim.delete_value = NULL;
    khub_tensor t = khub_tensor_f32(six, 2, two_three);
    khub_value x = khub_arg_tensor(&t);
    check_floats(CALL("relu", x), 2, two_three, six, 6);
    results_as_arguments();
    given_back();
    check_floats(KERNEL("perhaps", x), 2, two_three, FLOATS(2, 4, 6, 8, 10, 12));
    khub_tensor weight = khub_tensor_f32(six, 2, (int64_t[]){1, 3}),
                bias = khub_tensor_f32(six, 1, (int64_t[]){1});
    check_floats(CALL("linear", x, khub_arg_tensor(&weight), khub_arg_tensor(&bias)), 2, (int64_t[]){2, 1},
                 FLOATS(15, 33));
    check_floats(CALL("linear", x, khub_arg_tensor(&weight)), 2, (int64_t[]){2, 1}, FLOATS(14, 32));
    ck_call_fails("RuntimeError: aten::mm: failed; libtorch says why on stderr", "mm", x, x);
    check_floats(CALL("reshape", x, list), 2, three_two, six, 6);
    khub__shim.new_list = NULL; /* 2.10 */
    khub__shim.new_string = NULL;
    ck_call_fails("\"shape\", a list can be passed from Torch 2.10 on", "reshape", x, list);
    ck_call_fails("\"approximate\", a str can be passed from Torch 2.10 on", "gelu", x);
    khub_value_release(&list);
}

START_TEST(kernels)
{
    torch_open();
    load("stable");
    load("full");
    same();
    optional_results();
    thrown();
    check_text(call_of(NS_STABLE, "initialised", NULL, 0), "made while it was loaded");
    check_text(
        call_of(NS_STABLE, "defaults", NULL, 0),
        "-3; 1; 0x1.4p+1; 0x1.8p+1; 0x1.4f8b588e368f1p-17; true; 'so'; 'it's \"so\"'; BFloat16; device 0:-1; "
        "layout 0; format 0; [1, -2, 3]; []; [4, 4]; [0x1p-1, 0x1p+1]; [true, false]; none; none; some "
        "0x1p-2; "
        "none; none");
    in_words();
    khub_tensor t = khub_tensor_f32(six, 1, of_three);
    khub_value x = khub_arg_tensor(&t), full = call_of(NS_FULL, "undefined", &x, 1);
    ck_assert_int_eq(full.type, KHUB_TYPE_NONE);
    lies();
    ck_assert_int_eq(call_of(NS_FULL, "grad_mode", NULL, 0).as.i64, 0);
    khub__torch_set_threads(3);
    ck_assert_int_eq(call_of(NS_FULL, "threads", NULL, 0).as.i64, 3);
    ck_assert_str_eq(khub__torch_operator_refusal(find(NS_FULL, "with_scalar")),
                     "it takes Scalar (\"factor\"), which libtorch's C interface can't pass");
    ck_assert_str_eq(khub__torch_operator_refusal(find(NS_FULL, "with_table")),
                     "it takes Dict(str, Tensor) (\"table\"), which libtorch's C interface can't pass");
    /* as long as libtorch takes the last result for one of the first one's type */
    ck_assert_str_eq(khub__torch_operator_refusal(find("aten", "_choose_qparams_per_tensor")),
                     "its results are of several types, which libtorch's C interface mixes up");
    older_ones();
}
END_TEST

UNIT("torch", all_schemas, atens_operators, kernels)
