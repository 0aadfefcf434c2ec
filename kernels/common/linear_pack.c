#include "linear_pack.h"

/* The weight alone is checked where `prepared` isn't yet what it will be. */
static int size(const khub__packer *packer, DLTensor *prepared, const TVMFFIAny *weight)
{
    const khub__signature signature = {.name = packer->signature->name,
                                       .not_empty = "",
                                       .dtypes = packer->signature->dtypes,
                                       .count = 1,
                                       .params = {{"weight", KHUB__TENSOR, "nk"}}};
    khub__call call;
    if (khub__check(&call, &signature, weight, 1)) return -1;
    packer->size(prepared, &call);
    return 0;
}

int khub__linear_pack(const khub__packer *packer, const TVMFFIAny *args, int32_t n)
{
    khub__call call;
    DLTensor *prepared = n == 2 && args[0].type_index == kTVMFFIDLTensorPtr ? args[0].v_ptr : NULL;
    if (prepared && !prepared->data) return size(packer, prepared, args + 1);
    return khub__check(&call, packer->signature, args, n) ? -1 : packer->run(&call);
}
