#include "numerics/pairs.h"

#include "numerics/format.h"

#include <float.h>

/* Knuth's TwoSum: the rounded sum, and exactly what rounding took. */
void khub__sum_add(khub_comparison *c, int which, double x)
{
    double high = c->sums[which].high, sum = high + x;
    double from_x = sum - high, from_high = sum - from_x;
    double lost = (high - from_high) + (x - from_x);
    c->sums[which].high = sum;
    if (lost - lost == 0) c->sums[which].low += lost; /* past double's range there is nothing to keep */
}

/* Adds lanes i and i + 4 first, then i + 2, then i + 1. */
static double total_of(double lanes[KHUB__LANES])
{
    for (int width = KHUB__LANES / 2; width; width /= 2)
        for (int i = 0; i < width; i++)
            lanes[i] += lanes[i + width];
    return lanes[0];
}

int khub__totals_add(khub_comparison *c, const double total[KHUB__LANE_SUMS])
{
    for (int which = 0; which < KHUB__LANE_SUMS; which++)
        khub__sum_add(c, which, total[which]);
    double aa = total[KHUB__SUM_A], bb = total[KHUB__SUM_B], dd = total[KHUB__SUM_SQUARE];
    if (!(aa <= 4 * bb && bb <= 4 * aa)) return 0;
    khub__sum_add(c, KHUB__SUM_PRODUCT, (aa + bb - dd) / 2); /* no more is lost than in aa and bb */
    return 1;
}

void khub__lanes_take(khub__lane_sums *sums, const khub__pairs *pairs)
{
    double(*lanes)[KHUB__LANES] = sums->lanes;
    for (size_t i = 0; i < pairs->count; i += KHUB__LANES)
        for (size_t l = 0; l < KHUB__LANES; l++) {
            double a = pairs->a[i + l], b = pairs->b[i + l], distance = pairs->distance[i + l];
            lanes[KHUB__SUM_ULP][l] += pairs->ulp[i + l];
            lanes[KHUB__SUM_ABSOLUTE][l] += distance;
            lanes[KHUB__SUM_SQUARE][l] += distance * distance;
            lanes[KHUB__SUM_A][l] += a * a;
            lanes[KHUB__SUM_B][l] += b * b;
            lanes[KHUB__SUM_PRODUCT][l] += a * b;
        }
}

void khub__lanes_add_product(khub_comparison *c, khub__lane_sums *sums)
{
    khub__sum_add(c, KHUB__SUM_PRODUCT, total_of(sums->lanes[KHUB__SUM_PRODUCT]));
}

void khub__lanes_add(khub_comparison *c, khub__lane_sums *sums)
{
    double total[KHUB__LANE_SUMS];
    for (int which = 0; which < KHUB__LANE_SUMS; which++)
        total[which] = total_of(sums->lanes[which]);
    if (!khub__totals_add(c, total)) khub__lanes_add_product(c, sums);
}

double khub__relative_bound(const khub_comparison *c)
{
    double bound = c->relative.value * (1 + 0x1p-51);
    return bound < DBL_MAX ? bound : DBL_MAX; /* infinity times 0 would be no number */
}

static void keep_worse(khub_worst *worst, double value, const khub_comparison *c, const khub__pairs *pairs,
                       size_t i)
{
    if (value > worst->value) *worst = (khub_worst){value, c->count + i, pairs->a[i], pairs->b[i]};
}

/* Whether khub__pairs_worst has anything to do: seldom, and found out fast. */
static int has_worse(const khub_comparison *c, const khub__pairs *pairs)
{
    const double ulp = c->ulp.value, absolute = c->absolute.value, relative = khub__relative_bound(c);
    int worse = 0;
    for (size_t i = 0; i < pairs->count; i++) {
        double distance = pairs->distance[i];
        worse |= (pairs->ulp[i] > ulp) | (distance > absolute) |
                 (distance > khub__relative_limit(relative, khub__size_of(pairs->b[i])));
    }
    return worse;
}

void khub__pairs_worst(khub_comparison *c, const khub__pairs *pairs)
{
    if (!has_worse(c, pairs)) return;
    for (size_t i = 0; i < pairs->count; i++) {
        double b = khub__size_of(pairs->b[i]), distance = pairs->distance[i];
        keep_worse(&c->ulp, pairs->ulp[i], c, pairs, i);
        keep_worse(&c->absolute, distance, c, pairs, i);
        if (b == 0)
            c->zero_missed += distance > 0;
        else if (distance > khub__relative_limit(khub__relative_bound(c), b))
            keep_worse(&c->relative, distance / b, c, pairs, i);
    }
}
