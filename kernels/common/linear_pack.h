/* NAME(prepared, weight): a weight (n, k) as the loops of a linear layer want it. Without memory, `prepared`
 * gets shape and dtype, and nothing else happens. */
#ifndef KHUB_KERNELS_LINEAR_PACK_H
#define KHUB_KERNELS_LINEAR_PACK_H

#include "ffi.h"

typedef struct khub__packer {
    const khub__signature *signature; /* of both arguments */
    void (*size)(DLTensor *prepared,
                 const khub__call *call); /* what is asked for, by the weight's n, k, type */
    int (*run)(const khub__call *call);
} khub__packer;

/* Raises an error where a packed weight (panels, rows, width) has gaps, which the loops would read. */
int khub__check_gaps(const khub__call *call, int param);

int khub__linear_pack(const khub__packer *packer, const TVMFFIAny *args, int32_t n);

/* NAME by NAME_signature, NAME_size and NAME_run. */
#define KHUB__EXPORT_PACK(NAME)                                                                              \
    KHUB__EXPORT_TEXT(_metadata_##NAME, khub__metadata, NAME)                                                \
    KHUB__EXPORT_TEXT(_doc_##NAME, khub__doc, NAME)                                                          \
    TVM_FFI_DLL_EXPORT int __tvm_ffi_##NAME(void *, const TVMFFIAny *, int32_t, TVMFFIAny *);                \
    int __tvm_ffi_##NAME(void *self, const TVMFFIAny *args, int32_t n, TVMFFIAny *result)                    \
    {                                                                                                        \
        static const khub__packer packer = {&NAME##_signature, NAME##_size, NAME##_run};                     \
        (void)self, (void)result;                                                                            \
        return khub__linear_pack(&packer, args, n);                                                          \
    }

#endif
