/* What this machine can do at most, measured in the same run as what is compared with it. */
#ifndef BENCH_MACHINE_H
#define BENCH_MACHINE_H

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

/* Multiply-adds in registers: chains enough for two vector units, each operation 4 cycles long. */
enum { PEAK_STEPS = 20000, PEAK_CHAINS = 12 };
#define PEAK(NAME, ATTRIBUTES, VECTOR, SET, FMA, REGISTER)                                                   \
    ATTRIBUTES static void NAME(void *user)                                                                  \
    {                                                                                                        \
        VECTOR sum[PEAK_CHAINS], x = SET(0.999f), y = SET(0.001f);                                           \
        (void)user;                                                                                          \
        _Pragma("GCC unroll 12") for (int i = 0; i < PEAK_CHAINS; i++) sum[i] = SET((float)i);               \
        for (int step = 0; step < PEAK_STEPS; step++) {                                                      \
            _Pragma("GCC unroll 12") for (int i = 0; i < PEAK_CHAINS; i++)                                   \
            {                                                                                                \
                sum[i] = FMA;                                                                                \
                __asm__ volatile("" : "+" REGISTER(sum[i]));                                                 \
            }                                                                                                \
        }                                                                                                    \
    }
#if defined(__x86_64__)
#include <immintrin.h>
PEAK(peak_avx2, __attribute__((target("avx2,fma"))), __m256, _mm256_set1_ps, _mm256_fmadd_ps(sum[i], x, y),
     "x")
PEAK(peak_avx512, __attribute__((target("avx512f"))), __m512, _mm512_set1_ps, _mm512_fmadd_ps(sum[i], x, y),
     "v")
#elif defined(__aarch64__)
#include <arm_neon.h>
PEAK(peak_neon, , float32x4_t, vdupq_n_f32, vfmaq_f32(y, sum[i], x), "w")
#endif

/* The most multiply-adds a core of this machine does, as floating-point operations a second; 0: unknown. */
static inline double peak_flops(void)
{
    int lanes = 0;
    void (*peak)(void *) = NULL;
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) peak = peak_avx2, lanes = 8;
    if (__builtin_cpu_supports("avx512f")) peak = peak_avx512, lanes = 16;
#elif defined(__aarch64__)
    peak = peak_neon, lanes = 4;
#endif
    return peak ? 2.0 * lanes * PEAK_CHAINS * PEAK_STEPS / measure(peak, NULL, 0.3).best : 0;
}

typedef uint64_t words8 __attribute__((vector_size(64)));
typedef struct memory_read {
    const words8 *words;
    size_t count; /* a multiple of 4 */
} memory_read;

static void read_memory(void *user)
{
    const memory_read *r = user;
    words8 a = {0}, b = {0}, c = {0}, d = {0};
    for (size_t i = 0; i < r->count; i += 4) {
        a += r->words[i];
        b += r->words[i + 1];
        c += r->words[i + 2];
        d += r->words[i + 3];
    }
    a += b + c + d;
    __asm__ volatile("" : : "m"(a));
}

/* Bytes a second that one core reads of `bytes` bytes which are read again and again. */
static inline double read_bandwidth(size_t bytes)
{
    words8 *words = aligned_alloc(64, bytes / 256 * 256);
    if (!words) return 0;
    memset(words, 1, bytes / 256 * 256);
    memory_read r = {words, bytes / 256 * 4};
    double taken = measure(read_memory, &r, 0.5).best;
    free(words);
    return (double)(r.count * sizeof(words8)) / taken;
}

#endif
