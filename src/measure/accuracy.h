/* How far results are from the exact ones (docs/determinism.md, "How errors are counted"). */
#ifndef MEASURE_ACCURACY_H
#define MEASURE_ACCURACY_H

#include <khub/compare.h>

/* One output of one case: compact elements, their exact values and scales. */
typedef struct khub__results {
    khub_dtype dtype;
    const void *got;
    const double *exact, *scale;
    int64_t count;
    const char *name, *arg; /* of the case, of the output */
} khub__results;

/* Counts the elements on top of what *accuracy has, whose `mean` is a sum until khub__accuracy_finish. */
void khub__accuracy_add(khub_accuracy *accuracy, const khub__results *results);
/* As if the elements of `other` had been added. */
void khub__accuracy_merge(khub_accuracy *into, const khub_accuracy *other);
void khub__accuracy_finish(khub_accuracy *accuracy);
/* `rms` of what was added so far. */
double khub__accuracy_rms(const khub_accuracy *accuracy);

/* Index of the first elements of different bits; any NaN is like any other. -1: there are none. */
int64_t khub__first_different(khub_dtype dtype, const void *a, const void *b, int64_t count);
/* How many elements have the same bits, in the same sense. */
int64_t khub__count_same(khub_dtype dtype, const void *a, const void *b, int64_t count);

#endif
