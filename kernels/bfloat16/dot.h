/* Between the front of khub/bfloat16 (dot.c) and its loops (dot_blocks.c, once for each path). */
#ifndef KHUB_KERNELS_DOT_H
#define KHUB_KERNELS_DOT_H

#include "linear_call.h"

/* How products of bfloat16 are summed up: each widened to float32 and multiplied into the sum; by
 * AVX512-BF16, two at a time; by AMX, tile by tile. */
typedef enum dot_engine { DOT_WIDENED, DOT_PAIRS, DOT_TILES, DOT_ENGINES } dot_engine;

enum {
    DOT_GROUP = 32,        /* elements along k that a tile takes */
    DOT_ROW = 64,          /* bytes of a panel's pair of elements along k: 16 columns of two */
    DOT_GROUP_BYTES = 1024 /* of a panel's group: 16 pairs, a tile of AMX */
};

/* A packed weight (⌈n/16⌉, 16 ⌈k/32⌉, 32) holds at [p, i, 2 j] element 2 i + 1 of column 16 p + j, at
 * [p, i, 2 j + 1] element 2 i: the second of a pair first, since AVX512-BF16 adds the upper half's product
 * first. Zeros behind k and n. */
static inline int64_t dot_groups(int64_t k)
{
    return k / DOT_GROUP + (k % DOT_GROUP != 0);
}

/* By type: F32, BF16 (vec.h), of x and out. NULL: not of this path. */
typedef struct dot_path {
    void (*linear[DOT_ENGINES][2])(const linear_call *);
} dot_path;

#endif
