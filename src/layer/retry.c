/* A call in which a kernel fails is done again by the standard function, if khub_kernelize was told so. A
 * kernel may have written before it failed: outputs are written anew, and inputs that share memory with one
 * are put back first. */
#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "layer/slot.h"
#include "tensor/strided.h"

/* An input as it was, its elements one behind the other. */
typedef struct saved {
    const khub_tensor *tensor;
    size_t item, count;
    void *elements;
} saved;

struct khub_kept {
    atomic_int failed; /* 1: `why` is being written, 2: it is */
    khub_error why;    /* of the first piece that failed */
    size_t count;
    saved inputs[KHUB__MAX_ARGS];
};

/* The addresses that a tensor's elements lie between. */
static void span_of(uintptr_t *from, uintptr_t *to, const khub_tensor *t)
{
    int64_t low = 0, high = 0, stride = 1, item = (int64_t)t->dtype.bits * t->dtype.lanes / 8;
    for (int32_t i = t->ndim; i-- > 0;) {
        int64_t step = (t->strides ? t->strides[i] : stride) * (t->shape[i] - 1);
        *(step < 0 ? &low : &high) += step;
        stride *= t->shape[i];
    }
    uintptr_t start = (uintptr_t)t->data + t->byte_offset;
    *from = start + (uintptr_t)(low * item);
    *to = start + (uintptr_t)((high + 1) * item);
}

static int meet(const khub_tensor *a, const khub_tensor *b)
{
    uintptr_t a_from, a_to, b_from, b_to;
    if (!a || !b || !khub_tensor_count(a) || !khub_tensor_count(b)) return 0;
    span_of(&a_from, &a_to, a);
    span_of(&b_from, &b_to, b);
    return a_from < b_to && b_from < a_to;
}

static int is_overwritten(const khub_slot *slot, const khub_value *args, int32_t input)
{
    for (int32_t i = 0; i < slot->layer->arg_count; i++)
        if (slot->layer->args[i].is_output &&
            meet(khub_value_tensor(&args[i]), khub_value_tensor(&args[input])))
            return 1;
    return 0;
}

static int save(khub_kept *kept, const khub_tensor *tensor, const khub_slot *slot, khub_error *err)
{
    khub__strided at;
    saved *s = &kept->inputs[kept->count];
    int bits = tensor->dtype.bits * tensor->dtype.lanes;
    if (tensor->device.type != KHUB_DEVICE_CPU || tensor->ndim > KHUB_MAX_NDIM ||
        (bits != 8 && bits != 16 && bits != 32 && bits != 64 && bits != 128))
        return khub__fail(
            err, KHUB_E_UNSUPPORTED,
            "%s: an input that shares memory with an output can't be saved, as on_error needs it",
            slot->path);
    *s = (saved){tensor, (size_t)bits / 8, (size_t)khub_tensor_count(tensor), NULL};
    s->elements = khub__malloc(s->count * s->item);
    if (!s->elements) return khub__fail_memory(err, "calling a layer");
    khub__strided_start(&at, tensor, s->item);
    khub__strided_gather(&at, s->elements, s->count);
    kept->count++;
    return KHUB_OK;
}

static void kept_free(khub_kept *kept)
{
    for (size_t i = 0; i < kept->count; i++)
        khub__free(kept->inputs[i].elements);
    khub__free(kept);
}

int khub_filling_keep(khub_kept **out, const khub_slot *slot, const khub_filling *filling,
                      const khub_value *args, int32_t n, khub_error *err)
{
    *out = NULL;
    if (!atomic_load_explicit(&slot->retries, memory_order_relaxed) || filling == &slot->standard ||
        filling->run || n != slot->layer->arg_count)
        return KHUB_OK;
    khub_kept *kept = khub__calloc(1, sizeof(*kept));
    if (!kept) return khub__fail_memory(err, "calling a layer");
    int rc = KHUB_OK;
    for (int32_t i = 0; rc == KHUB_OK && i < n; i++)
        if (!slot->layer->args[i].is_output && is_overwritten(slot, args, i))
            rc = save(kept, khub_value_tensor(&args[i]), slot, err);
    if (rc == KHUB_OK)
        *out = kept;
    else
        kept_free(kept);
    return rc;
}

void khub_kept_fail(khub_kept *kept, const khub_error *why)
{
    int first = 0;
    if (!atomic_compare_exchange_strong(&kept->failed, &first, 1)) return;
    kept->why = *why;
    atomic_store(&kept->failed, 2);
}

static int call_again(const khub_kept *kept, const khub_slot *slot, const khub_value *args, int32_t n,
                      khub_error *err)
{
    for (size_t i = 0; i < kept->count; i++) {
        const saved *s = &kept->inputs[i];
        khub__strided at;
        khub__strided_start(&at, s->tensor, s->item);
        khub__strided_scatter(&at, s->elements, s->count);
    }
    khub_slot *counted = (khub_slot *)(uintptr_t)slot; /* a counter is no part of what a slot is */
    if (atomic_fetch_add(&counted->retried, 1) == 0)
        khub__log(KHUB_LOG_NOTICE, "layer", slot->path, "the standard function does again what failed: %s",
                  kept->why.message);
    return khub_filling_call(slot, &slot->standard, args, n, err);
}

int khub_kept_settle(khub_kept *kept, const khub_slot *slot, const khub_value *args, int32_t n,
                     khub_error *err)
{
    if (!kept) return KHUB_OK;
    int rc = atomic_load(&kept->failed) ? call_again(kept, slot, args, n, err) : KHUB_OK;
    kept_free(kept);
    return rc;
}

int khub__call_kept(const khub_slot *slot, const khub_filling *filling, const khub_value *args, int32_t n,
                    khub_error *err)
{
    khub_kept *kept;
    khub_error why;
    int rc = khub_filling_keep(&kept, slot, filling, args, n, err);
    if (rc != KHUB_OK) return rc;
    why.code = KHUB_OK, why.message[0] = 0;
    rc = khub__call_adapted(slot, filling, args, n, kept ? &why : err);
    if (!kept) return rc;
    if (rc == KHUB_E_KERNEL) khub_kept_fail(kept, &why);
    int again = khub_kept_settle(kept, slot, args, n, err);
    return rc == KHUB_OK || rc == KHUB_E_KERNEL ? again : khub__fail(err, rc, "%s", why.message);
}
