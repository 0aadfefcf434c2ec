/* Comparing two tensors beside copying one of them, on one core and in turns: both move twice the bytes of a
 * tensor, the one by reading two, the other by reading and writing one. */
#include "timing.h"

#include <khub/khub.h>

enum { WINDOWS = 16, WINDOW = 4 << 20, BYTES = WINDOWS * WINDOW, ROUNDS = 5 };

typedef struct job {
    char *a, *b, *copy;
    khub_dtype a_dtype, b_dtype;
    int64_t count, width;
} job;

static int fail(const khub_error *err)
{
    fprintf(stderr, "%s\n", err->message);
    return 1;
}

static uint64_t random_bits(void)
{
    static uint64_t state = 88172645463325252u;
    state ^= state >> 12, state ^= state << 25, state ^= state >> 27;
    return state * UINT64_C(2685821657736338717);
}

/* Integers, any, and float8 of size 2^-8 to 2^8, less what e4m3fn hasn't; the elements of b are within 3 of
 * those of a. */
static void fill_integers(const job *j, unsigned same)
{
    for (int64_t i = 0; i < j->count; i++) {
        uint64_t r = random_bits(), off = r % 8 < same ? 0 : r / 8 % 7 - 3;
        int bytes = j->a_dtype.bits / 8;
        r = r >> 8 | r << 56;
        if (j->a_dtype.code == KHUB_DTYPE_FLOAT8_E4M3FN)
            r = (r & 0x80) | (8 + (r & 0x7f) % 112); /* 2^-6 to 2^8 */
        else if (j->a_dtype.code == KHUB_DTYPE_FLOAT8_E5M2)
            r = (r & 0x80) | (28 + (r & 0x3f));
        else /* none so near to the ends that 3 more or less turn it around */
            r = (r | 4) & ~(UINT64_C(1) << (8 * bytes - 2));
        memcpy(j->a + i * bytes, &r, (size_t)bytes);
        r += off;
        memcpy(j->b + i * bytes, &r, (size_t)bytes);
    }
}

/* Of size 2^-8 to 2^8, either sign; the elements of b are within 3 ULPs, `same` in 8 the same. */
static void fill(const job *j, unsigned same)
{
    if (j->a_dtype.bits == 8 || j->a_dtype.code == KHUB_DTYPE_INT || j->a_dtype.code == KHUB_DTYPE_UINT) {
        fill_integers(j, same);
        return;
    }
    for (int64_t i = 0; i < j->count; i++) {
        uint64_t r = random_bits(), off = r % 8 < same ? 0 : r / 8 % 7 - 3;
        uint32_t bits = (uint32_t)(r >> 32 & 0x807fffff) | (uint32_t)(119 + r / 64 % 16) << 23;
        if (j->a_dtype.bits == 16 && j->b_dtype.bits == 16) {
            uint16_t a = (uint16_t)(bits >> 16), b = (uint16_t)(a + off);
            memcpy(j->a + 2 * i, &a, 2);
            memcpy(j->b + 2 * i, &b, 2);
        } else if (j->a_dtype.bits == 32 && j->b_dtype.bits == 32) {
            uint32_t b = bits + (uint32_t)off;
            memcpy(j->a + 4 * i, &bits, 4);
            memcpy(j->b + 4 * i, &b, 4);
        } else {
            float a;
            uint16_t upper = (uint16_t)(bits >> 16);
            if (j->a_dtype.bits == 16) bits = (uint32_t)upper << 16;
            memcpy(&a, &bits, 4);
            double wide = a,
                   b = wide * (1 + (double)(int64_t)off * (j->a_dtype.bits == 16 ? 0x1p-8 : 0x1p-24));
            const void *narrow = j->a_dtype.bits == 32 ? (void *)&a : (void *)&wide;
            memcpy(j->a + i * j->a_dtype.bits / 8, j->a_dtype.bits == 16 ? (void *)&upper : narrow,
                   j->a_dtype.bits / 8);
            memcpy(j->b + 8 * i, &b, 8);
        }
    }
}

static double copying(const job *j, int window)
{
    double start = seconds();
    memcpy(j->copy + (size_t)window * WINDOW, j->a + (size_t)window * WINDOW, WINDOW);
    __asm__ volatile("" : : "r"(j->copy) : "memory");
    return seconds() - start;
}

