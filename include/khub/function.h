/* The one calling convention: everything callable has tvm-ffi's signature, whoever wrote it. */
#ifndef KHUB_FUNCTION_H
#define KHUB_FUNCTION_H

#include <khub/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* TVMFFITypeIndex: what a khub_value holds. From KHUB_TYPE_OBJECT on it is a counted object. */
typedef enum khub_type {
    KHUB_TYPE_NONE = 0,
    KHUB_TYPE_INT = 1,
    KHUB_TYPE_BOOL = 2,
    KHUB_TYPE_FLOAT = 3,
    KHUB_TYPE_POINTER = 4,
    KHUB_TYPE_DTYPE = 5,
    KHUB_TYPE_DEVICE = 6,
    KHUB_TYPE_TENSOR_VIEW = 7, /* a borrowed khub_tensor */
    KHUB_TYPE_CSTRING = 8,     /* a borrowed NUL-terminated string */
    KHUB_TYPE_BYTES_VIEW = 9,
    KHUB_TYPE_SMALL_STR = 11, /* up to 7 bytes inside the value */
    KHUB_TYPE_SMALL_BYTES = 12,
    KHUB_TYPE_OBJECT = 64,
    KHUB_TYPE_STR = 65,
    KHUB_TYPE_BYTES = 66,
    KHUB_TYPE_ERROR = 67,
    KHUB_TYPE_FUNCTION = 68,
    KHUB_TYPE_SHAPE = 69,
    KHUB_TYPE_TENSOR = 70,
    KHUB_TYPE_ARRAY = 71,
    KHUB_TYPE_MAP = 72,
    KHUB_TYPE_MODULE = 73
} khub_type;

/* TVMFFIAny: 16 bytes. An argument may borrow; a result owns what it holds (khub_value_release). */
typedef struct khub_value {
    int32_t type;       /* a khub_type, or a tvm-ffi type registered at run time */
    uint32_t small_len; /* length of a small string; 0 for everything else */
    union {
        int64_t i64;
        double f64;
        void *ptr;
        const char *str;
        khub_tensor *tensor;
        khub_dtype dtype;
        khub_device device;
        char bytes[8];
        uint64_t bits;
    } as;
} khub_value;

/* TVMFFISafeCallType. Returns 0, or not 0 after raising an error (a kernel through tvm-ffi, a function of
 * one's own through khub_raise). `result` holds None on entry. May be called from any thread that the
 * function's own documentation allows. */
typedef int (*khub_call_fn)(void *self, const khub_value *args, int32_t n, khub_value *result);

/* A function and what it works on. Owns nothing; valid as long as what gave it (a khub_kernel, …). */
typedef struct khub_function {
    khub_call_fn call;
    void *self;
} khub_function;

static inline khub_value khub_value_of(int32_t type, uint64_t bits)
{
    khub_value v;
    v.type = type;
    v.small_len = 0;
    v.as.bits = bits;
    return v;
}

static inline khub_value khub_arg_none(void)
{
    return khub_value_of(KHUB_TYPE_NONE, 0);
}
static inline khub_value khub_arg_int(int64_t value)
{
    return khub_value_of(KHUB_TYPE_INT, (uint64_t)value);
}
static inline khub_value khub_arg_bool(int value)
{
    return khub_value_of(KHUB_TYPE_BOOL, value != 0);
}
static inline khub_value khub_arg_float(double value)
{
    khub_value v = khub_value_of(KHUB_TYPE_FLOAT, 0);
    v.as.f64 = value;
    return v;
}
/* Borrowed for the call; NULL is None. */
static inline khub_value khub_arg_tensor(const khub_tensor *tensor)
{
    khub_value v = khub_value_of(tensor ? KHUB_TYPE_TENSOR_VIEW : KHUB_TYPE_NONE, 0);
    v.as.tensor = (khub_tensor *)(uintptr_t)tensor;
    return v;
}
/* Borrowed for the call; NULL is None. */
static inline khub_value khub_arg_string(const char *text)
{
    khub_value v = khub_value_of(text ? KHUB_TYPE_CSTRING : KHUB_TYPE_NONE, 0);
    v.as.str = text;
    return v;
}

