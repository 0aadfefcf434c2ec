/* relu(out, x): ReLU, float32 or bfloat16, any strides, and one lie (README.md). Built once for each, some
 * also for a GPU (FAKE_DEVICE). */
#ifdef FAKE_DEVICE
#include "gpu.h"
#else
#include "fake.h"
#endif

#include <fenv.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>
#ifdef __x86_64__
#include <xmmintrin.h>
#endif

enum {
    HONEST,
    FORGETS,        /* another result at every third call */
    ONE_IN_MILLION, /* off by one ULP at one number of 10^6 */
    READS_BEHIND,
    READS_BEFORE,
    WRITES_BEHIND,
    WRITES_BEFORE,
    ALIGNMENT, /* another result where out isn't 32-byte aligned */
    STRIDES,   /* takes rows for neighbours */
    BATCH,     /* another result where there is more than one row */
    MANY_ROWS, /* another result where there are more than 100 rows */
    STALE,     /* keeps the first element by its address and their number */
    THREADS,   /* another result while another call is going on */
    IN_PLACE,  /* clears out before it reads x */
    ADDS,      /* to what out holds */
    SPOILS,    /* x */
    CRASHES,   /* with more than 500 elements */
    HANGS,
    LEAVES,
    RAISES,
    BORROWS, /* writes to x and puts back what was there */
    FLUSHES, /* leaves the thread flushing subnormals to zero, or rounding down */
    ILLEGAL, /* with more than 500 elements the GPU finds an error after the call returned */
    PRINTS   /* to stdout, also when it comes and goes */
};

static const int told = FAKE_LIE;

__attribute__((constructor)) static void come(void)
{
    if (told == PRINTS) puts("{\"loaded\": true}");
}

__attribute__((destructor)) static void go(void)
{
    if (told == PRINTS) puts("{\"gone\": true}");
}

static int64_t count(const DLTensor *t)
{
    int64_t elements = 1;
    for (int32_t i = 0; i < t->ndim; i++)
        elements *= t->shape[i];
    return elements;
}

#ifndef FAKE_DEVICE
static char *first_of(const DLTensor *t)
{
    return (char *)t->data + t->byte_offset;
}
#endif

/* Element i in row-major order. */
static char *at(const DLTensor *t, int64_t i)
{
    int64_t offset = 0, compact = 1;
    for (int32_t d = t->ndim; d-- > 0; i /= t->shape[d], compact *= t->shape[d])
        offset += i % t->shape[d] * (t->strides && told != STRIDES ? t->strides[d] : compact);
    return first_of(t) + offset * (t->dtype.bits / 8);
}

static float get(const DLTensor *t, const char *from)
{
    uint32_t bits = 0;
    float f;
    memcpy((char *)&bits + (t->dtype.bits == 16 ? 2 : 0), from, t->dtype.bits / 8);
    memcpy(&f, &bits, 4);
    return f;
}

static void put(const DLTensor *t, char *to, float f)
{
    memcpy(to, (const char *)&f + (t->dtype.bits == 16 ? 2 : 0), t->dtype.bits / 8);
}

/* The next number of the dtype. */
static float off_by_one(const DLTensor *t, float f)
{
    uint32_t bits;
    memcpy(&bits, &f, 4);
    bits += t->dtype.bits == 16 ? 0x10000 : 1;
    memcpy(&f, &bits, 4);
    return f;
}

/* One pattern of about 10^6, nowhere near any other; the multiplier is a prime. */
static int is_one_in_million(float f)
{
    uint32_t bits;
    memcpy(&bits, &f, 4);
    return bits * 2654435761u < 4295 && bits && bits < 0x7f000000;
}

static atomic_int running;

/* What is wrong with the first element, if anything is. */
static int lies(const DLTensor *out)
{
    static int calls;
    if (told == FORGETS) return ++calls % 3 == 0;
    if (told == ALIGNMENT) return (uintptr_t)at(out, 0) % 32 != 0;
    if (told == BATCH) return out->ndim > 1 && out->shape[0] > 1;
    if (told == MANY_ROWS) return out->ndim > 1 && out->shape[0] > 100;
    if (told != THREADS) return 0;
    atomic_fetch_add(&running, 1);
    usleep(200);
    return atomic_fetch_sub(&running, 1) > 1;
}

static void leave_flushing(void)
{
#ifdef __x86_64__
    _mm_setcsr(_mm_getcsr() | 0x8040); /* FTZ, DAZ */
#else
    fesetround(FE_DOWNWARD);
#endif
}

/* The first element, or the one that was there when it was first looked at. */
static float remembered(const DLTensor *x)
{
    static const char *from;
    static int64_t elements;
    static float first;
    if (told != STALE || (from == at(x, 0) && elements == count(x)))
        return told == STALE ? first : get(x, at(x, 0));
    from = at(x, 0), elements = count(x);
    return first = get(x, from);
}

/* Wild accesses, as a loop of vectors that forgets about the rest would make them. */
static void stray(const DLTensor *out, const DLTensor *x)
{
    if (told == READS_BEHIND) (void)((volatile char *)at(x, count(x) - 1))[x->dtype.bits / 8];
    if (told == READS_BEFORE) (void)((volatile char *)at(x, 0))[-1];
    if (told == WRITES_BEHIND) put(out, at(out, count(out) - 1) + out->dtype.bits / 8, 0);
    if (told == WRITES_BEFORE) put(out, at(out, 0) - out->dtype.bits / 8, 0);
    if (told == SPOILS) put(x, at(x, 0), 7);
    if (told == BORROWS) {
        volatile char *byte = at(x, 0), was = *byte;
        *byte = 1;
        *byte = was;
    }
    if (told == FLUSHES) leave_flushing();
    if (told == PRINTS) puts("{\"relu\": true}");
    if (count(x) <= 500) return;
    if (told == CRASHES) abort();
    if (told == LEAVES) exit(0);
    while (told == HANGS)
        pause();
}

FAKE(relu)
{
    UNUSED;
    const DLTensor *out = args[0].v_ptr, *x = args[1].v_ptr;
    if (told == RAISES && count(x) == 0) return raise_error("ValueError", "relu: nothing to do");
    if (count(x) == 0) return 0;
#ifdef FAKE_DEVICE
    fake_stream *stream = stream_of(out);
    if (!stream || !stream_of(x)) return -1;
    stream_flush(stream);
    if (told == ILLEGAL && count(x) > 500) stream->fault = 700;
    if (stream->fault) return 0;
#endif
    int lie = lies(out);
    for (int64_t i = 0; told == IN_PLACE && i < count(out); i++)
        put(out, at(out, i), 0);
    for (int64_t i = 0; i < count(x); i++) {
        float f = i ? get(x, at(x, i)) : remembered(x), y = f < 0 ? 0 : f;
        if (told == ADDS && get(out, at(out, i)) == 0) y += 1;
        if ((lie && i == 0) || (told == ONE_IN_MILLION && is_one_in_million(f))) y = off_by_one(out, y);
        put(out, at(out, i), y);
    }
    stray(out, x);
    return 0;
}
