/* Embeds the sentences of the command line with and without kernels and prints how similar they are:
 *     cc similarity.c $(pkg-config --cflags --libs khub-model) -lm -o similarity
 *     similarity MODEL SENTENCE...
 * Shows a whole program on libkhub-model: open, embed, kernelize, report. */
#include <khub/khub.h>
#include <khub/model.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { REPEATS = 9 };

static double now_ms(void)
{
    struct timespec t;
    timespec_get(&t, TIME_UTC);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

/* Embeds `count` texts into out (count, width), several times; the best time in *ms. */
static int embed(khub_model *model, const char *const *texts, size_t count, float *out, double *ms,
                 khub_error *err)
{
    *ms = INFINITY;
    for (int i = 0; i < REPEATS; i++) {
        double start = now_ms();
        int rc = khub_model_embed(model, texts, NULL, count, out, NULL, err);
        if (rc != KHUB_OK) return rc;
        *ms = fmin(*ms, now_ms() - start);
    }
    return KHUB_OK;
}

/* Embeddings have length 1: their dot product is the cosine. */
static double cosine(const float *a, const float *b, size_t width)
{
    double sum = 0;
    for (size_t i = 0; i < width; i++)
        sum += (double)a[i] * b[i];
    return sum;
}

static void print_matrix(const char *const *texts, size_t count, const float *vectors, size_t width)
{
    for (size_t i = 0; i < count; i++) {
        printf("  %zu ", i + 1);
        for (size_t j = 0; j < count; j++)
            printf(" %6.3f", cosine(vectors + i * width, vectors + j * width, width));
        printf("   %s\n", texts[i]);
    }
}

static void print_result(const khub_report *report, double standard_ms, double kernels_ms, double largest)
{
    printf("\n  standard functions           %8.2f ms\n", standard_ms);
    printf("  kernels in %3zu of %3zu slots   %8.2f ms, %.1f times as fast\n", khub_report_filled(report),
           khub_report_slots(report), kernels_ms, standard_ms / kernels_ms);
    printf("  largest difference           %8.1e\n", largest);
}

static int compare(khub_model *model, const char *const *texts, size_t count, float *standard, float *kernels,
                   khub_error *err)
{
    size_t width = khub_model_width(model);
    double standard_ms, kernels_ms, largest = 0;
    khub_report *report = NULL;
    int rc = embed(model, texts, count, standard, &standard_ms, err);
    if (rc == KHUB_OK) rc = khub_kernelize(khub_model_layers(model), NULL, &report, err);
    if (rc == KHUB_OK) rc = embed(model, texts, count, kernels, &kernels_ms, err);
    if (rc == KHUB_OK) {
        for (size_t i = 0; i < count * width; i++) {
            double difference = fabs((double)standard[i] - kernels[i]);
            if (!(difference <= largest)) largest = difference;
        }
        print_matrix(texts, count, kernels, width);
        print_result(report, standard_ms, kernels_ms, largest);
    }
    khub_report_free(report);
    return rc;
}

int main(int argc, char **argv)
{
    if (argc < 3) return fprintf(stderr, "usage: similarity MODEL SENTENCE...\n"), 2;
    khub_error err = {0};
    khub_model *model;
    if (khub_model_open(&model, argv[1], NULL, &err) != KHUB_OK)
        return fprintf(stderr, "similarity: %s\n", err.message), 1;
    size_t count = (size_t)argc - 2, width = khub_model_width(model);
    float *room = calloc(2 * count * width, sizeof(float));
    int rc = room ? compare(model, (const char *const *)argv + 2, count, room, room + count * width, &err)
                  : KHUB_E_NOMEM;
    if (rc != KHUB_OK) fprintf(stderr, "similarity: %s\n", room ? err.message : "out of memory");
    free(room);
    khub_model_close(model);
    return rc != KHUB_OK;
}
