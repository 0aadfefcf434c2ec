/* Sixteen 32-bit lanes of packed weights, and products of small integers summed up exactly: w16, one lane a
 * column, implemented as v16 is (vec.h). Integers have no rounding, so every path gives the same sums in any
 * order. */
#ifndef KHUB_KERNELS_LANES_H
#define KHUB_KERNELS_LANES_H

#include "vec.h"

/* How small integers are multiplied, always a constant: as 16-bit ones, pair by pair; by VNNI, where HAS_VNNI
 * is defined; by AMX, tile by tile, where HAS_AMX is. */
enum { DOT_WIDE, DOT_VNNI, DOT_AMX };

/* Each defines w16 and:
 *   w_load(p), w_store(p, w)     64 bytes, any alignment
 *   w_set(a), w_add(a, b)        32-bit integers, modulo 2^32
 *   w_floats(w)                  signed integers to the nearest float32
 *   w_pairs(w, odd)              of four signed bytes 0 and 2, or 1 and 3, as 16-bit integers
 *   w_quarters(w, t)             bits 4 t … 4 t + 3 of both halves, without a sign, as 16-bit integers
 *   w_nibbles(w, high)           the low or high four bits of each byte, as bytes
 *   dot_pairs(sum, x, w)         sum + x · w in each lane, x being two 16-bit integers of a row
 *   dot_bytes(sum, x, w)         the same of four signed bytes of w and four of x that 128 was added to: VNNI
 *   dot_nibbles(sum, x, w, how)  the same of w's bytes from 0 to 15 and four signed bytes of x; at most 8
 *                                times, then dot_sums
 *   dot_sums(sum, how)           what dot_nibbles summed up, as 32-bit integers
 *   w_store_bytes(p, v)          the lowest 8 bits of each float32's pattern: V_ROUNDER + n holds n there
 *   w_store_wide(p, v)           the lowest 16 bits, of each four in the order 0, 2, 1, 3 */
#if defined(KHUB_ISA_AVX512)
#include "lanes/avx512.h"
#elif defined(KHUB_ISA_AVX2)
#include "lanes/avx2.h"
#elif defined(KHUB_ISA_NEON)
#include "lanes/neon.h"
#else
#include "lanes/portable.h"
#endif

#ifndef HAS_VNNI
VEC w16 dot_bytes(w16 sum, const void *x, w16 w)
{
    (void)x, (void)w; /* never called */
    return sum;
}
#endif

#endif
