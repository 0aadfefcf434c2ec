/* RMSNorm and LayerNorm, with and without a residual that is added first; once for each path. */
#include "norm.h"

#include "rms.h"

/* A row's input: x, or x + residual as it is stored. */
VEC v16 input(const char *x, const char *residual, int64_t i, int64_t n, int type, int added)
{
    v16 v = v_read(x, i, n, type);
    return added ? v_rounded(v_add(v, v_read(residual, i, n, type)), type) : v;
}

/* Only lanes that lie within the row count. */
VEC v16 within(v16 v, int64_t i, int64_t n)
{
    return n - i >= 16 ? v : v_first(v, n - i, 0);
}

/* What is squared: v, less the mean when `centered`, both times `by` when `shrunk`. */
VEC v16 term(v16 v, v16 mean, v16 by, int centered, int shrunk)
{
    if (shrunk) return v_fma(v, by, v_sub(v_set(0), mean));
    return centered ? v_sub(v, mean) : v;
}

/* 0: a sum had no end, and nothing was written. Never when `shrunk`. */
VEC int norm_row(char *out, char *sum, const char *x, const char *residual, const norm_params *p, int type,
                 int added, int centered, int shrunk)
{
    const v16 by = v_set(RMS_SHRUNK);
    int64_t n = p->n;
    v16 total = v_set(0), squares = v_set(0), mean = v_set(0);
    if (centered) {
        for (int64_t i = 0; i < n; i += 16) {
            v16 v = input(x, residual, i, n, type, added);
            total = shrunk ? v_fma(v, by, total) : v_add(total, v);
        }
        mean = v_set(v_sum(total) / (float)n);
    }
    for (int64_t i = 0; i < n; i += 16) {
        v16 v = term(input(x, residual, i, n, type, added), mean, by, centered, shrunk);
        if (centered) v = within(v, i, n);
        squares = v_fma(v, v, squares);
    }
    if (!shrunk && !rms_fits(squares)) return 0;
    v16 scale = !shrunk    ? rms_scale(squares, n, p->eps)
                : centered ? rms_scale(squares, n, p->eps * RMS_SHRUNK * RMS_SHRUNK)
                           : rms_scale_of_shrunk(squares, n, p->eps);
    for (int64_t i = 0; i < n; i += 16) {
        v16 v = input(x, residual, i, n, type, added);
        if (added && sum) v_write(sum, i, n, type, v);
        v = v_mul(centered ? term(v, mean, by, 1, shrunk) : v, scale);
        v16 weight = v_read(p->weight, i, n, type);
        v = p->bias ? v_fma(v, weight, v_read(p->bias, i, n, type)) : v_mul(v, weight);
        v_write(out, i, n, type, v);
    }
    return 1;
}

/* A row whose sums are too large for float32; or with an infinity or NaN in it, for which it is as good. */
static __attribute__((noinline)) void huge_row(char *out, char *sum, const char *x, const char *residual,
                                               const norm_params *p, int type, int added, int centered)
{
    norm_row(out, sum, x, residual, p, type, added, centered, 1);
}

VEC void norm_rows(const khub__rows *rows, const norm_params *p, int type, int added, int centered)
{
    char *out = rows->data[NORM_OUT], *sum = rows->data[NORM_SUM];
    const char *x = rows->data[NORM_X], *residual = rows->data[NORM_RESIDUAL];
    for (int64_t row = 0; row < rows->count; row++) {
        if (!norm_row(out, sum, x, residual, p, type, added, centered, 0))
            huge_row(out, sum, x, residual, p, type, added, centered);
        out += rows->step[NORM_OUT];
        x += rows->step[NORM_X];
        if (added) residual += rows->step[NORM_RESIDUAL];
        if (added && sum) sum += rows->step[NORM_SUM];
    }
}

#define DEFINE(name, type, added, centered)                                                                  \
    static void name(const khub__rows *rows, const norm_params *params)                                      \
    {                                                                                                        \
        norm_rows(rows, params, type, added, centered);                                                      \
    }
DEFINE(rms_f32, F32, 0, 0)
DEFINE(rms_bf16, BF16, 0, 0)
DEFINE(add_rms_f32, F32, 1, 0)
DEFINE(add_rms_bf16, BF16, 1, 0)
DEFINE(layer_f32, F32, 0, 1)
DEFINE(layer_bf16, BF16, 0, 1)
DEFINE(add_layer_f32, F32, 1, 1)
DEFINE(add_layer_bf16, BF16, 1, 1)

extern const norm_path PATH(norm);
const norm_path PATH(norm) = {.rms = {rms_f32, rms_bf16},
                              .add_rms = {add_rms_f32, add_rms_bf16},
                              .layer = {layer_f32, layer_bf16},
                              .add_layer = {add_layer_f32, add_layer_bf16}};
