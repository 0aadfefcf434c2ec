/* Taking the time. Kernels are measured by khub bench (khub_kernels.py). */
#ifndef BENCH_TIMING_H
#define BENCH_TIMING_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static inline double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static inline int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Best and median time of calling `run` for about `budget` seconds, after one call to warm up. */
typedef struct timing {
    double best, median;
} timing;

static inline timing measure(void (*run)(void *), void *user, double budget)
{
    enum { MOST = 20000 };
    static double taken[MOST];
    int count = 0;
    run(user);
    for (double end = seconds() + budget, start = seconds(); (start < end || count < 3) && count < MOST;) {
        run(user);
        double now = seconds();
        taken[count++] = now - start;
        start = now;
    }
    qsort(taken, (size_t)count, sizeof(*taken), by_size);
    return (timing){taken[0], taken[count / 2]};
}

/* Two ways of doing one thing, `rounds` times in turn, each first in every other round so that a slow moment
 * hits both, after ten rounds to warm up. What a round of each took, by round. */
static inline void take_turns(double *a, double *b, int rounds, double (*one)(const void *),
                              double (*other)(const void *), const void *thing)
{
    for (int i = -10; i < rounds; i++) {
        int keep = i < 0 ? 0 : i;
        if (i & 1) a[keep] = one(thing);
        b[keep] = other(thing);
        if (!(i & 1)) a[keep] = one(thing);
    }
}

#endif
