/* Linear layers and attention: sums of products. A product of two numbers of 24 bits is exact in double. */
#include "measure/reference.h"

#include <math.h>

static double dot(const double *a, int64_t a_step, const double *b, int64_t b_step, int64_t n, double *size)
{
    khub__sum sum = {0, 0};
    double sizes = 0;
    for (int64_t i = 0; i < n; i++) {
        double product = a[i * a_step] * b[i * b_step];
        khub__sum_of(&sum, product);
        sizes += fabs(product);
    }
    if (size) *size = sizes;
    return khub__sum_value(&sum);
}

void khub__reference_linear(const khub__case *c, const khub__exact *e, double (*apply)(double x))
{
    enum { OUT, X, WEIGHT, BIAS, RESIDUAL };
    int has_residual = c->layer->arg_count > RESIDUAL;
    int64_t m = c->extents[0], n = c->extents[1], k = c->extents[2];
    for (int64_t i = 0; i < m * n; i++) {
        double size, sum = dot(e->in[X] + i / n * k, 1, e->in[WEIGHT] + i % n * k, 1, k, &size);
        double bias = c->args[BIAS].is_none ? 0 : e->in[BIAS][i % n];
        double rest = bias + (has_residual ? e->in[RESIDUAL][i] : 0);
        e->out[OUT][i] = apply ? apply(sum + rest) : sum + rest;
        e->scale[OUT][i] = size + fabs(bias) + (has_residual ? fabs(e->in[RESIDUAL][i]) : 0);
    }
}

/* What RMSNorm multiplies a row by before its weight. */
static double rms_scale(const double *x, int64_t k, double eps)
{
    khub__sum sum = {0, 0};
    for (int64_t i = 0; i < k; i++)
        khub__sum_of(&sum, x[i] * x[i]);
    return 1 / sqrt(khub__sum_value(&sum) / (double)k + eps);
}

/* The norm's result isn't rounded here: that a kernel rounds it is part of its error. */
void khub__reference_norm_linear(const khub__case *c, const khub__exact *e)
{
    enum { OUT, X, NORM_WEIGHT, EPS, WEIGHT, BIAS };
    int64_t m = c->extents[0], n = c->extents[1], k = c->extents[2];
    for (int64_t i = 0; i < m; i++) {
        const double *x = e->in[X] + i * k;
        double scale = rms_scale(x, k, c->args[EPS].number);
        for (int64_t j = 0; j < n; j++) {
            khub__sum sum = {0, 0};
            double size = 0, bias = c->args[BIAS].is_none ? 0 : e->in[BIAS][j];
            for (int64_t l = 0; l < k; l++) {
                double term = x[l] * scale * e->in[NORM_WEIGHT][l] * e->in[WEIGHT][j * k + l];
                khub__sum_of(&sum, term);
                size += fabs(term);
            }
            e->out[OUT][i * n + j] = khub__sum_value(&sum) + bias;
            e->scale[OUT][i * n + j] = size + fabs(bias);
        }
    }
}

enum { OUT, Q, K, V, LENGTHS, SCALE, CAUSAL, WINDOW };

/* One query of one head: p has room for s scores. */
static void attend(const khub__case *c, const khub__exact *e, int64_t b, int64_t i, int64_t h, double *out,
                   double *scale)
{
    int64_t t = c->extents[1], s = c->extents[2], heads = c->extents[3], groups = c->extents[4],
            d = c->extents[5];
    int64_t key = ((b * s) * groups + h / (heads / groups)) * d, step = groups * d;
    const double *q = e->in[Q] + ((b * t + i) * heads + h) * d;
    int64_t seen = c->args[LENGTHS].is_none ? s : (int64_t)e->in[LENGTHS][b];
    if (seen > s) seen = s;
    if (c->args[CAUSAL].number != 0 && i + s - t + 1 < seen) seen = i + s - t + 1;
    int64_t from = 0;
    if (!c->args[WINDOW].is_none) {
        int64_t window = (int64_t)c->args[WINDOW].number;
        if (i + s - t - window + 1 > 0) from = i + s - t - window + 1;
        if (i + s - t + window < seen) seen = i + s - t + window;
    }
    double max = -INFINITY;
    for (int64_t j = 0; j < d; j++)
        out[j] = scale[j] = 0;
    /* twice over the keys, so that no room for scores is needed */
    for (int64_t j = from; j < seen; j++) {
        double score = c->args[SCALE].number * dot(q, 1, e->in[K] + key + j * step, 1, d, NULL);
        if (score > max || isnan(score)) max = score;
        if (isnan(max)) break;
    }
    khub__sum total = {0, 0};
    for (int64_t j = from; j < seen; j++) {
        double score = c->args[SCALE].number * dot(q, 1, e->in[K] + key + j * step, 1, d, NULL);
        double p = exp(score - max);
        khub__sum_of(&total, p);
        for (int64_t l = 0; l < d; l++) {
            double term = p * e->in[V][key + j * step + l];
            out[l] += term;
            scale[l] += fabs(term);
        }
    }
    for (int64_t l = 0; l < d && seen > from; l++) {
        out[l] /= khub__sum_value(&total);
        scale[l] /= khub__sum_value(&total);
    }
}

void khub__reference_attention(const khub__case *c, const khub__exact *e)
{
    int64_t b = c->extents[0], t = c->extents[1], heads = c->extents[3], d = c->extents[5];
    for (int64_t i = 0; i < b * t * heads && d > 0; i++)
        attend(c, e, i / heads / t, i / heads % t, i % heads, e->out[OUT] + i * d, e->scale[OUT] + i * d);
}