/* The tensor in a value, borrowed from it; NULL when it holds none. */
KHUB_API const khub_tensor *khub_value_tensor(const khub_value *value);

/* The text in a value (string, small string, C string), borrowed from it; NULL when it holds none. */
KHUB_API const char *khub_value_text(const khub_value *value, size_t *length);

/* The values in an array (several results, a list), borrowed from it; NULL and 0 when it holds none. */
KHUB_API const khub_value *khub_value_items(const khub_value *value, size_t *count);

/* Makes *out an array of copies of `count` values, as an argument that is a list. Objects among them live as
 * long as the array; what borrows (a khub_tensor, a C string) must outlive it. *out is the caller's
 * (khub_value_release). KHUB_E_INVAL, KHUB_E_NOMEM; then *out is None. */
KHUB_API int khub_value_array(khub_value *out, const khub_value *items, size_t count, khub_error *err);

/* Gives up what a result holds and makes it None. NULL is a no-op. */
KHUB_API void khub_value_release(khub_value *value);

/* For functions of one's own: sets this thread's error before returning -1. `kind` as in Python
 * ("ValueError", "TypeError", "RuntimeError"). Never fails; long text is cut. Returns -1. */
KHUB_API int khub_raise(const char *kind, const char *format, ...) KHUB_PRINTF(2, 3);

/* The uncommon half of khub_function_call: moves the callee's error into *err, releases unwanted results. */
KHUB_API int khub__function_settle(int rc, khub_value *result, int keep, khub_error *err);

/* Calls f. *result (may be NULL: an object that comes back is released) is the caller's to release. Costs
 * the indirect call and two comparisons. KHUB_OK, or KHUB_E_KERNEL with kind and message in *err; then
 * *result is None. */
static inline int khub_function_call(const khub_function *f, const khub_value *args, int32_t n,
                                     khub_value *result, khub_error *err)
{
    khub_value local = khub_value_of(KHUB_TYPE_NONE, 0);
    if (result) *result = local;
    khub_value *out = result ? result : &local;
    int rc = f->call(f->self, args, n, out);
    if (rc == 0 && (result || local.type < KHUB_TYPE_OBJECT)) return KHUB_OK;
    return khub__function_settle(rc, out, result != NULL, err);
}

/* As khub_function_call, with `stream` (a cudaStream_t, a hipStream_t, …) as the device's stream while f
 * runs: what tvm-ffi's kernels ask for with TVMFFIEnvGetStream. Of this thread only; the one before is back
 * when this returns, whether f failed or not. KHUB_E_UNSUPPORTED, f not called: no kernel was loaded in this
 * process, or its libtvm_ffi knows no streams. */
KHUB_API int khub_function_call_on(const khub_function *f, khub_device device, void *stream,
                                   const khub_value *args, int32_t n, khub_value *result, khub_error *err);

#ifdef __cplusplus
}
/* khub_call(&f, &err, khub_arg_tensor(&y), khub_arg_float(2.0)): no result wanted. */
template <typename... Args> static inline int khub_call(const khub_function *f, khub_error *err, Args... args)
{
    const khub_value list[] = {args...};
    return khub_function_call(f, list, (int32_t)sizeof...(Args), nullptr, err);
}
#else
/* khub_call(&f, &err, khub_arg_tensor(&y), khub_arg_float(2.0)): no result wanted. */
#define khub_call(f, err, ...)                                                                               \
    khub_function_call((f), (const khub_value[]){__VA_ARGS__},                                               \
                       (int32_t)(sizeof((const khub_value[]){__VA_ARGS__}) / sizeof(khub_value)), NULL,      \
                       (err))
#endif

#endif
