/* khub/norm: RMSNorm and LayerNorm. */
#include "norm.h"

ISA_PATHS(norm_path, norm);

/* `t`: out, sum, x, residual, weight, bias. */
static int run(const khub__call *call, norm_function *const *functions, const DLTensor *const t[6],
               double eps)
{
    norm_params params = {call->extent['n'], khub__data(t[4]), khub__data(t[5]), (float)eps};
    khub__walk walk;
    for (int more = khub__walk_first(&walk, t, 4, 1); more; more = khub__walk_next(&walk))
        functions[call->type](&walk.rows, &params);
    return 0;
}

#define OUT                                                                                                  \
    {                                                                                                        \
        "out", KHUB__OUT, "*n", .may_be = "x"                                                                \
    }
#define SUM                                                                                                  \
    {                                                                                                        \
        "sum", KHUB__OUT, "*n", .may_be = "residual", .optional = 1                                          \
    }
#define X                                                                                                    \
    {                                                                                                        \
        "x", KHUB__TENSOR, "*n"                                                                              \
    }
#define RESIDUAL                                                                                             \
    {                                                                                                        \
        "residual", KHUB__TENSOR, "*n"                                                                       \
    }
#define WEIGHT                                                                                               \
    {                                                                                                        \
        "weight", KHUB__TENSOR, "n"                                                                          \
    }
#define BIAS                                                                                                 \
    {                                                                                                        \
        "bias", KHUB__TENSOR, "n", .optional = 1                                                             \
    }
#define EPS                                                                                                  \
    {                                                                                                        \
        "eps", KHUB__FLOAT                                                                                   \
    }

static const khub__signature rms_norm_signature = {
    .name = "rms_norm",
    .doc = "out = x / sqrt(mean(x²) + eps) · weight, the mean over the last axis.\n"
           "out may be x.",
    .not_empty = "n",
    .dtypes = KHUB__TAKES_F32 | KHUB__TAKES_BF16,
    .count = 4,
    .params = {OUT, X, WEIGHT, EPS},
};
static int rms_norm_run(const khub__call *c)
{
    const DLTensor *const t[6] = {c->arg[0].tensor, NULL, c->arg[1].tensor, NULL, c->arg[2].tensor, NULL};
    return run(c, norm_paths[c->isa]->rms, t, c->arg[3].f64);
}
KHUB__EXPORT(rms_norm)

static const khub__signature add_rms_norm_signature = {
    .name = "add_rms_norm",
    .doc = "sum = x + residual, rounded to its type; out = sum / sqrt(mean(sum²) + eps) · weight, the mean "
           "over the last axis.\n"
           "out may be x, sum may be residual.",
    .not_empty = "n",
    .dtypes = KHUB__TAKES_F32 | KHUB__TAKES_BF16,
    .count = 6,
    .params = {OUT, SUM, X, RESIDUAL, WEIGHT, EPS},
};
static int add_rms_norm_run(const khub__call *c)
{
    const DLTensor *const t[6] = {c->arg[0].tensor, c->arg[1].tensor, c->arg[2].tensor,
                                  c->arg[3].tensor, c->arg[4].tensor, NULL};
    return run(c, norm_paths[c->isa]->add_rms, t, c->arg[5].f64);
}
KHUB__EXPORT(add_rms_norm)

static const khub__signature layer_norm_signature = {
    .name = "layer_norm",
    .doc = "out = (x - mean) / sqrt(var + eps) · weight + bias, mean and variance over the last axis.\n"
           "out may be x.",
    .not_empty = "n",
    .dtypes = KHUB__TAKES_F32 | KHUB__TAKES_BF16,
    .count = 5,
    .params = {OUT, X, WEIGHT, BIAS, EPS},
};
static int layer_norm_run(const khub__call *c)
{
    const DLTensor *const t[6] = {c->arg[0].tensor, NULL, c->arg[1].tensor, NULL, c->arg[2].tensor,
                                  c->arg[3].tensor};
    return run(c, norm_paths[c->isa]->layer, t, c->arg[4].f64);
}
KHUB__EXPORT(layer_norm)

static const khub__signature add_layer_norm_signature = {
    .name = "add_layer_norm",
    .doc = "sum = x + residual, rounded to its type; out = (sum - mean) / sqrt(var + eps) · weight + bias, "
           "mean and variance\n"
           "of sum over the last axis. out may be x, sum may be residual.",
    .not_empty = "n",
    .dtypes = KHUB__TAKES_F32 | KHUB__TAKES_BF16,
    .count = 7,
    .params = {OUT, SUM, X, RESIDUAL, WEIGHT, BIAS, EPS},
};
static int add_layer_norm_run(const khub__call *c)
{
    const DLTensor *const t[6] = {c->arg[0].tensor, c->arg[1].tensor, c->arg[2].tensor,
                                  c->arg[3].tensor, c->arg[4].tensor, c->arg[5].tensor};
    return run(c, norm_paths[c->isa]->add_layer, t, c->arg[6].f64);
}
KHUB__EXPORT(add_layer_norm)
