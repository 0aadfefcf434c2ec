/* Norms and softmax: row by row. */
#include "measure/element.h"
#include "measure/reference.h"

#include <math.h>

/* The arguments of one row of a norm; NULL for what the layer hasn't, or the case leaves out. */
typedef struct row {
    const double *x, *weight, *bias;
    double *out, *scale;
    int64_t n;
    double eps;
} row;

static double mean_of(const double *x, int64_t n, double center, int square)
{
    khub__sum sum = {0, 0};
    for (int64_t i = 0; i < n; i++)
        khub__sum_of(&sum, square ? (x[i] - center) * (x[i] - center) : x[i]);
    return khub__sum_value(&sum) / (double)n;
}

static double mean_size(const double *x, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += fabs(x[i]);
    return sum / (double)n;
}

static void rms_norm(const row *r)
{
    double root = sqrt(mean_of(r->x, r->n, 0, 1) + r->eps);
    for (int64_t i = 0; i < r->n; i++) {
        r->out[i] = r->x[i] / root * r->weight[i];
        r->scale[i] = fabs(r->out[i]);
    }
}

static void layer_norm(const row *r)
{
    double mean = mean_of(r->x, r->n, 0, 0), size = mean_size(r->x, r->n);
    double root = sqrt(mean_of(r->x, r->n, mean, 1) + r->eps);
    for (int64_t i = 0; i < r->n; i++) {
        double bias = r->bias ? r->bias[i] : 0, x = r->x[i]; /* may be out[i] */
        r->out[i] = (x - mean) / root * r->weight[i] + bias;
        r->scale[i] = (fabs(x) + size) / root * fabs(r->weight[i]) + fabs(bias);
    }
}

/* Where the arguments of a norm stand; -1: it has none. */
typedef struct places {
    int32_t sum, x, residual, weight, bias, eps;
} places;

static places places_of(const khub__layer_def *layer)
{
    const char *const names[] = {"sum", "x", "residual", "weight", "bias", "eps"};
    int32_t at[6];
    for (int i = 0; i < 6; i++)
        at[i] = khub__layer_position(layer, names[i]);
    return (places){at[0], at[1], at[2], at[3], at[4], at[5]};
}

/* sum = x + residual before it is rounded, and as it is stored, which is what is normalized, in `rounded`. */
static void add(const khub__case *c, const khub__exact *e, const places *at, int64_t from, double *rounded)
{
    for (int64_t i = 0; i < c->extents[c->ndim - 1]; i++) {
        double sum = e->in[at->x][from + i] + e->in[at->residual][from + i];
        rounded[i] = khub__element_round(c->dtype, sum);
        if (c->args[at->sum].is_none) continue;
        e->out[at->sum][from + i] = sum;
        e->scale[at->sum][from + i] = fabs(sum);
    }
}

void khub__reference_norm(const khub__case *c, const khub__exact *e)
{
    places at = places_of(c->layer);
    int64_t n = c->extents[c->ndim - 1], count = 1;
    for (int32_t i = 0; i < c->ndim; i++)
        count *= c->extents[i];
    for (int64_t from = 0; from < count; from += n) {
        /* the sum of an Add…Norm lies where its result is going to be */
        double *out = e->out[0] + from;
        if (at.residual >= 0) add(c, e, &at, from, e->scale[0] + from);
        for (int64_t i = 0; at.residual >= 0 && i < n; i++)
            out[i] = e->scale[0][from + i];
        const double *bias = at.bias >= 0 && !c->args[at.bias].is_none ? e->in[at.bias] : NULL;
        row r = {at.residual >= 0 ? out : e->in[at.x] + from,
                 e->in[at.weight],
                 bias,
                 out,
                 e->scale[0] + from,
                 n,
                 c->args[at.eps].number};
        if (at.bias >= 0)
            layer_norm(&r);
        else
            rms_norm(&r);
    }
}

/* Rows of tables added up; what LayerNorm normalizes is the sum as it is stored. */
void khub__reference_tables(const khub__case *c, const khub__exact *e)
{
    enum { OUT, IDS, WORDS = 4, WEIGHT = 7, BIAS, EPS, COUNT = 3 };
    int64_t n = c->extents[2];
    for (int64_t i = 0; i < c->extents[0]; i++) {
        double *out = e->out[OUT] + i * n, *scale = e->scale[OUT] + i * n;
        for (int64_t k = 0; k < n; k++) {
            double sum = out[k] = scale[k] = 0;
            for (int32_t t = 0; t < COUNT; t++) {
                if (c->args[WORDS + t].is_none) continue;
                double at = c->args[IDS + t].is_none ? 0 : e->in[IDS + t][i];
                double part = e->in[WORDS + t][(int64_t)at * n + k];
                sum += part, scale[k] += fabs(part);
            }
            out[k] = sum;
        }
        if (c->layer->arg_count <= WEIGHT) continue;
        for (int64_t k = 0; k < n; k++)
            out[k] = khub__element_round(c->dtype, out[k]);
        row r = {out, e->in[WEIGHT],      c->args[BIAS].is_none ? NULL : e->in[BIAS], out, scale,
                 n,   c->args[EPS].number};
        layer_norm(&r);
    }
}

void khub__reference_softmax(const khub__case *c, const khub__exact *e)
{
    int64_t n = c->extents[c->ndim - 1], count = 1;
    for (int32_t i = 0; i < c->ndim; i++)
        count *= c->extents[i];
    for (int64_t from = 0; from < count; from += n) {
        const double *x = e->in[1] + from;
        double max = x[0], *out = e->out[0] + from;
        khub__sum sum = {0, 0};
        for (int64_t i = 0; i < n; i++)
            max = x[i] > max || isnan(x[i]) ? x[i] : max; /* a NaN stays: nothing is larger */
        for (int64_t i = 0; i < n; i++)
            khub__sum_of(&sum, out[i] = exp(x[i] - max));
        for (int64_t i = 0; i < n; i++) {
            out[i] /= khub__sum_value(&sum);
            e->scale[0][from + i] = out[i];
        }
    }
}
