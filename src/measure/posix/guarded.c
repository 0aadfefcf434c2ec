#include "measure/guarded.h"

#include "base/error.h"

#include <sys/mman.h>
#include <unistd.h>

enum { APART = 3, LINE = 64 };

/* 0xff at odd addresses, 0xc3 or 0xc5 at even ones: a NaN in float64, float32, bfloat16 and float16, which
 * elements are aligned to. */
static char pattern(const khub__guarded *g, const char *at)
{
    return (char)((uintptr_t)at & 1 ? 0xff : g->is_output ? 0xc5 : 0xc3);
}

static void paint(const khub__guarded *g, char *from, const char *to)
{
    for (; from < to && ((uintptr_t)from & 7 || to - from < 8); from++)
        *from = pattern(g, from);
    char eight[8];
    for (size_t i = 0; i < sizeof(eight) && from < to; i++)
        eight[i] = pattern(g, from + i);
    for (; to - from >= 8; from += 8)
        memcpy(from, eight, 8);
    if (from < to) paint(g, from, to);
}

/* The usable memory. */
static char *begin(const khub__guarded *g)
{
    return g->region + g->page;
}

static char *end(const khub__guarded *g)
{
    return g->region + g->region_bytes - g->page;
}

static void set_strides(khub__guarded *g, int64_t pitch)
{
    int32_t last = g->tensor.ndim - 1;
    for (int32_t i = last; i >= 0; i--) {
        g->strides[i] = i == last ? 1 : i == last - 1 ? pitch : g->strides[i + 1] * g->shape[i + 1];
    }
    g->tensor.strides = g->strides;
}

/* Where the first element goes; `bytes` from there to the end of the last. */
static char *place(const khub__guarded *g, size_t bytes, size_t item, khub__placement placement)
{
    uintptr_t aligned = ((uintptr_t)end(g) - bytes) / LINE * LINE;
    if (placement == KHUB__AT_START) return begin(g);
    if (placement == KHUB__MIDDLE) return begin(g) + g->page;
    if (placement == KHUB__ALIGNED) return (char *)aligned;
    if (placement == KHUB__SHIFTED) return (char *)((uintptr_t)(end(g) - bytes - item) / LINE * LINE + item);
    return end(g) - bytes;
}

int khub__guarded_new(khub__guarded *out, khub_dtype dtype, int32_t ndim, const int64_t *shape,
                      khub__placement placement, int is_output, khub_error *err)
{
    size_t item = dtype.bits / 8;
    memset(out, 0, sizeof(*out));
    out->is_output = is_output;
    memcpy(out->shape, shape, (size_t)ndim * sizeof(*shape));
    out->tensor = khub_tensor_over(NULL, dtype, ndim, out->shape);
    int64_t count = khub_tensor_count(&out->tensor), extent = ndim ? shape[ndim - 1] : 1;
    int64_t pitch = extent + (placement == KHUB__STRIDED ? APART : 0);
    set_strides(out, pitch);
    if (count <= 0) return KHUB_OK;
    out->rows = count / extent;
    out->width = (size_t)extent * item;
    out->pitch = (size_t)pitch * item;
    size_t bytes = (size_t)(out->rows - 1) * out->pitch + out->width;
    out->page = (size_t)sysconf(_SC_PAGESIZE);
    size_t more = placement == KHUB__MIDDLE ? 2 : 0;
    out->region_bytes = ((bytes + LINE + item) / out->page + 3 + more) * out->page;
    out->region = mmap(NULL, out->region_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (out->region == MAP_FAILED) {
        out->region = NULL;
        return khub__fail_memory(err, "making memory between guard pages");
    }
    mprotect(out->region, out->page, PROT_NONE);
    mprotect(end(out), out->page, PROT_NONE);
    out->data = place(out, bytes, item, placement);
    paint(out, begin(out), end(out));
    out->tensor.data = out->data;
    if (placement == KHUB__MIDDLE) out->tensor.strides = NULL; /* as most tensors come */
    return KHUB_OK;
}

void khub__guarded_free(khub__guarded *guarded)
{
    if (guarded->region) munmap(guarded->region, guarded->region_bytes);
    memset(guarded, 0, sizeof(*guarded));
}

void khub__guarded_put(khub__guarded *guarded, const void *compact)
{
    for (int64_t r = 0; r < guarded->rows; r++)
        memcpy(guarded->data + (size_t)r * guarded->pitch, (const char *)compact + (size_t)r * guarded->width,
               guarded->width);
}

void khub__guarded_get(const khub__guarded *guarded, void *compact)
{
    for (int64_t r = 0; r < guarded->rows; r++)
        memcpy((char *)compact + (size_t)r * guarded->width, guarded->data + (size_t)r * guarded->pitch,
               guarded->width);
}

void khub__guarded_clear(khub__guarded *guarded, int zero)
{
    for (int64_t r = 0; r < guarded->rows; r++) {
        char *row = guarded->data + (size_t)r * guarded->pitch;
        if (zero)
            memset(row, 0, guarded->width);
        else
            paint(guarded, row, row + guarded->width);
    }
}

void khub__guarded_unlock(khub__guarded *guarded)
{
    if (!guarded->region) return;
    mprotect(guarded->region, guarded->region_bytes, PROT_READ | PROT_WRITE);
    paint(guarded, guarded->region, begin(guarded));
    paint(guarded, end(guarded), guarded->region + guarded->region_bytes);
    guarded->unlocked = 1;
}

void khub__guarded_freeze(khub__guarded *guarded)
{
    if (!guarded->region || guarded->unlocked) return;
    guarded->frozen = mprotect(begin(guarded), (size_t)(end(guarded) - begin(guarded)), PROT_READ) == 0;
}

/* The first byte of [from, to) without the pattern; `to` when there is none. */
static const char *first_other(const khub__guarded *g, const char *from, const char *to)
{
    while (from < to && *from == pattern(g, from))
        from++;
    return from;
}

int khub__guarded_is_intact(const khub__guarded *guarded, int64_t *at)
{
    if (!guarded->region) return 1;
    size_t pages = guarded->unlocked ? guarded->page : 0; /* that can be read, at each end */
    const char *from = begin(guarded) - pages, *last = end(guarded) + pages, *other;
    for (int64_t r = 0; r <= guarded->rows; r++) {
        const char *row = guarded->data + (size_t)r * guarded->pitch, *to = r < guarded->rows ? row : last;
        other = first_other(guarded, from, to);
        *at = other - guarded->data;
        if (other < to) return 0;
        from = row + guarded->width;
    }
    return 1;
}

const char *khub__guarded_where(const khub__guarded *guarded, int64_t at)
{
    if (at < 0) return "before the start";
    return (size_t)at < (size_t)guarded->rows * guarded->pitch - (guarded->pitch - guarded->width)
               ? "between the rows"
               : "behind the end";
}

int khub__guarded_owns(const khub__guarded *guarded, const void *address, int64_t *at)
{
    const char *a = address;
    if (!guarded->region || guarded->unlocked || a < guarded->region ||
        a >= guarded->region + guarded->region_bytes)
        return 0;
    *at = a - guarded->data;
    return guarded->frozen || a < begin(guarded) || a >= end(guarded);
}
