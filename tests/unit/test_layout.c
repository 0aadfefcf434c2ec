/* Our structs are laid out as DLPack's and tvm-ffi's, so that pointers pass through unchanged: sizes, offsets
 * and numbers against the headers of the pinned package. */
#include "unit.h"

#include "tensor/object.h"

#include <khub/function.h>

#include <tvm/ffi/c_api.h>

#define SAME_SIZE(ours, theirs)                                                                              \
    do {                                                                                                     \
        ck_assert_uint_eq(sizeof(ours), sizeof(theirs));                                                     \
        ck_assert_uint_eq(_Alignof(ours), _Alignof(theirs));                                                 \
    } while (0)
#define SAME_FIELD(ours, a, theirs, b)                                                                       \
    do {                                                                                                     \
        ck_assert_uint_eq(offsetof(ours, a), offsetof(theirs, b));                                           \
        ck_assert_uint_eq(sizeof(((ours *)0)->a), sizeof(((theirs *)0)->b));                                 \
    } while (0)

START_TEST(tensor_is_dltensor)
{
    SAME_SIZE(khub_tensor, DLTensor);
    ck_assert_uint_eq(sizeof(khub_tensor), 48);
    SAME_FIELD(khub_tensor, data, DLTensor, data);
    SAME_FIELD(khub_tensor, device, DLTensor, device);
    SAME_FIELD(khub_tensor, ndim, DLTensor, ndim);
    SAME_FIELD(khub_tensor, dtype, DLTensor, dtype);
    SAME_FIELD(khub_tensor, shape, DLTensor, shape);
    SAME_FIELD(khub_tensor, strides, DLTensor, strides);
    SAME_FIELD(khub_tensor, byte_offset, DLTensor, byte_offset);
}
END_TEST

START_TEST(dtype_is_dldatatype)
{
    SAME_SIZE(khub_dtype, DLDataType);
    SAME_FIELD(khub_dtype, code, DLDataType, code);
    SAME_FIELD(khub_dtype, bits, DLDataType, bits);
    SAME_FIELD(khub_dtype, lanes, DLDataType, lanes);
}
END_TEST

START_TEST(device_is_dldevice)
{
    SAME_SIZE(khub_device, DLDevice);
    SAME_FIELD(khub_device, type, DLDevice, device_type);
    SAME_FIELD(khub_device, id, DLDevice, device_id);
}
END_TEST

START_TEST(value_is_tvmffiany)
{
    SAME_SIZE(khub_value, TVMFFIAny);
    ck_assert_uint_eq(sizeof(khub_value), 16);
    SAME_FIELD(khub_value, type, TVMFFIAny, type_index);
    SAME_FIELD(khub_value, small_len, TVMFFIAny, small_str_len);
    SAME_FIELD(khub_value, as.i64, TVMFFIAny, v_int64);
    SAME_FIELD(khub_value, as.f64, TVMFFIAny, v_float64);
    SAME_FIELD(khub_value, as.ptr, TVMFFIAny, v_ptr);
    SAME_FIELD(khub_value, as.str, TVMFFIAny, v_c_str);
    SAME_FIELD(khub_value, as.tensor, TVMFFIAny, v_obj);
    SAME_FIELD(khub_value, as.dtype, TVMFFIAny, v_dtype);
    SAME_FIELD(khub_value, as.device, TVMFFIAny, v_device);
    SAME_FIELD(khub_value, as.bytes, TVMFFIAny, v_bytes);
    SAME_FIELD(khub_value, as.bits, TVMFFIAny, v_uint64);
}
END_TEST

START_TEST(objects_are_tvm_ffi_s)
{
    SAME_SIZE(khub__object, TVMFFIObject);
    SAME_FIELD(khub__object, counts, TVMFFIObject, combined_ref_count);
    SAME_FIELD(khub__object, type, TVMFFIObject, type_index);
    SAME_FIELD(khub__object, deleter, TVMFFIObject, deleter);
    SAME_SIZE(khub__byte_cell, TVMFFIByteArray);
    SAME_FIELD(khub__byte_cell, data, TVMFFIByteArray, data);
    SAME_FIELD(khub__byte_cell, size, TVMFFIByteArray, size);
    SAME_SIZE(khub__items_cell, TVMFFISeqCell);
    SAME_FIELD(khub__items_cell, items, TVMFFISeqCell, data);
    SAME_FIELD(khub__items_cell, count, TVMFFISeqCell, size);
    SAME_FIELD(khub__items_cell, capacity, TVMFFISeqCell, capacity);
    SAME_FIELD(khub__items_cell, delete_items, TVMFFISeqCell, data_deleter);
    SAME_SIZE(khub__shape_cell, TVMFFIShapeCell);
    SAME_FIELD(khub__shape_cell, data, TVMFFIShapeCell, data);
    SAME_FIELD(khub__shape_cell, size, TVMFFIShapeCell, size);
    SAME_FIELD(khub__error_cell, kind, TVMFFIErrorCell, kind);
    SAME_FIELD(khub__error_cell, message, TVMFFIErrorCell, message);
}
END_TEST

