/* Reads "A B" from each line of stdin, compares the arrays in these files and prints a line of JSON for each;
 * the status and its words where that fails. For tests that compare with NumPy. */
#include <khub/npy.h>
#include <khub/numerics.h>

#include <math.h>
#include <stdio.h>

#define COUNT(name) printf("\"%s\": %llu, ", #name, (unsigned long long)c->name)
/* As Python's json reads them: Infinity, NaN. */
#define NUMBER(name) print_number(#name, c->name)
#define WORST(name)                                                                                          \
    do {                                                                                                     \
        printf("\"%s\": {\"index\": %llu, ", #name, (unsigned long long)c->name.index);                      \
        print_number("a", c->name.a);                                                                        \
        print_number("b", c->name.b);                                                                        \
        print_number("value", c->name.value);                                                                \
        printf("\"\": 0}, ");                                                                                \
    } while (0)

static void print_number(const char *name, double x)
{
    if (isfinite(x))
        printf("\"%s\": %.17g, ", name, x);
    else
        printf("\"%s\": %s, ", name, isnan(x) ? "NaN" : x > 0 ? "Infinity" : "-Infinity");
}

static void print(const khub_comparison *c)
{
    putchar('{');
    COUNT(count), COUNT(identical), COUNT(first_different), COUNT(zero_signs), COUNT(finite);
    COUNT(both_nan), COUNT(nan_payloads), COUNT(nan_only_a), COUNT(nan_only_b);
    COUNT(infinity_same), COUNT(infinity_opposite), COUNT(infinity_only_a), COUNT(infinity_only_b);
    COUNT(zero_missed), COUNT(rows), COUNT(argmax_same);
    WORST(ulp);
    WORST(absolute);
    WORST(relative);
    NUMBER(identical_share), NUMBER(mean_ulp), NUMBER(mean_absolute), NUMBER(rms), NUMBER(cosine);
    printf("\"\": 0}\n");
}

int main(void)
{
    char first[1000], second[1000];
    while (scanf("%999s %999s", first, second) == 2) {
        khub_array a = {0}, b = {0};
        khub_comparison c;
        khub_error err = {0};
        int rc = khub_npy_read(&a, first, &err);
        if (rc == KHUB_OK) rc = khub_npy_read(&b, second, &err);
        if (rc == KHUB_OK) rc = khub_compare_tensors(&c, &a.tensor, &b.tensor, &err);
        if (rc == KHUB_OK)
            print(&c);
        else
            printf("{\"status\": \"%s\", \"words\": \"%s\"}\n", khub_status_name(rc), err.message);
        khub_array_free(&a);
        khub_array_free(&b);
    }
    return 0;
}
