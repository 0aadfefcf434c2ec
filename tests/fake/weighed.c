/* Serves layers, says how often it prepared a weight, and fails in the middle of its work. */
#include "fake.h"

#include <stdatomic.h>

static atomic_int times_prepared;

static float *floats(const TVMFFIAny *value)
{
    DLTensor *t = value->v_ptr;
    return (float *)((char *)t->data + t->byte_offset);
}

/* norm(out, x, weight, eps): out[0] = weight[0], which is prepared: twice the original */
FAKE(norm)
{
    UNUSED;
    floats(&args[0])[0] = floats(&args[2])[0];
    return 0;
}

/* double_weight(prepared, original) */
FAKE(double_weight)
{
    UNUSED;
    DLTensor *to = args[0].v_ptr, *from = args[1].v_ptr;
    to->ndim = 1;
    to->dtype = from->dtype;
    to->shape[0] = from->shape[0];
    if (!to->data) return 0;
    if (floats(&args[1])[0] < 0) return raise_error("ValueError", "the weight is negative");
    atomic_fetch_add(&times_prepared, 1);
    for (int64_t i = 0; i < from->shape[0]; i++)
        floats(&args[0])[i] = 2 * floats(&args[1])[i];
    return 0;
}

FAKE(times_prepared)
{
    UNUSED;
    return give_int(result, atomic_load(&times_prepared));
}

/* set(out, x): out = 7, all over */
FAKE(set)
{
    UNUSED;
    DLTensor *out = args[0].v_ptr;
    int64_t count = 1;
    for (int32_t i = 0; i < out->ndim; i++)
        count *= out->shape[i];
    for (int64_t i = 0; i < count; i++)
        floats(&args[0])[i] = 7;
    return 0;
}

/* fail_late(out, x): writes 99 into its first element, then fails */
FAKE(fail_late)
{
    UNUSED;
    floats(&args[0])[0] = 99;
    return raise_error("RuntimeError", "no more");
}