static double comparing(const job *j, int window, khub_comparison *c, khub_error *err)
{
    int64_t count = WINDOW / (j->b_dtype.bits / 8), shape[] = {count / j->width, j->width};
    khub_tensor a = khub_tensor_over(j->a, j->a_dtype, 2, shape),
                b = khub_tensor_over(j->b, j->b_dtype, 2, shape);
    a.byte_offset = (uint64_t)(window * count * j->a_dtype.bits / 8);
    b.byte_offset = (uint64_t)window * WINDOW;
    double start = seconds();
    if (khub_comparison_add(c, &a, &b, err) != KHUB_OK) exit(fail(err));
    return seconds() - start;
}

/* Window by window, each so small that it is seldom interrupted; what is compared was copied so long ago that
 * no cache has it. */
static void measure_both(const job *j, const char *name, const char *what, khub_error *err)
{
    enum { SAMPLES = ROUNDS * WINDOWS };
    double copies[SAMPLES], comparisons[SAMPLES];
    khub_comparison c = {0};
    for (int i = 0; i < SAMPLES; i++) {
        copies[i] = copying(j, i % WINDOWS);
        comparisons[i] = comparing(j, (i + WINDOWS / 2) % WINDOWS, &c, err);
    }
    qsort(copies, SAMPLES, sizeof(double), by_size);
    qsort(comparisons, SAMPLES, sizeof(double), by_size);
    double bytes = (double)WINDOW / j->b_dtype.bits * (j->a_dtype.bits + j->b_dtype.bits);
    double best = bytes / comparisons[0], median = bytes / comparisons[SAMPLES / 2],
           best_copy = 2.0 * WINDOW / copies[0], median_copy = 2.0 * WINDOW / copies[SAMPLES / 2];
    printf("%-18s rows of %-8lld %-14s best %5.1f median %5.1f GB/s, %4.2f and %4.2f of copying\n", name,
           (long long)j->width, what, best / 1e9, median / 1e9, best / best_copy, median / median_copy);
}

/* All, or those whose names are given. */
int main(int argc, char **argv)
{
    static const struct {
        const char *name, *a, *b;
    } runs[] = {{"float32", "float32", "float32"},
                {"bfloat16", "bfloat16", "bfloat16"},
                {"float16", "float16", "float16"},
                {"float64", "float64", "float64"},
                {"float32/float64", "float32", "float64"},
                {"bfloat16/float64", "bfloat16", "float64"},
                {"float8_e4m3fn", "float8_e4m3fn", "float8_e4m3fn"},
                {"float8_e5m2", "float8_e5m2", "float8_e5m2"},
                {"int8", "int8", "int8"},
                {"uint8", "uint8", "uint8"},
                {"int16", "int16", "int16"},
                {"uint16", "uint16", "uint16"},
                {"int32", "int32", "int32"},
                {"uint32", "uint32", "uint32"},
                {"int64", "int64", "int64"},
                {"uint64", "uint64", "uint64"}};
    static const int64_t widths[] = {1 << 18, 1024, 64};
    khub_error err = {0};
    job j = {aligned_alloc(64, BYTES), aligned_alloc(64, BYTES), aligned_alloc(64, BYTES)};
    if (!j.a || !j.b || !j.copy) return 1;
    memset(j.copy, 1, BYTES);
    for (size_t r = 0; r < sizeof(runs) / sizeof(*runs); r++) {
        int is_asked = argc < 2;
        for (int i = 1; i < argc; i++)
            is_asked |= strcmp(argv[i], runs[r].name) == 0;
        if (!is_asked) continue;
        if (khub_dtype_parse(&j.a_dtype, runs[r].a, &err) != KHUB_OK ||
            khub_dtype_parse(&j.b_dtype, runs[r].b, &err) != KHUB_OK)
            return fail(&err);
        j.count = BYTES / (j.b_dtype.bits / 8);
        for (size_t w = 0; w < sizeof(widths) / sizeof(*widths); w++) {
            j.width = widths[w];
            fill(&j, 2);
            measure_both(&j, runs[r].name, "most differ", &err);
        }
        fill(&j, 8);
        measure_both(&j, runs[r].name, "none differs", &err);
    }
    free(j.a);
    free(j.b);
    free(j.copy);
    return 0;
}
