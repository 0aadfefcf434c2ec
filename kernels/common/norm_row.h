/* One row of RMSNorm or LayerNorm: the same bits wherever it is asked for. */
#ifndef KHUB_KERNELS_NORM_ROW_H
#define KHUB_KERNELS_NORM_ROW_H

#include "norm_params.h"
#include "parts.h"
#include "rms.h"

/* A row on its way: where it is, and what is known of it so far. */
typedef struct norm_one {
    char *out;
    const char *x, *residual;
    char *sum; /* x + residual goes here; then it is x */
    const norm_params *p;
    v16 mean, scale;
    int stream;
} norm_one;

/* What is read first, by whichever sum stands first. */
VEC v16 input(const norm_one *one, int64_t i, int64_t end, int type, int added)
{
    v16 v = v_read(one->x, i, end, type);
    if (!added) return v;
    v = v_rounded(v_add(v, v_read(one->residual, i, end, type)), type);
    v_write(one->sum, i, end, type, v);
    return v;
}

VEC float row_mean(const norm_one *one, int type, int added, int shrunk)
{
    v_parts total = V_PARTS_0;
#define STEP(part, i, end)                                                                                   \
    do {                                                                                                     \
        v16 v = input(one, i, end, type, added);                                                             \
        (part) = shrunk ? v_fma(v, v_set(RMS_SHRUNK), part) : v_add(part, v);                                \
    } while (0)
    V_PARTS_EACH(one->p->n, total, STEP);
#undef STEP
    return v_parts_sum(total) / (float)one->p->n;
}

VEC float row_squares(const norm_one *one, int type, int added, int centered, int shrunk)
{
    v_parts squares = V_PARTS_0;
#define STEP(part, i, end)                                                                                   \
    do {                                                                                                     \
        v16 v = input(one, i, end, type, added);                                                             \
        v = norm_term(v, one->mean, v_set(RMS_SHRUNK), centered, shrunk);                                    \
        if (centered && (end) - (i) < 16) v = v_first(v, (end) - (i), 0);                                    \
        (part) = v_fma(v, v, part);                                                                          \
    } while (0)
    V_PARTS_EACH(one->p->n, squares, STEP);
#undef STEP
    return v_parts_sum(squares);
}

VEC void finish(const norm_one *one, int64_t i, int64_t end, int type, int centered, int shrunk)
{
    v16 v = v_read(one->x, i, end, type);
    if (centered) v = norm_term(v, one->mean, v_set(RMS_SHRUNK), 1, shrunk);
    v = v_mul(v, one->scale);
    v16 weight = v_read(one->p->weight, i, end, type);
    v = one->p->bias ? v_fma(v, weight, v_read(one->p->bias, i, end, type)) : v_mul(v, weight);
    v_write_past(one->out, i, end, type, v, one->stream);
}

/* 0: a sum had no end, and only `sum` was written. Never when `shrunk`. `one` by value: nothing that is
 * written can change it, so that it stays in registers. */
VEC int norm_row(norm_one one, int type, int added, int centered, int shrunk)
{
    int64_t n = one.p->n, i = 0;
    if (centered) {
        one.mean = v_set(row_mean(&one, type, added, shrunk));
        if (added) one.x = one.sum;
    }
    float squares = row_squares(&one, type, added && !centered, centered, shrunk);
    if (added) one.x = one.sum;
    if (!shrunk && !rms_fits(squares)) return 0;
    float scale = rms_scale(squares, n, one.p->eps, shrunk);
    one.scale = v_set(shrunk && !centered ? scale * RMS_SHRUNK : scale);
    for (; i + 16 <= n; i += 16)
        finish(&one, i, i + 16, type, centered, shrunk);
    if (i < n) finish(&one, i, n, type, centered, shrunk);
    return 1;
}

/* A row whose sums are too large for float32; or with an infinity or NaN in it, for which it is as good. */
static __attribute__((noinline, unused)) void huge_row(norm_one one, int type, int centered)
{
    norm_row(one, type, 0, centered, 1);
}

#endif
