/* What kernels for GPUs are written with, in what C and CUDA's C++ have in common: nvcc compiles them, and
 * for tests a C compiler (emulated.h). Elements are float32 once they are read; sums and functions are those
 * of the CPU's kernels (vec.h, a thread being a lane), in the same order, so that both give the same bits. */
#ifndef KHUB_KERNELS_CUDA_GPU_H
#define KHUB_KERNELS_CUDA_GPU_H

#if defined(__CUDACC__)
#define GPU_BEGIN extern "C" {
#define GPU_END   }
#else
#include "emulated.h"
#define GPU_BEGIN
#define GPU_END
#endif

#include "vec.h"

enum { WARP = 32, CHUNK = 8 /* the most elements of 16 bytes */ };

/* The queue of the current call (queue.c): a cudaStream_t. */
GPU_BEGIN
void *khub__stream(void);
GPU_END

/* KERNEL(NAME, THREADS, JOB) { … } is a kernel over one parameter, `const JOB job`, in blocks of THREADS at
 * most; NAME_launch(&job, grid, threads, room) puts it into the queue, with `room` bytes for ROOM. */
#if defined(__CUDACC__)
#define KERNEL(name, most, blocks, JOB)                                                                      \
    static __global__ void name(const JOB job);                                                              \
    static void name##_launch(const JOB *job, dim3 grid, unsigned threads, size_t room)                      \
    {                                                                                                        \
        name<<<grid, threads, room, (cudaStream_t)khub__stream()>>>(*job);                                   \
    }                                                                                                        \
    static __global__ void __launch_bounds__(most, blocks) name(const JOB job)
#define ROOM(name)                                                                                           \
    extern __shared__ float4 name##_room[];                                                                  \
    float *name = (float *)name##_room
#else
#define KERNEL(name, most, blocks, JOB)                                                                      \
    static void name(const JOB job);                                                                         \
    static void name##_body(const void *job)                                                                 \
    {                                                                                                        \
        name(*(const JOB *)job);                                                                             \
    }                                                                                                        \
    static void name##_launch(const JOB *job, dim3 grid, unsigned threads, size_t room)                      \
    {                                                                                                        \
        emulated_launch(name##_body, job, grid, threads, room);                                              \
    }                                                                                                        \
    static void name(const JOB job)
#define ROOM(name) float *name = (float *)(void *)emulated_room
#endif

#if defined(__CUDACC__)
#define UNROLL_PRAGMA(text) _Pragma(#text)
#define UNROLL(times)       UNROLL_PRAGMA(unroll times)
#else
#define UNROLL(times)
#endif

/* The blocks of a grid of one dimension for `count` pieces of work, which blocks take in turns. */
#if defined(__CUDACC__)
#define MOST_BLOCKS INT64_C(0x7fffffff)
#else
#define MOST_BLOCKS INT64_C(2) /* so that blocks do take turns */
#endif
static inline dim3 grid_of(int64_t count)
{
    dim3 grid = {(unsigned)(count < MOST_BLOCKS ? count : MOST_BLOCKS), 1, 1};
    return grid;
}

/* ---- float16 ---- */

#if defined(__CUDACC__)
VEC float widen_f16(uint16_t half)
{
    float x;
    asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(half));
    return x;
}
VEC uint16_t narrow_f16(float x)
{
    uint16_t half;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(half) : "f"(x));
    return half;
}
#else
VEC float widen_f16(uint16_t half)
{
    uint32_t sign = (uint32_t)(half & 0x8000) << 16, exponent = half >> 10 & 31, rest = half & 0x3ff;
    float size = exponent == 31  ? float_of(UINT32_C(0x7f800000) | rest << 13)
                 : exponent == 0 ? (float)rest * 0x1p-24f
                                 : float_of((exponent + 112) << 23 | rest << 13);
    return float_of(bits_of(size) | sign);
}
/* To nearest, ties to even: half a unit less, or as much for what is odd, carries into the digits that stay.
 */
VEC uint16_t narrow_f16(float x)
{
    uint32_t u = bits_of(x), sign = u >> 16 & 0x8000, size = u & UINT32_C(0x7fffffff);
    if (size > UINT32_C(0x7f800000)) return (uint16_t)(sign | 0x7e00);
    if (size >= bits_of(65520)) return (uint16_t)(sign | 0x7c00);
    if (size < bits_of(0x1p-14f)) /* 0.5's last digit is the smallest number's: adding rounds there */
        return (uint16_t)(sign | (bits_of(float_of(size) + 0.5f) - bits_of(0.5f)));
    return (uint16_t)(sign | (size + 0xfff + (size >> 13 & 1) - (112 << 23)) >> 13);
}
#endif

/* ---- elements ---- */

VEC float from_half(uint16_t half, int type)
{
    return type == BF16 ? widen(half) : widen_f16(half);
}
VEC uint16_t to_half(float v, int type)
{
    return type == BF16 ? narrow(v) : narrow_f16(v);
}

/* What v would be if it were stored and read again. */
VEC float as_stored(float v, int type)
{
    return type == F32 ? v : from_half(to_half(v, type), type);
}

VEC float get(const char *row, int64_t i, int type)
{
    return type == F32 ? ((const float *)(const void *)row)[i]
                       : from_half(((const uint16_t *)(const void *)row)[i], type);
}
VEC void put(char *row, int64_t i, float v, int type)
{
    if (type == F32)
        ((float *)(void *)row)[i] = v;
    else
        ((uint16_t *)(void *)row)[i] = to_half(v, type);
}

/* Elements of 16 bytes, which are read and written at once. */
#define PER_CHUNK(type) (16 / ELEMENT_BYTES(type))
VEC int chunks_fit(const char *row)
{
    return (uintptr_t)row % 16 == 0;
}
VEC void get_chunk(float v[CHUNK], const char *row, int64_t i, int type)
{
    uint4 u = *(const uint4 *)(const void *)(row + i * ELEMENT_BYTES(type));
    const uint32_t word[4] = {u.x, u.y, u.z, u.w};
    for (int k = 0; k < PER_CHUNK(type); k++)
        v[k] = type == F32 ? float_of(word[k % 4]) : from_half((uint16_t)(word[k / 2] >> k % 2 * 16), type);
}
VEC void put_chunk(char *row, int64_t i, const float v[CHUNK], int type)
{
    uint32_t word[4] = {0, 0, 0, 0};
    for (int k = 0; k < PER_CHUNK(type); k++)
        if (type == F32)
            word[k % 4] = bits_of(v[k]);
        else
            word[k / 2] |= (uint32_t)to_half(v[k], type) << k % 2 * 16;
    uint4 u = {word[0], word[1], word[2], word[3]};
    *(uint4 *)(void *)(row + i * ELEMENT_BYTES(type)) = u;
}

/* ---- a warp ---- */

/* The sum over `width` neighbours, in each of them: lanes i and i + width/2 first, and so on, as v_sum does.
 */
VEC float warp_sum(float v, int width)
{
    for (int by = width / 2; by; by /= 2)
        v += __shfl_xor_sync(0xffffffffu, v, by);
    return v;
}

#endif
