/* What a kernel's front has to do with tvm-ffi: signatures, arguments checked against them, errors, exported
 * symbols. */
#ifndef KHUB_KERNELS_FFI_H
#define KHUB_KERNELS_FFI_H

#include "isa.h"
#include "type.h"

#include <tvm/ffi/c_api.h>

enum { KHUB__MAX_PARAMS = 12, KHUB__MAX_AXES = 8 };

typedef enum khub__kind { KHUB__TENSOR, KHUB__OUT, KHUB__FLOAT, KHUB__BOOL, KHUB__INT } khub__kind;

/* A parameter. `shape` has one letter an axis, in order; a letter stands for the same extent wherever it
 * appears, a digit before it for a multiple ("2n"), and '*' at the front for any number of leading axes, the
 * same for all that have it. The last axis is contiguous, any other may have any stride. All tensors of a
 * call are of one type unless `dtype` or `indices` says which. */
typedef struct khub__param {
    const char *name;
    khub__kind kind;    /* OUT: a tensor that is written */
    const char *shape;  /* tensors */
    const char *may_be; /* OUT: the argument whose memory it may be; any other it must not touch */
    int optional;       /* 1: may be None */
    DLDataType dtype;   /* {0}: the call's */
    int indices;        /* 1: of int32 or int64, instead */
} khub__param;

enum { KHUB__TAKES_F32 = 1 << F32, KHUB__TAKES_BF16 = 1 << BF16 };

typedef struct khub__signature {
    const char *name;
    const char *doc;
    const char *not_empty; /* letters of extents that can't be 0 */
    int dtypes;            /* of the call: KHUB__TAKES_F32 | KHUB__TAKES_BF16; on GPUs float16 besides */
    int count;
    khub__param params[KHUB__MAX_PARAMS];
    const char *returns; /* tvm-ffi's name of its type; NULL: None */
} khub__signature;

/* A call whose arguments fit the signature. */
typedef struct khub__call {
    const khub__signature *signature;
    union {
        const DLTensor *tensor; /* NULL: None */
        double f64;
        int flag;
        int64_t i64; /* 0: None */
    } arg[KHUB__MAX_PARAMS];
    int64_t extent['z' + 1]; /* by letter */
    int type;                /* of the call (type.h) */
    int isa;                 /* the path to take */
    DLDevice device;         /* that the tensors are on */
} khub__call;

/* 0; or -1 after raising an error that names function, argument and fact. */
int khub__check(khub__call *call, const khub__signature *signature, const TVMFFIAny *args, int32_t n);

/* Raises an error of Python's kind ("ValueError"), its text "FUNCTION: …". Returns -1. */
int khub__raise(const khub__call *call, const char *kind, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* NAME_run of KHUB__EXPORT. On a GPU (cuda/queue.c) with the call's device and stream being those that are
 * launched on, and an error raised for what can't be launched. */
#if defined(KHUB_ISA_CUDA)
int khub__run(const khub__call *call, int (*run)(const khub__call *));
#else
static inline int khub__run(const khub__call *call, int (*run)(const khub__call *))
{
    return run(call);
}
#endif

/* The first element; NULL for None, and for a tensor without elements that has no memory. */
static inline char *khub__data(const DLTensor *t)
{
    return t && t->data ? (char *)t->data + t->byte_offset : NULL;
}

/* Bytes from one element to the next along an axis; 0 for None. */
int64_t khub__step(const DLTensor *t, int32_t axis);

int khub__metadata(const khub__signature *signature, TVMFFIAny *result);
int khub__doc(const khub__signature *signature, TVMFFIAny *result);

/* Exports `NAME` with the signature NAME_signature; NAME_run(const khub__call *) does the work and returns 0,
 * or -1 after khub__raise. */
#define KHUB__EXPORT(name)                                                                                   \
    TVM_FFI_DLL_EXPORT int __tvm_ffi_##name(void *self, const TVMFFIAny *args, int32_t n,                    \
                                            TVMFFIAny *result);                                              \
    int __tvm_ffi_##name(void *self, const TVMFFIAny *args, int32_t n, TVMFFIAny *result)                    \
    {                                                                                                        \
        khub__call call;                                                                                     \
        (void)self, (void)result; /* it holds None already */                                                \
        return khub__check(&call, &name##_signature, args, n) ? -1 : khub__run(&call, name##_run);           \
    }                                                                                                        \
    KHUB__EXPORT_TEXT(_metadata_##name, khub__metadata, name)                                                \
    KHUB__EXPORT_TEXT(_doc_##name, khub__doc, name)
#define KHUB__EXPORT_TEXT(symbol, get, name)                                                                 \
    TVM_FFI_DLL_EXPORT int __tvm_ffi_##symbol(void *, const TVMFFIAny *, int32_t, TVMFFIAny *);              \
    int __tvm_ffi_##symbol(void *self, const TVMFFIAny *args, int32_t n, TVMFFIAny *result)                  \
    {                                                                                                        \
        (void)self, (void)args, (void)n;                                                                     \
        return get(&name##_signature, result);                                                               \
    }

#endif
