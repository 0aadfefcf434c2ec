/* Reading what another thread may replace: pointers that are swapped by one atomic store, to things that are
 * freed only when no thread can hold them any more. A reader pays two stores to memory of its own thread and
 * neither a lock nor a fence; whoever replaces makes the system fence all other threads instead (Linux:
 * membarrier). One source per operating system. */
#ifndef BASE_READERS_H
#define BASE_READERS_H

#include <khub/export.h>

#include <stdatomic.h>
#include <stdint.h>

/* In `since`: the thread is outside, or in no list (where each thread starts), and else when it came in. */
#define KHUB__READER_OUTSIDE  UINT64_C(0)
#define KHUB__READER_UNLISTED UINT64_MAX

/* One thread. The list of all of them is the source's. */
typedef struct khub__reader {
    _Atomic uint64_t since; /* the moment of its coming in; or one of those above */
    unsigned depth;         /* of enterings not yet left, where they nest */
    uint64_t was;           /* before the first of them */
    struct khub__reader *next, **at;
} khub__reader;

extern __attribute__((visibility("hidden"))) _Thread_local khub__reader khub__reader_own;
extern
    __attribute__((visibility("hidden"))) _Atomic uint64_t khub__readers_moment; /* of the last replacing */

/* This thread's. Where it lies is asked for once: in a shared library that is a call, which a compiler would
 * make again rather than keep a register. */
static inline khub__reader *khub__reader_of_thread(void)
{
    khub__reader *own = &khub__reader_own;
    __asm__("" : "+r"(own));
    return own;
}

/* What the thread was before, for going out: outside; inside, with nothing done; or unlisted, where it isn't
 * in now either (khub__reader_enter). Nothing is counted: what one call stores and the next one loads would
 * be what calls wait for. */
static inline uint64_t khub__reader_hop_in(khub__reader *own)
{
    uint64_t was = atomic_load_explicit(&own->since, memory_order_relaxed);
    if (was != KHUB__READER_OUTSIDE) return was;
    /* who sees a moment sees what was replaced before it */
    uint64_t moment = atomic_load_explicit(&khub__readers_moment, memory_order_acquire);
    atomic_store_explicit(&own->since, moment, memory_order_release);
    atomic_signal_fence(
        memory_order_seq_cst); /* for the compiler; the processor is khub__readers_replaced's */
    return was;
}

static inline void khub__reader_hop_out(khub__reader *own, uint64_t was)
{
    if (was != KHUB__READER_OUTSIDE) return;
    atomic_store_explicit(&own->since, KHUB__READER_OUTSIDE, memory_order_release);
}

/* The same, whatever the thread is. They nest, and each goes out as often as it came in. */
void khub__reader_enter(khub__reader *own);
void khub__reader_leave(khub__reader *own);

/* Call it after pointers were replaced (release): who comes in from now on finds the new ones. The moment for
 * khub__readers_passed; 0: this system has no way to know, the old ones stay for good. Any thread. */
uint64_t khub__readers_replaced(void);

/* 1: no thread holds what was replaced before `moment`. Any thread. */
int khub__readers_passed(uint64_t moment);

#endif
