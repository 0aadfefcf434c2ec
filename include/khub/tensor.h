/* Tensors as DLPack lays them out: memory that somebody else owns, with a shape, a type and a device. */
#ifndef KHUB_TENSOR_H
#define KHUB_TENSOR_H

#include <khub/error.h>

#ifdef __cplusplus
extern "C" {
#endif

/* DLDataTypeCode. */
typedef enum khub_dtype_code {
    KHUB_DTYPE_INT = 0,
    KHUB_DTYPE_UINT = 1,
    KHUB_DTYPE_FLOAT = 2,
    KHUB_DTYPE_OPAQUE = 3,
    KHUB_DTYPE_BFLOAT = 4,
    KHUB_DTYPE_COMPLEX = 5,
    KHUB_DTYPE_BOOL = 6,
    KHUB_DTYPE_FLOAT8_E4M3FN = 10,
    KHUB_DTYPE_FLOAT8_E5M2 = 12
} khub_dtype_code;

/* DLDataType: 4 bytes. `lanes` is 1 for a scalar element. */
typedef struct khub_dtype {
    uint8_t code;
    uint8_t bits;
    uint16_t lanes;
} khub_dtype;

/* DLDeviceType. */
typedef enum khub_device_type {
    KHUB_DEVICE_CPU = 1,
    KHUB_DEVICE_CUDA = 2,
    KHUB_DEVICE_CUDA_HOST = 3,
    KHUB_DEVICE_METAL = 8,
    KHUB_DEVICE_ROCM = 10,
    KHUB_DEVICE_ROCM_HOST = 11,
    KHUB_DEVICE_ONEAPI = 14
} khub_device_type;

/* DLDevice: 8 bytes. */
typedef struct khub_device {
    int32_t type; /* a khub_device_type */
    int32_t id;
} khub_device;

/* DLTensor: 48 bytes. Owns nothing. */
typedef struct khub_tensor {
    void *data;           /* base of the memory; NULL when the tensor has no elements */
    khub_device device;   /* where `data` points */
    int32_t ndim;         /* 0: a scalar */
    khub_dtype dtype;     /* of one element */
    int64_t *shape;       /* ndim extents, in elements */
    int64_t *strides;     /* ndim strides, in elements; NULL: row-major and compact */
    uint64_t byte_offset; /* from `data` to the first element */
} khub_tensor;

/* The most dimensions that khub's own code handles. */
#define KHUB_MAX_NDIM 8

/* A dtype by its name: "float32", "bfloat16", "float16", "float64", "int8" to "int64", "uint8" to "uint64",
 * "bool", "complex64", "complex128", "float8_e4m3fn", "float8_e5m2". KHUB_E_INVAL names the unknown text. */
KHUB_API int khub_dtype_parse(khub_dtype *out, const char *name, khub_error *err);

/* The name of a dtype; "float32x4" forms and unknown codes are written into `buffer` (32 bytes), which is
 * returned. Any thread. */
KHUB_API const char *khub_dtype_name(khub_dtype dtype, char buffer[32]);

/* Number of elements; 1 for a scalar, 0 when an extent is 0, -1 when the product exceeds int64 or an
 * extent is negative. */
KHUB_API int64_t khub_tensor_count(const khub_tensor *tensor);

/* Bytes of the elements laid out compactly, rounded up to whole bytes; -1 as for khub_tensor_count. */
KHUB_API int64_t khub_tensor_bytes(const khub_tensor *tensor);

/* 1 when the elements lie row-major without gaps (extents of 1 may have any stride), else 0. */
KHUB_API int khub_tensor_is_compact(const khub_tensor *tensor);

/* A compact tensor on the CPU over `data`, which the caller owns, as is `shape`, kept by pointer. */
static inline khub_tensor khub_tensor_over(void *data, khub_dtype dtype, int32_t ndim, const int64_t *shape)
{
    khub_tensor t;
    memset(&t, 0, sizeof(t));
    t.data = data;
    t.device.type = KHUB_DEVICE_CPU;
    t.ndim = ndim;
    t.dtype = dtype;
    t.shape = (int64_t *)(uintptr_t)shape;
    return t;
}

static inline khub_dtype khub_dtype_of(uint8_t code, uint8_t bits)
{
    khub_dtype d;
    d.code = code;
    d.bits = bits;
    d.lanes = 1;
    return d;
}

/* The same for float32. */
static inline khub_tensor khub_tensor_f32(float *data, int32_t ndim, const int64_t *shape)
{
    return khub_tensor_over(data, khub_dtype_of(KHUB_DTYPE_FLOAT, 32), ndim, shape);
}

#ifdef __cplusplus
}
#endif

#endif
