/* Values and errors without a runtime in the process; with one: test_kernel_call.c. */
#include "unit.h"

#include "tensor/value.h"

#include <pthread.h>
#include <stdlib.h>
#include <tvm/ffi/c_api.h>

#define SAME_FIELD(ours, our_field, theirs, their_field)                                                     \
    _Static_assert(offsetof(ours, our_field) == offsetof(theirs, their_field) &&                             \
                       sizeof(((ours *)0)->our_field) == sizeof(((theirs *)0)->their_field),                 \
                   #ours "." #our_field)
#define SAME_SIZE(ours, theirs)                                                                              \
    _Static_assert(sizeof(ours) == sizeof(theirs) && _Alignof(ours) == _Alignof(theirs), #ours)

SAME_SIZE(khub_value, TVMFFIAny);
SAME_FIELD(khub_value, type, TVMFFIAny, type_index);
SAME_FIELD(khub_value, small_len, TVMFFIAny, small_str_len);
SAME_FIELD(khub_value, as, TVMFFIAny, v_int64);
SAME_SIZE(khub__object, TVMFFIObject);
SAME_FIELD(khub__object, counts, TVMFFIObject, combined_ref_count);
SAME_FIELD(khub__object, type, TVMFFIObject, type_index);
SAME_FIELD(khub__object, deleter, TVMFFIObject, deleter);
SAME_SIZE(khub__byte_cell, TVMFFIByteArray);
SAME_FIELD(khub__byte_cell, data, TVMFFIByteArray, data);
SAME_FIELD(khub__byte_cell, size, TVMFFIByteArray, size);
SAME_FIELD(khub__error_cell, kind, TVMFFIErrorCell, kind);
SAME_FIELD(khub__error_cell, message, TVMFFIErrorCell, message);
SAME_SIZE(khub_tensor, DLTensor);
SAME_FIELD(khub_tensor, data, DLTensor, data);
SAME_FIELD(khub_tensor, device, DLTensor, device);
SAME_FIELD(khub_tensor, ndim, DLTensor, ndim);
SAME_FIELD(khub_tensor, dtype, DLTensor, dtype);
SAME_FIELD(khub_tensor, shape, DLTensor, shape);
SAME_FIELD(khub_tensor, strides, DLTensor, strides);
SAME_FIELD(khub_tensor, byte_offset, DLTensor, byte_offset);
SAME_SIZE(khub_dtype, DLDataType);
SAME_FIELD(khub_dtype, code, DLDataType, code);
SAME_FIELD(khub_dtype, bits, DLDataType, bits);
SAME_FIELD(khub_dtype, lanes, DLDataType, lanes);
SAME_SIZE(khub_device, DLDevice);
SAME_FIELD(khub_device, type, DLDevice, device_type);
SAME_FIELD(khub_device, id, DLDevice, device_id);

START_TEST(type_numbers_are_tvm_ffi_s)
{
    static const struct {
        int ours, theirs;
    } table[] = {
        {KHUB_TYPE_NONE, kTVMFFINone},
        {KHUB_TYPE_INT, kTVMFFIInt},
        {KHUB_TYPE_BOOL, kTVMFFIBool},
        {KHUB_TYPE_FLOAT, kTVMFFIFloat},
        {KHUB_TYPE_POINTER, kTVMFFIOpaquePtr},
        {KHUB_TYPE_DTYPE, kTVMFFIDataType},
        {KHUB_TYPE_DEVICE, kTVMFFIDevice},
        {KHUB_TYPE_TENSOR_VIEW, kTVMFFIDLTensorPtr},
        {KHUB_TYPE_CSTRING, kTVMFFIRawStr},
        {KHUB_TYPE_BYTES_VIEW, kTVMFFIByteArrayPtr},
        {KHUB_TYPE_SMALL_STR, kTVMFFISmallStr},
        {KHUB_TYPE_SMALL_BYTES, kTVMFFISmallBytes},
        {KHUB_TYPE_OBJECT, kTVMFFIStaticObjectBegin},
        {KHUB_TYPE_STR, kTVMFFIStr},
        {KHUB_TYPE_BYTES, kTVMFFIBytes},
        {KHUB_TYPE_ERROR, kTVMFFIError},
        {KHUB_TYPE_FUNCTION, kTVMFFIFunction},
        {KHUB_TYPE_SHAPE, kTVMFFIShape},
        {KHUB_TYPE_TENSOR, kTVMFFITensor},
        {KHUB_TYPE_ARRAY, kTVMFFIArray},
        {KHUB_TYPE_MAP, kTVMFFIMap},
        {KHUB_TYPE_MODULE, kTVMFFIModule},
        {KHUB_DTYPE_INT, kDLInt},
        {KHUB_DTYPE_UINT, kDLUInt},
        {KHUB_DTYPE_FLOAT, kDLFloat},
        {KHUB_DTYPE_OPAQUE, kDLOpaqueHandle},
        {KHUB_DTYPE_BFLOAT, kDLBfloat},
        {KHUB_DTYPE_COMPLEX, kDLComplex},
        {KHUB_DTYPE_BOOL, kDLBool},
        {KHUB_DTYPE_FLOAT8_E4M3FN, kDLFloat8_e4m3fn},
        {KHUB_DTYPE_FLOAT8_E5M2, kDLFloat8_e5m2},
        {KHUB_DEVICE_CPU, kDLCPU},
        {KHUB_DEVICE_CUDA, kDLCUDA},
        {KHUB_DEVICE_CUDA_HOST, kDLCUDAHost},
        {KHUB_DEVICE_METAL, kDLMetal},
        {KHUB_DEVICE_ROCM, kDLROCM},
        {KHUB_DEVICE_ROCM_HOST, kDLROCMHost},
        {KHUB_DEVICE_ONEAPI, kDLOneAPI},
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
        ck_assert_int_eq(table[i].ours, table[i].theirs);
}
END_TEST

START_TEST(arguments)
{
    TVMFFIAny any;
    khub_value v = khub_arg_int(-7);
    memcpy(&any, &v, sizeof(any));
    ck_assert(any.type_index == kTVMFFIInt && any.zero_padding == 0 && any.v_int64 == -7);
    v = khub_arg_float(2.5);
    memcpy(&any, &v, sizeof(any));
    ck_assert(any.type_index == kTVMFFIFloat && any.zero_padding == 0 && any.v_float64 == 2.5);
    v = khub_arg_bool(17);
    memcpy(&any, &v, sizeof(any));
    ck_assert(any.type_index == kTVMFFIBool && any.v_int64 == 1);
    v = khub_arg_string("abc");
    ck_assert_int_eq(v.type, KHUB_TYPE_CSTRING);
    ck_assert_str_eq(v.as.str, "abc");
    ck_assert_int_eq(khub_arg_string(NULL).type, KHUB_TYPE_NONE);
    ck_assert_int_eq(khub_arg_tensor(NULL).type, KHUB_TYPE_NONE);
}
END_TEST

/* Objects laid out by tvm-ffi's own header. */
struct string_object {
    TVMFFIObject header;
    TVMFFIByteArray cell;
};
struct tensor_object {
    TVMFFIObject header;
    DLTensor cell;
};

START_TEST(text_of_values)
{
    size_t n = 99;
    khub_value v = khub_arg_string("hello");
    ck_assert_str_eq(khub_value_text(&v, &n), "hello");
    ck_assert_uint_eq(n, 5);
    v = khub_value_of(KHUB_TYPE_SMALL_STR, 0);
    memcpy(v.as.bytes, "abc", 4);
    v.small_len = 3;
    ck_assert_str_eq(khub_value_text(&v, NULL), "abc");
    v.small_len = 8; /* more than a value holds */
    ck_assert_ptr_null(khub_value_text(&v, &n));
    ck_assert_uint_eq(n, 0);
    struct string_object object = {.header = {.type_index = kTVMFFIStr}, .cell = {"a long text", 11}};
    v = khub_value_of(KHUB_TYPE_STR, 0);
    v.as.ptr = &object;
    ck_assert_str_eq(khub_value_text(&v, &n), "a long text");
    ck_assert_uint_eq(n, 11);
    v.as.ptr = NULL;
    ck_assert_ptr_null(khub_value_text(&v, &n));
    v = khub_arg_int(1);
    ck_assert_ptr_null(khub_value_text(&v, &n));
    ck_assert_ptr_null(khub_value_text(NULL, &n));
}
END_TEST

START_TEST(tensor_of_values)
{
    khub_tensor view = {0};
    khub_value v = khub_arg_tensor(&view);
    ck_assert_ptr_eq(khub_value_tensor(&v), &view);
    struct tensor_object object = {.header = {.type_index = kTVMFFITensor}, .cell = {.ndim = 3}};
    v = khub_value_of(KHUB_TYPE_TENSOR, 0);
    v.as.ptr = &object;
    ck_assert_ptr_eq(khub_value_tensor(&v), &object.cell);
    ck_assert_int_eq(khub_value_tensor(&v)->ndim, 3);
    v = khub_arg_int(1);
    ck_assert_ptr_null(khub_value_tensor(&v));
    ck_assert_ptr_null(khub_value_tensor(NULL));
}
END_TEST

static int own(void *self, const khub_value *args, int32_t n, khub_value *result)
{
    int *times = self;
    ++*times;
    if (n == 0) return -1;
    if (args[0].type != KHUB_TYPE_INT)
        return khub_raise("TypeError", "argument %d is of type %d", 0, args[0].type);
    *result = khub_arg_int(args[0].as.i64 + 1);
    return 0;
}

START_TEST(function_of_one_s_own)
{
    int times = 0;
    khub_function f = {own, &times};
    khub_error err = {0};
    khub_value result = khub_arg_int(5), one = khub_arg_int(1);
    ck_khub_ok(khub_function_call(&f, &one, 1, &result, &err), &err);
    ck_assert_int_eq(result.as.i64, 2);
    ck_khub_ok(khub_call(&f, &err, khub_arg_int(1)), &err);
    ck_khub_fails(khub_call(&f, &err, khub_arg_float(1)), &err, KHUB_E_KERNEL,
                  "TypeError: argument 0 is of type 3");
    ck_khub_fails(khub_function_call(&f, NULL, 0, &result, &err), &err, KHUB_E_KERNEL,
                  "failed without a message");
    ck_assert_int_eq(result.type, KHUB_TYPE_NONE);
    ck_assert_int_eq(khub_call(&f, NULL, khub_arg_float(1)), KHUB_E_KERNEL);
    ck_assert_int_eq(times, 5);
}
END_TEST

START_TEST(raised_text_is_bounded)
{
    char *text = malloc(100001);
    memset(text, 'x', 100000);
    text[100000] = 0;
    khub_error err = {0};
    khub_value result = khub_arg_none();
    ck_assert_int_eq(khub_raise(text, "%s", text), -1);
    ck_khub_fails(khub__function_settle(-1, &result, 1, &err), &err, KHUB_E_KERNEL, "xxx: xxx");
    ck_assert_int_eq(khub_raise(NULL, "no kind"), -1);
    ck_assert_int_eq(khub__function_settle(-1, &result, 1, &err), KHUB_E_KERNEL);
    ck_assert_str_eq(err.message, "no kind");
    free(text);
}
END_TEST

static void *raise_elsewhere(void *user)
{
    khub_raise("ValueError", "of the other thread");
    return user;
}

START_TEST(errors_belong_to_a_thread)
{
    pthread_t thread;
    ck_assert_int_eq(pthread_create(&thread, NULL, raise_elsewhere, NULL), 0);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    khub_error err = {0};
    khub_value result = khub_arg_none();
    ck_khub_fails(khub__function_settle(-1, &result, 1, &err), &err, KHUB_E_KERNEL, "without a message");
}
END_TEST

UNIT("value", type_numbers_are_tvm_ffi_s, arguments, text_of_values, tensor_of_values, function_of_one_s_own,
     raised_text_is_bounded, errors_belong_to_a_thread)
