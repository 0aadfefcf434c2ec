/* Sixteen float32 lanes, the one vector type that kernels are written in: four NEON registers, two of AVX2,
 * one of AVX-512, or an array. Lane i holds the elements whose index is i modulo 16, whatever the processor,
 * every operation is IEEE's, and a product is fused into a sum only by v_fma: so all paths give the same
 * bits.
 *
 * A source is compiled once per path with -DKHUB_ISA=NAME and that path's flags; PATH(f) is f's name in this
 * path. */
#ifndef KHUB_KERNELS_VEC_H
#define KHUB_KERNELS_VEC_H

#include "type.h"

#include <stdint.h>
#include <string.h>

#define PATH_PASTE(name, isa)  name##_##isa
#define PATH_EXPAND(name, isa) PATH_PASTE(name, isa)
#define PATH(name)             PATH_EXPAND(name, KHUB_ISA)

/* Inlined even where nothing is optimised: parameters that are constants at the call cost nothing. */
#if defined(__CUDACC__)
#define VEC static __device__ inline __attribute__((always_inline, unused))
#else
#define VEC static inline __attribute__((always_inline, unused))
#endif

/* What is long where a v16 is an array: called there, or compilers drown in it; inlined where a v16 is
 * registers. */
#if defined(KHUB_ISA_AVX2) || defined(KHUB_ISA_AVX512) || defined(KHUB_ISA_NEON) || defined(KHUB_ISA_CUDA)
#define VEC_LONG VEC
#else
#define KHUB__ARRAYS
#define VEC_LONG static __attribute__((noinline, unused))
#endif

/* Loops over registers have to be unrolled early for the array to become registers. Where every access is
 * checked, or there are no registers to win, that only swells the code: a minute of compiling. */
#if defined(KHUB__ARRAYS)
#define UNROLLS 0
#elif defined(__clang__)
#define UNROLLS (!__has_feature(address_sanitizer))
#else
#define UNROLLS 1
#endif
#if !UNROLLS
#define UNROLLED
#elif defined(__CUDACC__)
#define UNROLLED _Pragma("unroll")
#elif defined(__clang__)
#define UNROLLED _Pragma("clang loop unroll(full)")
#else
#define UNROLLED _Pragma("GCC unroll 24") /* tile.h's TILE_SUMS at most */
#endif

/* What hardly any sixteen lanes need: never inlined, so that the usual way stays short. */
#if defined(__CUDACC__)
#define VEC_RARE static __device__ __attribute__((noinline, unused))
#else
#define VEC_RARE static __attribute__((noinline, unused))
#endif

/* 1.5 · 2²³: added to a float below 2²², it rounds to an integer that stands in the low bits of the sum. */
#define V_ROUNDER      12582912.0f
#define V_ROUNDER_BITS UINT32_C(0x4b400000)
#define V_BIASED       (V_ROUNDER + 127) /* as an exponent has it */

