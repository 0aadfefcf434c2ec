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

int khub__check_gaps(const khub__call *c, int param)
{
    const DLTensor *t = c->arg[param].tensor;
    int64_t panels = t->shape[0], rows = t->shape[1], step = t->shape[2] * t->dtype.bits / 8;
    if (panels == 0 || rows == 0) return 0;
    int gap = rows > 1 && khub__step(t, 1) != step;
    gap |= panels > 1 && khub__step(t, 0) != rows * step;
    return gap ? khub__raise(c, "ValueError", "%s has gaps between its rows or panels",
                             c->signature->params[param].name)
               : 0;
}
