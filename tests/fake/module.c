/* What a compiled module exports beside its functions. */
#include "fake.h"

TVM_FFI_DLL_EXPORT void *__tvm_ffi__library_ctx;
void *__tvm_ffi__library_ctx;

FAKE(nothing)
{
    UNUSED;
    return 0;
}
