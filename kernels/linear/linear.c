/* khub/linear: x weightᵀ + bias, with an activation or a residual behind it, a norm before it, or none of
 * them, on the weight as it is stored or packed once. */
#include "linear.h"

#include "ffi.h"
#include "linear_pack.h"
#include "vec.h"

#include <string.h>

ISA_PATHS(linear_path, linear);

enum { OUT, X, WEIGHT, BIAS };

static int run_plain(const khub__call *c, activation_kind activation)
{
    linear_call call = khub__linear_call(c, activation);
    linear_paths[c->isa]->plain[c->type](&call);
    return 0;
}

/* A packed weight is ⌈n/16⌉ panels, one after the other without gaps. */
static int check_packed(const khub__call *c, int param)
{
    const DLTensor *t = c->arg[param].tensor;
    const char *name = c->signature->params[param].name;
    int64_t panels = linear_panels(c->extent['n']);
    if (c->extent['p'] != panels || c->extent['w'] != LINEAR_PANEL)
        return khub__raise(c, "ValueError",
                           "%s has shape (%lld, %lld, %lld), (%lld, %lld, 16) is expected for %lld outputs",
                           name, (long long)t->shape[0], (long long)t->shape[1], (long long)t->shape[2],
                           (long long)panels, (long long)t->shape[1], (long long)c->extent['n']);
    return khub__check_gaps(c, param);
}

static int run_packed(const khub__call *c, activation_kind activation)
{
    if (check_packed(c, WEIGHT)) return -1;
    linear_call call = khub__linear_call(c, activation);
    linear_paths[c->isa]->packed[c->type](&call);
    return 0;
}

/* The two functions of an activation: NAME on the weight (n, k), PACKED on what linear_pack makes of it. */
#define LINEAR(NAME, PACKED, ACTIVATION, FORMULA)                                                            \
    LINEAR_FUNCTION(NAME, "nk", run_plain, ACTIVATION, FORMULA)                                              \
    LINEAR_FUNCTION(PACKED, "pkw", run_packed, ACTIVATION, FORMULA ", weight as linear_pack makes it")
#define LINEAR_FUNCTION(NAME, WEIGHT_SHAPE, RUN, ACTIVATION, FORMULA)                                        \
    KHUB__EXPORT_LINEAR(NAME, "out = " FORMULA, RUN(c, ACTIVATION), WEIGHT_SHAPE)

LINEAR(linear, linear_packed, ACTIVATION_NONE, "x weightᵀ + bias")
LINEAR(linear_gelu, linear_packed_gelu, ACTIVATION_GELU, "gelu(x weightᵀ + bias)")
LINEAR(linear_gelu_tanh, linear_packed_gelu_tanh, ACTIVATION_GELU_TANH, "gelu_tanh(x weightᵀ + bias)")
LINEAR(linear_silu, linear_packed_silu, ACTIVATION_SILU, "silu(x weightᵀ + bias)")
LINEAR(linear_relu, linear_packed_relu, ACTIVATION_RELU, "relu(x weightᵀ + bias)")

/* A residual behind it, its last argument. */
enum { RESIDUAL = 4 };

static int run_add(const khub__call *c, int packed)
{
    if (packed && check_packed(c, WEIGHT)) return -1;
    const DLTensor *residual = c->arg[RESIDUAL].tensor;
    linear_call call = khub__linear_call(c, ACTIVATION_NONE);
    call.residual = khub__data(residual);
    call.residual_step = khub__step(residual, 0);
    const linear_path *path = linear_paths[c->isa];
    (packed ? path->packed : path->plain)[c->type](&call);
    return 0;
}

#define ADD_FUNCTION(NAME, WEIGHT_SHAPE, IS_PACKED, MORE)                                                    \
    static const khub__signature NAME##_signature = {                                                        \
        .name = #NAME,                                                                                       \
        .doc = "out = x weightᵀ + bias + residual, rounded once" MORE,                                       \
        .not_empty = "",                                                                                     \
        .dtypes = KHUB__TAKES_F32 | KHUB__TAKES_BF16,                                                        \
        .count = 5,                                                                                          \
        .params = {{"out", KHUB__OUT, "mn", .may_be = "residual"},                                           \
                   {"x", KHUB__TENSOR, "mk"},                                                                \
                   {"weight", KHUB__TENSOR, WEIGHT_SHAPE},                                                   \
                   {"bias", KHUB__TENSOR, "n", .optional = 1},                                               \
                   {"residual", KHUB__TENSOR, "mn"}}};                                                       \
    static int NAME##_run(const khub__call *c)                                                               \
    {                                                                                                        \
        return run_add(c, IS_PACKED);                                                                        \
    }                                                                                                        \
    KHUB__EXPORT(NAME)

ADD_FUNCTION(linear_add, "nk", 0, "")
ADD_FUNCTION(linear_packed_add, "pkw", 1, ", weight as linear_pack makes it")

/* RMSNorm before it: the arguments of both, one after the other. */
enum { NORM_WEIGHT = 2, EPS, NORMED_WEIGHT, NORMED_BIAS };