START_TEST(call_is_safe_call)
{
    /* the same up to what the pointers point to, which the tests above cover */
    int (*theirs)(void *, const TVMFFIAny *, int32_t, TVMFFIAny *) = (TVMFFISafeCallType)0;
    int (*ours)(void *, const khub_value *, int32_t, khub_value *) = (khub_call_fn)0;
    ck_assert(!theirs && !ours);
}
END_TEST

START_TEST(numbers)
{
    static const struct {
        const char *what;
        int ours, theirs;
    } table[] = {
#define PAIR(ours, theirs) {#ours, ours, theirs}
        PAIR(KHUB_DTYPE_INT, kDLInt),
        PAIR(KHUB_DTYPE_UINT, kDLUInt),
        PAIR(KHUB_DTYPE_FLOAT, kDLFloat),
        PAIR(KHUB_DTYPE_OPAQUE, kDLOpaqueHandle),
        PAIR(KHUB_DTYPE_BFLOAT, kDLBfloat),
        PAIR(KHUB_DTYPE_COMPLEX, kDLComplex),
        PAIR(KHUB_DTYPE_BOOL, kDLBool),
        PAIR(KHUB_DTYPE_FLOAT8_E4M3FN, kDLFloat8_e4m3fn),
        PAIR(KHUB_DTYPE_FLOAT8_E5M2, kDLFloat8_e5m2),
        PAIR(KHUB_DEVICE_CPU, kDLCPU),
        PAIR(KHUB_DEVICE_CUDA, kDLCUDA),
        PAIR(KHUB_DEVICE_CUDA_HOST, kDLCUDAHost),
        PAIR(KHUB_DEVICE_METAL, kDLMetal),
        PAIR(KHUB_DEVICE_ROCM, kDLROCM),
        PAIR(KHUB_DEVICE_ROCM_HOST, kDLROCMHost),
        PAIR(KHUB_DEVICE_ONEAPI, kDLOneAPI),
        PAIR(KHUB_TYPE_NONE, kTVMFFINone),
        PAIR(KHUB_TYPE_INT, kTVMFFIInt),
        PAIR(KHUB_TYPE_BOOL, kTVMFFIBool),
        PAIR(KHUB_TYPE_FLOAT, kTVMFFIFloat),
        PAIR(KHUB_TYPE_POINTER, kTVMFFIOpaquePtr),
        PAIR(KHUB_TYPE_DTYPE, kTVMFFIDataType),
        PAIR(KHUB_TYPE_DEVICE, kTVMFFIDevice),
        PAIR(KHUB_TYPE_TENSOR_VIEW, kTVMFFIDLTensorPtr),
        PAIR(KHUB_TYPE_CSTRING, kTVMFFIRawStr),
        PAIR(KHUB_TYPE_BYTES_VIEW, kTVMFFIByteArrayPtr),
        PAIR(KHUB_TYPE_SMALL_STR, kTVMFFISmallStr),
        PAIR(KHUB_TYPE_SMALL_BYTES, kTVMFFISmallBytes),
        PAIR(KHUB_TYPE_OBJECT, kTVMFFIStaticObjectBegin),
        PAIR(KHUB_TYPE_STR, kTVMFFIStr),
        PAIR(KHUB_TYPE_BYTES, kTVMFFIBytes),
        PAIR(KHUB_TYPE_ERROR, kTVMFFIError),
        PAIR(KHUB_TYPE_FUNCTION, kTVMFFIFunction),
        PAIR(KHUB_TYPE_SHAPE, kTVMFFIShape),
        PAIR(KHUB_TYPE_TENSOR, kTVMFFITensor),
        PAIR(KHUB_TYPE_ARRAY, kTVMFFIArray),
        PAIR(KHUB_TYPE_MAP, kTVMFFIMap),
        PAIR(KHUB_TYPE_MODULE, kTVMFFIModule),
#undef PAIR
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
        ck_assert_msg(table[i].ours == table[i].theirs, "%s is %d, tvm-ffi says %d", table[i].what,
                      table[i].ours, table[i].theirs);
}
END_TEST

UNIT("layout", tensor_is_dltensor, dtype_is_dldatatype, device_is_dldevice, value_is_tvmffiany,
     objects_are_tvm_ffi_s, call_is_safe_call, numbers)
