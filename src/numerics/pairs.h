/* A part of a block of pairs as numbers, and what they add to a comparison. The sums are taken in an order
 * that doesn't depend on the machine: pair i of a block goes to lane i modulo 8, the lanes are added as a
 * tree. */
#ifndef NUMERICS_PAIRS_H
#define NUMERICS_PAIRS_H

#include <khub/numerics.h>

/* A block has as many pairs as fit in 4 KiB of what is wider, but KHUB__BLOCK at least. */
enum { KHUB__BLOCK = 1024, KHUB__BLOCK_BYTES = 4096, KHUB__PART = 256, KHUB__LANES = 8 };

static inline size_t khub__block_of(size_t a_bytes, size_t b_bytes)
{
    size_t fit = KHUB__BLOCK_BYTES / (a_bytes > b_bytes ? a_bytes : b_bytes);
    return fit > KHUB__BLOCK ? fit : KHUB__BLOCK;
}

/* In khub_comparison.sums. */
enum {
    KHUB__SUM_ULP,
    KHUB__SUM_ABSOLUTE, /* |a - b| */
    KHUB__SUM_SQUARE,   /* (a - b)² */
    KHUB__SUM_A,        /* a² */
    KHUB__SUM_B,        /* b² */
    KHUB__LANE_SUMS,
    KHUB__SUM_PRODUCT = KHUB__LANE_SUMS, /* a b */
    KHUB__SUMS
};

/* `count` pairs, then zeros to a multiple of KHUB__LANES. A pair that isn't finite is zeros, too. */
typedef struct khub__pairs {
    size_t count;
    double a[KHUB__PART], b[KHUB__PART];
    double distance[KHUB__PART]; /* |a - b| */
    double ulp[KHUB__PART];
    unsigned char differs[KHUB__PART]; /* 1: other bits */
} khub__pairs;

/* Fills in *pairs from `count` (at most KHUB__PART) elements that lie one after the other, and counts them
 * by class in *c, whose `count` is the index of the first. */
typedef void khub__pairs_read(khub__pairs *pairs, khub_comparison *c, const void *a, const void *b,
                              size_t count);

/* Where the largest of a row is, so far; a NaN is larger than any number. Starts as {INT64_MIN, 0}. */
typedef struct khub__largest {
    int64_t order, index;
} khub__largest;

/* Looks at `count` elements more, of which the first has index `from` in its row. */
typedef void khub__largest_look(khub__largest *l, const void *elements, size_t count, int64_t from);

/* How elements of one dtype, and of it beside another, are read. */
typedef struct khub__dtype_reader {
    khub_dtype dtype;
    size_t bytes;
    khub__largest_look *look;
    khub__pairs_read *same, *beside_float32, *beside_float64; /* NULL: not compared */
} khub__dtype_reader;

/* NULL for a dtype that isn't compared. Static. */
const khub__dtype_reader *khub__dtype_reader_of(khub_dtype dtype);

/* What the parts of a block add up to, lane by lane; all zero: nothing yet. Only the last part may have a
 * count that isn't a multiple of KHUB__LANES. */
typedef struct khub__lane_sums {
    double lanes[KHUB__SUMS][KHUB__LANES];
} khub__lane_sums;

void khub__lanes_take(khub__lane_sums *sums, const khub__pairs *pairs);
/* Adds the block to the comparison's sums, or of them the product alone. The lanes are no more after that. */
void khub__lanes_add(khub_comparison *c, khub__lane_sums *sums);
void khub__lanes_add_product(khub_comparison *c, khub__lane_sums *sums);
/* Looks for pairs that are worse than the worst so far. */
void khub__pairs_worst(khub_comparison *c, const khub__pairs *pairs);

/* A relative error counts as worse than the worst so far when it is so by more than the last bits of a
 * double: when |a - b| > bound * |b|. So every way of looking for it finds the same pair. */
double khub__relative_bound(const khub_comparison *c);

/* bound * |b|; 0 where the product may have lost bits, being near the least double: there any difference has
 * to be divided. */
#define KHUB__LEAST_LIMIT 0x1p-1000
static inline double khub__relative_limit(double bound, double size_of_b)
{
    double limit = bound * size_of_b;
    return limit < KHUB__LEAST_LIMIT ? 0 : limit;
}

/* Adds the totals of a block's lanes to the sums. The product follows from the squares where a and b are of
 * one size, as they nearly always are; where not, 0: khub__lanes_add_product must add it. */
int khub__totals_add(khub_comparison *c, const double total[KHUB__LANE_SUMS]);

/* Adds one number to a sum, exactly but for the last bit of `low`. */
void khub__sum_add(khub_comparison *c, int which, double x);

#endif