static int run_normed(const khub__call *c, int packed)
{
    if (packed && check_packed(c, NORMED_WEIGHT)) return -1;
    khub__call as_linear = *c;
    as_linear.arg[WEIGHT] = c->arg[NORMED_WEIGHT];
    as_linear.arg[BIAS] = c->arg[NORMED_BIAS];
    linear_call call = khub__linear_call(&as_linear, ACTIVATION_NONE);
    call.norm_weight = khub__data(c->arg[NORM_WEIGHT].tensor);
    call.eps = (float)c->arg[EPS].f64;
    const linear_path *path = linear_paths[c->isa];
    (packed ? path->normed_packed : path->normed_plain)[c->type](&call);
    return 0;
}

#define NORMED_FUNCTION(NAME, WEIGHT_SHAPE, IS_PACKED, MORE)                                                 \
    static const khub__signature NAME##_signature = {                                                        \
        .name = #NAME,                                                                                       \
        .doc = "out = rms_norm(x, norm_weight, eps) weightᵀ + bias, the norm's result rounded to its "     \
               "type" MORE,                                                                                  \
        .not_empty = "k",                                                                                    \
        .dtypes = KHUB__TAKES_F32 | KHUB__TAKES_BF16,                                                        \
        .count = 6,                                                                                          \
        .params = {{"out", KHUB__OUT, "mn"},                                                                 \
                   {"x", KHUB__TENSOR, "mk"},                                                                \
                   {"norm_weight", KHUB__TENSOR, "k"},                                                       \
                   {"eps", KHUB__FLOAT},                                                                     \
                   {"weight", KHUB__TENSOR, WEIGHT_SHAPE},                                                   \
                   {"bias", KHUB__TENSOR, "n", .optional = 1}}};                                             \
    static int NAME##_run(const khub__call *c)                                                               \
    {                                                                                                        \
        return run_normed(c, IS_PACKED);                                                                     \
    }                                                                                                        \
    KHUB__EXPORT(NAME)

NORMED_FUNCTION(rms_norm_linear, "nk", 0, "")
NORMED_FUNCTION(rms_norm_linear_packed, "pkw", 1, ", weight as linear_pack makes it")

static const khub__signature linear_pack_signature = {
    .name = "linear_pack",
    .doc = "Packs weight (n, k) into prepared (ceil(n/16), k, 16): prepared[p, k, j] = weight[16 p + j, k], "
           "0 past "
           "the last.\nWithout memory, prepared gets its shape and dtype and nothing else happens.",
    .not_empty = "",
    .dtypes = KHUB__TAKES_F32 | KHUB__TAKES_BF16,
    .count = 2,
    .params = {{"prepared", KHUB__OUT, "pkw"}, {"weight", KHUB__TENSOR, "nk"}}};

/* Columns k0 … k1 of a panel, `rows` rows of the weight and zeros. Few enough columns to stay in the nearest
 * cache, since they are written row by row. */
static void pack_columns(char *to, const char *from, int64_t step, int64_t rows, int64_t k0, int64_t k1,
                         size_t bytes)
{
    for (int64_t j = 0; j < LINEAR_PANEL; j++) {
        char *at = to + (k0 * LINEAR_PANEL + j) * (int64_t)bytes;
        const char *row = from + j * step;
        for (int64_t k = k0; k < k1; k++, at += LINEAR_PANEL * bytes) {
            if (j >= rows)
                memset(at, 0, bytes);
            else if (bytes == 4)
                memcpy(at, row + 4 * k, 4);
            else
                memcpy(at, row + 2 * k, 2);
        }
    }
}

static int linear_pack_run(const khub__call *c)
{
    const DLTensor *prepared = c->arg[0].tensor, *weight = c->arg[1].tensor;
    int64_t n = c->extent['n'], k = c->extent['k'], step = khub__step(weight, 0);
    size_t bytes = ELEMENT_BYTES(c->type);
    enum { COLUMNS = 64 };
    if (check_packed(c, 0)) return -1;
    for (int64_t p = 0; p < linear_panels(n); p++) {
        char *to = khub__data(prepared) + p * k * LINEAR_PANEL * (int64_t)bytes;
        const char *from = khub__data(weight) + p * LINEAR_PANEL * step;
        for (int64_t k0 = 0; k0 < k; k0 += COLUMNS)
            pack_columns(to, from, step, n - p * LINEAR_PANEL, k0, k0 + COLUMNS < k ? k0 + COLUMNS : k,
                         bytes);
    }
    return 0;
}

static void linear_pack_size(DLTensor *prepared, const khub__call *call)
{
    prepared->ndim = 3;
    prepared->dtype = call->arg[0].tensor->dtype;
    prepared->shape[0] = linear_panels(call->extent['n']);
    prepared->shape[1] = call->extent['k'];
    prepared->shape[2] = LINEAR_PANEL;
}

KHUB__EXPORT_PACK(linear_pack)
