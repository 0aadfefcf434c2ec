/* The common case fast: blocks of finite numbers of one dtype, or of one beside a wider float. Bit for bit
 * what read.c and pairs.c say, for that is where the meaning stands; a block of any other kind is left to
 * them. */
#ifndef NUMERICS_FAST_H
#define NUMERICS_FAST_H

#include "numerics/pairs.h"

/* The orders (khub__largest) of a block's largest a and largest b. */
typedef struct khub__tops {
    int64_t a, b;
} khub__tops;

typedef struct khub__fast {
    /* Adds `count` pairs, 1 to khub__block_of theirs, to all of *c but c->count, and says what the tops are
     * (NULL: not asked). 0: nothing was done, the block is of another kind. `read` is the dtype's own,
     * `pairs` room for it. */
    int (*block)(khub_comparison *c, const void *a, const void *b, size_t count, khub__pairs_read *read,
                 khub__pairs *pairs, khub__tops *tops);
    /* The place of the first element of this order, a top of theirs: of a's, and of b's. */
    size_t (*find)(const void *elements, size_t count, int64_t order);
    size_t (*find_beside)(const void *elements, size_t count, int64_t order);
    /* Of `rows` rows, which a block that was taken consists of, how many have the first of their largest at
     * the same place in a and in b. */
    size_t (*rows)(const void *a, const void *b, size_t rows, size_t width);
} khub__fast;

/* What this processor has for b beside a; NULL: nothing. They are of dtypes that are compared. */
const khub__fast *khub__fast_of(khub_dtype a, khub_dtype b);

/* What there is for one instruction set, whether or not this processor has it: for two of one dtype, and for
 * one beside another. */
const khub__fast *khub__fast_avx2(khub_dtype dtype);
const khub__fast *khub__fast_avx2_beside(khub_dtype dtype, khub_dtype wide);

#endif
