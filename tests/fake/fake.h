/* What the fake kernels share: tvm-ffi's own header, and how one of them is written in C. */
#ifndef FAKE_H
#define FAKE_H

#include <tvm/ffi/c_api.h>
#include <tvm/ffi/extra/c_env_api.h>

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* One exported function. */
#define FAKE(name)                                                                                           \
    TVM_FFI_DLL_EXPORT int __tvm_ffi_##name(void *self, const TVMFFIAny *args, int32_t n,                    \
                                            TVMFFIAny *result);                                              \
    TVM_FFI_DLL_EXPORT int __tvm_ffi_##name(void *self, const TVMFFIAny *args, int32_t n, TVMFFIAny *result)

/* Its arguments that aren't looked at. */
#define UNUSED ((void)self, (void)args, (void)n, (void)result)

static inline int give_text(TVMFFIAny *result, const char *text)
{
    TVMFFIByteArray bytes = {text, strlen(text)};
    return TVMFFIStringFromByteArray(&bytes, result);
}

static inline int give_int(TVMFFIAny *result, int64_t value)
{
    result->type_index = kTVMFFIInt;
    result->zero_padding = 0;
    result->v_int64 = value;
    return 0;
}

/* Without a backtrace: libtvm_ffi reads all debug information for one, which takes longer than most tests. */
static inline int raise_error(const char *kind, const char *message)
{
    TVMFFIByteArray words[] = {{kind, strlen(kind)}, {message, strlen(message)}, {"", 0}};
    TVMFFIObjectHandle error;
    if (TVMFFIErrorCreate(&words[0], &words[1], &words[2], &error) == 0) {
        TVMFFIErrorSetRaised(error);
        TVMFFIObjectDecRef(error);
    }
    return -1;
}

/* The functions beside a function that hold its type schema and its documentation. */
#define FAKE_SCHEMA(name, schema)                                                                            \
    FAKE(_metadata_##name)                                                                                   \
    {                                                                                                        \
        UNUSED;                                                                                              \
        return give_text(result, "{\"type_schema\":\"" schema "\"}");                                        \
    }
#define FAKE_DOC(name, text)                                                                                 \
    FAKE(_doc_##name)                                                                                        \
    {                                                                                                        \
        UNUSED;                                                                                              \
        return give_text(result, text);                                                                      \
    }

#endif
