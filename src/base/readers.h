/* Reading what another thread may replace: pointers that are swapped by one atomic store, to things that are
 * freed only when no thread can hold them any more. A reader pays two stores to memory of its own thread and
 * neither a lock nor a fence; whoever replaces makes the system fence all other threads instead (Linux:
 * membarrier). One source per operating system. */
#ifndef BASE_READERS_H
#define BASE_READERS_H

#include <khub/export.h>

#include <stdint.h>

/* When this thread came in, or one of these: it is outside, or in no list (where each thread starts). Both
 * are in <khub/layer.h>, too, which reads in line. */
#define KHUB__READER_OUTSIDE  UINT64_C(0)
#define KHUB__READER_UNLISTED UINT64_MAX
extern KHUB_API __thread uint64_t khub__inside;
extern KHUB_API uint64_t khub__swapped; /* grows with each replacing; starts at 1 */

/* What the thread was before, for going out: outside; inside, with nothing done; or unlisted, where it isn't
 * in now either (khub__reader_enter). Nothing is counted: what one call stores and the next one loads would
 * be what calls wait for. */
static inline uint64_t khub__reader_hop_in(void)
{
    uint64_t was = khub__inside;
    if (was != KHUB__READER_OUTSIDE) return was;
    /* who sees a number sees what was replaced before it */
    __atomic_store_n(&khub__inside, __atomic_load_n(&khub__swapped, __ATOMIC_ACQUIRE), __ATOMIC_RELEASE);
    __atomic_signal_fence(__ATOMIC_SEQ_CST); /* for the compiler; the processor is khub__readers_replaced's */
    return was;
}

static inline void khub__reader_hop_out(uint64_t was)
{
    if (was != KHUB__READER_OUTSIDE) return;
    __atomic_store_n(&khub__inside, KHUB__READER_OUTSIDE, __ATOMIC_RELEASE);
}

/* The same, whatever the thread is. They nest, and each goes out as often as it came in. */
void khub__reader_enter(void);
void khub__reader_leave(void);

/* Call it after pointers were replaced (release): who comes in from now on finds the new ones. The moment for
 * khub__readers_passed; 0: this system has no way to know, the old ones stay for good. Any thread. */
uint64_t khub__readers_replaced(void);

/* 1: no thread holds what was replaced before `moment`. Any thread. */
int khub__readers_passed(uint64_t moment);

#endif