VEC uint32_t bits_of(float x)
{
    uint32_t u;
    memcpy(&u, &x, 4);
    return u;
}
VEC float float_of(uint32_t u)
{
    float x;
    memcpy(&x, &u, 4);
    return x;
}
VEC float widen(uint16_t bf16)
{
    return float_of((uint32_t)bf16 << 16);
}
/* Rounds to nearest, ties to even; a NaN stays one. */
VEC uint16_t narrow(float x)
{
    uint32_t u = bits_of(x);
    if (x != x) return (uint16_t)(u >> 16 | 0x40);
    return (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}

/* A lane of v_powers and of v_growth, below. */
VEC void lane_powers(float t, float *half, float *rest)
{
    uint32_t n = bits_of(t) - V_ROUNDER_BITS;
    uint32_t low = n >> 1 | (n & UINT32_C(0x80000000)); /* arithmetic shift */
    *half = float_of((low + 127) << 23);
    *rest = float_of((n - low + 127) << 23);
}
VEC void lane_growth(float t, float *up, float *down)
{
    int32_t n = (int32_t)(bits_of(t) - V_ROUNDER_BITS), less = n > 0 ? -((n + 1) / 2) : 0;
    *up = float_of((uint32_t)(n + less + 127) << 23);
    *down = float_of((uint32_t)(less + 127) << 23);
}

#if defined(KHUB_ISA_CUDA)
#include "vec/lane.h" /* a thread is a lane: what needs no other lane, and no memory */
#else
/* Each defines v16 and:
 *   v_set(a)                  all lanes a
 *   v_load(p), v_store(p, v)  16 float32, any alignment; v_load_bf16, v_store_bf16 16 bfloat16
 *   v_stream(p, v)            as v_store where p is a multiple of 64 bytes, past the caches; when all is
 *                             stored, v_stream_end() before anybody else reads it
 *   v_add v_sub v_mul v_div, v_fma(a, b, c) = a * b + c rounded once
 *   v_max(a, b) = a > b ? a : b, v_min(a, b) = a < b ? a : b: b when either is a NaN
 *   v_abs(a), v_sign(a, s)    |a|, |a| with the sign of s
 *   v_less(a, b, x, y)        a < b ? x : y, lane by lane
 *   v_all_less(a, b)          whether a < b in every lane
 *   v_pick(four, t)           four[the two lowest bits of t], lane by lane
 *   v_negative(s, x, y)       s has the sign of negative numbers ? x : y, lane by lane
 *   v_powers(t, &half, &rest) powers of two whose product is 2^n; t is V_ROUNDER + n, n from -254 to 254,
 *                             where `half` is 0 below -252
 *   v_growth(t, &up, &down)   powers of two whose quotient up / down is 2^n, n from -126 to 254: down is 1
 *                             up to n = 0, then 2^-⌈n/2⌉, but 0 for 254
 *   v_first(v, count, rest)   the first `count` lanes of v, `rest` in the others
 *   v_sum(v), v_largest(v)    lanes i and i + 8 first, then i + 4, i + 2, i + 1
 *   v_two_to(t)               2^n, t being V_BIASED + n, n from -126 to 127; 0 for -127, infinity for 128
 *   v_transpose(to, p, step)  to[16 j + i] = lane j of the row at p + i step bytes, i from 0 to 15 */
#if defined(KHUB_ISA_AVX512)
#include "vec/avx512.h"
#elif defined(KHUB_ISA_AVX2)
#include "vec/avx2.h"
#elif defined(KHUB_ISA_NEON)
#include "vec/neon.h"
#else
#include "vec/portable.h"
#endif

/* `count` elements, less than 16, into or out of lanes: the tails of rows. */
static __attribute__((noinline, unused)) void read_part(float lanes[16], const char *at, int64_t count,
                                                        int type)
{
    memset(lanes, 0, 64);
    if (type == F32) memcpy(lanes, at, (size_t)count * 4);
    for (int64_t k = 0; type == BF16 && k < count; k++) {
        uint16_t half;
        memcpy(&half, at + 2 * k, 2);
        lanes[k] = widen(half);
    }
}
static __attribute__((noinline, unused)) void write_part(char *at, const float lanes[16], int64_t count,
                                                         int type)
{
    if (type == F32) memcpy(at, lanes, (size_t)count * 4);
    for (int64_t k = 0; type == BF16 && k < count; k++) {
        uint16_t half = narrow(lanes[k]);
        memcpy(at + 2 * k, &half, 2);
    }
}

/* Elements i … of a row of n, lanes past its end 0. */
VEC v16 v_read(const char *row, int64_t i, int64_t n, int type)
{
    const char *at = row + i * ELEMENT_BYTES(type);
    float lanes[16];
    if (n - i >= 16) return type == BF16 ? v_load_bf16(at) : v_load(at);
    read_part(lanes, at, n - i, type);
    return v_load(lanes);
}

/* The lanes of v that lie within a row of n to elements i …; rounded once. */
VEC void v_write(char *row, int64_t i, int64_t n, int type, v16 v)
{
    char *at = row + i * ELEMENT_BYTES(type);
    float lanes[16];
    if (n - i < 16) {
        v_store(lanes, v);
        write_part(at, lanes, n - i, type);
    } else if (type == BF16) {
        v_store_bf16(at, v);
    } else {
        v_store(at, v);
    }
}

/* As v_write; `stream`: past the caches, for rows that v_may_stream. */
VEC int v_may_stream(const char *row)
{
    return (uintptr_t)row % 64 == 0;
}
VEC void v_write_past(char *row, int64_t i, int64_t n, int type, v16 v, int stream)
{
    if (stream && type == F32 && n - i >= 16)
        v_stream(row + i * ELEMENT_BYTES(type), v);
    else
        v_write(row, i, n, type, v);
}

/* Asks for what will be read a page further on: processors don't look past a page by themselves, and where
 * results go past the caches nothing else hides what reading takes. */
VEC void v_ahead(const char *row, int64_t i, int type)
{
    __builtin_prefetch(row + i * ELEMENT_BYTES(type) + 4096);
}

/* What v would be if it were stored and read again. */
VEC v16 v_rounded(v16 v, int type)
{
    if (type == F32) return v;
    uint16_t halves[16];
    v_store_bf16(halves, v);
    return v_load_bf16(halves);
}

#endif /* of all but CUDA */

#endif
