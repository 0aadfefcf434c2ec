#include "measure/accuracy.h"

#include "measure/element.h"

#include <math.h>
#include <stdio.h>

/* The number after the largest one stands for infinity. */
static double within(khub__format f, double x)
{
    double most = khub__power_of_two(f.bias) * 2;
    return x > most ? most : x < -most ? -most : x;
}

/* An infinite result that is no infinity of the reference, or the other way round; NaN beside anything else.
 * Beside the largest numbers infinity is a step away, not another class. */
static int is_unlike(khub__format f, double got, double exact)
{
    if (isnan(got) || isnan(exact)) return isnan(got) != isnan(exact);
    if (isinf(got) && isinf(exact)) return got != exact;
    double large = khub__power_of_two(f.bias); /* the highest binade */
    if (isinf(got)) return fabs(exact) < large || (got > 0) != (exact > 0);
    if (isinf(exact)) return fabs(got) < large || (got > 0) != (exact > 0);
    return 0;
}

static double error_of(khub__format f, double got, double exact, double scale)
{
    double step, size = fabs(within(f, isnan(scale) || scale < fabs(exact) ? exact : scale));
    khub__round_to(f, size, &step);
    if (size == khub__power_of_two(f.bias) * 2) step = khub__power_of_two(f.bias - f.mantissa);
    return fabs(within(f, got) - within(f, exact)) / step;
}

static void add_to_sums(khub_accuracy *accuracy, double got, double exact)
{
    if (isinf(got) || isinf(exact)) return;
    accuracy->sums.errors += (got - exact) * (got - exact);
    accuracy->sums.exact += exact * exact;
    accuracy->sums.got += got * got;
    accuracy->sums.products += got * exact;
}

void khub__accuracy_add(khub_accuracy *accuracy, const khub__results *results)
{
    khub__format f = khub__format_of(results->dtype);
    for (int64_t i = 0; i < results->count; i++) {
        double got = khub__element_get(results->dtype, results->got, i), exact = results->exact[i];
        int unlike = is_unlike(f, got, exact);
        accuracy->unlike += (uint64_t)unlike;
        if (unlike || isnan(exact)) continue;
        double error = error_of(f, got, exact, results->scale[i]);
        double absolute = isinf(got) || isinf(exact) ? 0 : fabs(got - exact);
        if (absolute > accuracy->absolute) accuracy->absolute = absolute;
        if (absolute > accuracy->relative * fabs(exact) && exact != 0)
            accuracy->relative = absolute / fabs(exact);
        add_to_sums(accuracy, got, exact);
        accuracy->elements++;
        accuracy->mean += error;
        if (error <= accuracy->worst && accuracy->name[0]) continue;
        accuracy->worst = error;
        accuracy->got = got;
        accuracy->exact = exact;
        accuracy->index = (uint64_t)i;
        snprintf(accuracy->name, sizeof(accuracy->name), "%s", results->name);
        snprintf(accuracy->arg, sizeof(accuracy->arg), "%s", results->arg);
    }
}

void khub__accuracy_merge(khub_accuracy *into, const khub_accuracy *other)
{
    khub_accuracy sum = other->elements && (!into->elements || other->worst > into->worst) ? *other : *into;
    sum.elements = into->elements + other->elements;
    sum.mean = into->mean + other->mean;
    sum.unlike = into->unlike + other->unlike;
    sum.absolute = fmax(into->absolute, other->absolute);
    sum.relative = fmax(into->relative, other->relative);
    sum.sums.errors = into->sums.errors + other->sums.errors;
    sum.sums.exact = into->sums.exact + other->sums.exact;
    sum.sums.got = into->sums.got + other->sums.got;
    sum.sums.products = into->sums.products + other->sums.products;
    *into = sum;
}

/* 0 beside 0: nothing is missed. */
static double ratio(double part, double whole)
{
    return part > 0 || whole > 0 ? part / whole : 0;
}

double khub__accuracy_rms(const khub_accuracy *accuracy)
{
    return sqrt(ratio(accuracy->sums.errors, accuracy->sums.exact));
}

void khub__accuracy_finish(khub_accuracy *accuracy)
{
    if (accuracy->elements) accuracy->mean /= (double)accuracy->elements;
    double sizes = sqrt(accuracy->sums.exact) * sqrt(accuracy->sums.got);
    accuracy->rms = khub__accuracy_rms(accuracy);
    double cosine = sizes > 0 ? accuracy->sums.products / sizes : accuracy->sums.errors == 0;
    accuracy->cosine = cosine > 1 ? 1 : cosine < -1 ? -1 : cosine; /* roots are rounded */
}

static int same(khub_dtype dtype, const void *a, const void *b, int64_t i)
{
    int bytes = dtype.bits / 8;
    if (khub__bits_at(a, (size_t)i, bytes) == khub__bits_at(b, (size_t)i, bytes)) return 1;
    return isnan(khub__element_get(dtype, a, i)) && isnan(khub__element_get(dtype, b, i));
}

int64_t khub__first_different(khub_dtype dtype, const void *a, const void *b, int64_t count)
{
    if (count == 0 || memcmp(a, b, (size_t)count * (dtype.bits / 8)) == 0) return -1;
    for (int64_t i = 0; i < count; i++)
        if (!same(dtype, a, b, i)) return i;
    return -1;
}

int64_t khub__count_same(khub_dtype dtype, const void *a, const void *b, int64_t count)
{
    int64_t alike = 0;
    for (int64_t i = 0; i < count; i++)
        alike += same(dtype, a, b, i);
    return alike;
}
