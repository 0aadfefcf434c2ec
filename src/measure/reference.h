/* Every layer straight from its definition in docs/layers.md, in double, long sums in twice that. Shares
 * nothing with the standard functions or the kernels. */
#ifndef MEASURE_REFERENCE_H
#define MEASURE_REFERENCE_H

#include "measure/cases.h"

/* By argument, in the layer's order: compact arrays of the elements; NULL for what is left out or no tensor.
 */
typedef struct khub__exact {
    const double *in[KHUB__MAX_ARGS];
    double *out[KHUB__MAX_ARGS];   /* of outputs: the result before it is rounded */
    double *scale[KHUB__MAX_ARGS]; /* its size, or that of the terms it is the sum of (docs/determinism.md) */
} khub__exact;

void khub__reference(const khub__case *c, const khub__exact *exact);

/* One family of layers each; for reference.c. */
void khub__reference_norm(const khub__case *c, const khub__exact *exact);
void khub__reference_tables(const khub__case *c, const khub__exact *exact);
void khub__reference_softmax(const khub__case *c, const khub__exact *exact);
void khub__reference_attention(const khub__case *c, const khub__exact *exact);
void khub__reference_norm_linear(const khub__case *c, const khub__exact *exact);
void khub__reference_linear(const khub__case *c, const khub__exact *exact, double (*apply)(double x));

/* A sum that keeps what rounding takes from it. */
typedef struct khub__sum {
    double high, low;
} khub__sum;

static inline void khub__sum_of(khub__sum *sum, double x)
{
    double next = sum->high + x, part = next - sum->high; /* Knuth's two-sum */
    double lost = (sum->high - (next - part)) + (x - part);
    sum->high = next;
    sum->low += lost;
}

/* An overflow of the sum makes `low` a NaN: the sum is what `high` says then. */
static inline double khub__sum_value(const khub__sum *sum)
{
    return sum->low - sum->low == 0 ? sum->high + sum->low : sum->high;
}

#endif
