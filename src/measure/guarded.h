/* Tensors between pages that can't be touched: what a function reads or writes beside its arguments faults,
 * and what it writes where no page ends is seen afterwards. One source per operating system. */
#ifndef MEASURE_GUARDED_H
#define MEASURE_GUARDED_H

#include <khub/tensor.h>

typedef enum khub__placement {
    KHUB__MIDDLE,   /* 64-byte aligned, a page or more from both ends: what strays a little doesn't fault */
    KHUB__AT_END,   /* the last element ends where the memory does */
    KHUB__AT_START, /* the first one begins where the memory does */
    KHUB__ALIGNED,  /* 64-byte aligned, less than 64 bytes before the end */
    KHUB__SHIFTED,  /* one element behind that */
    KHUB__STRIDED,  /* rows 3 elements further apart than they are long, the last one at the end */
    KHUB__PLACEMENTS
} khub__placement;

/* A CPU tensor, and what lies around it. Don't copy: the tensor points into it. Zeroed: nothing. */
typedef struct khub__guarded {
    khub_tensor tensor; /* data NULL when there are no elements */
    int64_t shape[KHUB_MAX_NDIM], strides[KHUB_MAX_NDIM];
    int is_output;
    char *region; /* guard page, memory, guard page */
    size_t region_bytes, page;
    int frozen;   /* it can't be written */
    int unlocked; /* what were guard pages holds the pattern, too */
    char *data;   /* the first element */
    int64_t rows; /* of `width` bytes, `pitch` bytes apart */
    size_t width, pitch;
} khub__guarded;

/* Slack and elements hold a pattern that is a NaN in every float dtype, another one in outputs: what a
 * function takes from between the rows of an input and leaves between those of an output is seen. *out is
 * freed by the caller whatever happens. KHUB_E_NOMEM. */
int khub__guarded_new(khub__guarded *out, khub_dtype dtype, int32_t ndim, const int64_t *shape,
                      khub__placement placement, int is_output, khub_error *err);
void khub__guarded_free(khub__guarded *guarded);

/* Copies all elements from (to) compact memory, row-major. */
void khub__guarded_put(khub__guarded *guarded, const void *compact);
void khub__guarded_get(const khub__guarded *guarded, void *compact);
/* Every element becomes the pattern, or zeros. */
void khub__guarded_clear(khub__guarded *guarded, int zero);

/* The guard pages become memory with the pattern, which khub__guarded_is_intact looks at: for what is copied
 * to where no page can be guarded, and back. */
void khub__guarded_unlock(khub__guarded *guarded);

/* From now on a write faults; unless unlocked. */
void khub__guarded_freeze(khub__guarded *guarded);

/* 1 when every byte beside the elements holds the pattern still. 0: *at is the first that doesn't, in bytes
 * from the first element (negative: before it). */
int khub__guarded_is_intact(const khub__guarded *guarded, int64_t *at);

/* "behind the end", "before the start", "between the rows" (or in one): where such an offset is. */
const char *khub__guarded_where(const khub__guarded *guarded, int64_t at);

/* 1 when `address` is in a guard page, or in what is frozen; *at as above. Async-signal-safe. */
int khub__guarded_owns(const khub__guarded *guarded, const void *address, int64_t *at);

#endif
