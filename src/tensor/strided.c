#include "tensor/strided.h"

void khub__strided_start(khub__strided *s, const khub_tensor *tensor, size_t item)
{
    memset(s, 0, sizeof(*s));
    s->at = (char *)((uintptr_t)tensor->data + (uintptr_t)tensor->byte_offset);
    s->item = item;
    s->ndim = tensor->ndim;
    uint64_t compact = 1;
    for (int32_t i = tensor->ndim; i-- > 0; compact *= (uint64_t)tensor->shape[i]) {
        s->shape[i] = tensor->shape[i];
        s->step[i] = (tensor->strides ? (uint64_t)tensor->strides[i] : compact) * item;
    }
}

void khub__strided_start_transposed(khub__strided *s, const khub_tensor *tensor, size_t item)
{
    khub__strided rows;
    khub__strided_start(&rows, tensor, item);
    *s = rows;
    for (int32_t i = 0; i < s->ndim; i++) {
        s->shape[i] = rows.shape[s->ndim - 1 - i];
        s->step[i] = rows.step[s->ndim - 1 - i];
    }
}

static void move(khub__strided *s, uint64_t step)
{
    s->at = (char *)((uintptr_t)s->at + (uintptr_t)step);
}

/* Carries from dimension `dim`, which has reached its end, into those before it. */
static void carry(khub__strided *s, int32_t dim)
{
    while (dim >= 0 && s->index[dim] == s->shape[dim]) {
        move(s, 0 - s->step[dim] * (uint64_t)s->shape[dim]);
        s->index[dim] = 0;
        if (--dim < 0) break;
        s->index[dim]++;
        move(s, s->step[dim]);
    }
}

/* memcpy of a size that the compiler knows is a load and a store. */
static void copy_item(char *to, const char *from, size_t item)
{
    switch (item) {
    case 1:
        *to = *from;
        break;
    case 2:
        memcpy(to, from, 2);
        break;
    case 4:
        memcpy(to, from, 4);
        break;
    case 8:
        memcpy(to, from, 8);
        break;
    default:
        memcpy(to, from, 16);
        break;
    }
}

/* Elements from here to the end of the last dimension, `count` at most. */
static size_t run_length(const khub__strided *s, size_t count)
{
    if (s->ndim == 0) return 1;
    uint64_t left = (uint64_t)(s->shape[s->ndim - 1] - s->index[s->ndim - 1]);
    return left < count ? (size_t)left : count;
}

static void copy(khub__strided *s, char *gathered, const char *scattered, size_t count)
{
    uint64_t step = s->ndim ? s->step[s->ndim - 1] : 0;
    while (count > 0) {
        size_t run = run_length(s, count);
        for (size_t i = 0; i < run; i++, move(s, step)) {
            if (gathered)
                copy_item(gathered, s->at, s->item), gathered += s->item;
            else
                copy_item(s->at, scattered, s->item), scattered += s->item;
        }
        count -= run;
        if (s->ndim == 0) break;
        s->index[s->ndim - 1] += (int64_t)run;
        carry(s, s->ndim - 1);
    }
}

void khub__strided_gather(khub__strided *s, void *compact, size_t count)
{
    copy(s, compact, NULL, count);
}

void khub__strided_scatter(khub__strided *s, const void *compact, size_t count)
{
    copy(s, NULL, compact, count);
}
