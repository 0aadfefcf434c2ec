#include <tvm/ffi/c_api.h>

#define FUNCTION(name)                                                                                       \
    TVM_FFI_DLL_EXPORT int __tvm_ffi_##name(void *self, const TVMFFIAny *args, int32_t n, TVMFFIAny *result)

static int fail(const char *kind, const char *message)
{
    TVMFFIErrorSetRaisedFromCStr(kind, message);
    return -1;
}

/* The float32 tensor on the CPU that an argument is; NULL: it is something else. */
static const DLTensor *floats(const TVMFFIAny *arg)
{
    const DLTensor *t = NULL;
    if (arg->type_index == kTVMFFIDLTensorPtr) t = arg->v_ptr;
    if (arg->type_index == kTVMFFITensor) t = (void *)((char *)arg->v_obj + sizeof(TVMFFIObject));
    return t && t->dtype.code == kDLFloat && t->dtype.bits == 32 && t->device.device_type == kDLCPU ? t
                                                                                                    : NULL;
}

/* The i-th element, row by row. Without strides a tensor has no gaps. */
static float *at(const DLTensor *t, int64_t i)
{
    float *element = (float *)((char *)t->data + t->byte_offset);
    if (!t->strides) return element + i;
    for (int32_t axis = t->ndim; axis-- > 0; i /= t->shape[axis])
        element += i % t->shape[axis] * t->strides[axis];
    return element;
}

FUNCTION(relu)
{
    (void)self, (void)result; /* which is None already */
    const DLTensor *out = n == 2 ? floats(&args[0]) : NULL, *x = n == 2 ? floats(&args[1]) : NULL;
    int64_t count = 1;
    if (!out || !x) return fail("TypeError", "relu takes out and x, float32 tensors on the CPU");
    if (out->ndim != x->ndim) return fail("ValueError", "relu: out and x differ in dimensions");
    for (int32_t axis = 0; axis < x->ndim; count *= x->shape[axis++])
        if (out->shape[axis] != x->shape[axis]) return fail("ValueError", "relu: out and x differ in shape");
    if (count && (!out->data || !x->data)) return fail("ValueError", "relu: a tensor has no memory");
    for (int64_t i = 0; i < count; i++)
        *at(out, i) = *at(x, i) < 0 ? 0 : *at(x, i); /* a NaN stays one */
    return 0;
}

/* What khub functions shows: a function without arguments that returns text. */
#define TEXT(name, text)                                                                                     \
    FUNCTION(name)                                                                                           \
    {                                                                                                        \
        (void)self, (void)args, (void)n;                                                                     \
        return TVMFFIStringFromByteArray(&(TVMFFIByteArray){text, sizeof(text) - 1}, result);                \
    }
TEXT(_doc_relu, "out = max(x, 0), element by element; out may be x")
TEXT(_metadata_relu,
     "{\"type_schema\": \"{\\\"type\\\": \\\"ffi.Function\\\", \\\"args\\\": [{\\\"type\\\": \\\"None\\\"}, "
     "{\\\"type\\\": \\\"DLTensor*\\\"}, {\\\"type\\\": \\\"DLTensor*\\\"}]}\"}")
