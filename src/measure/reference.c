#include "measure/reference.h"

#include "measure/element.h"

#include <math.h>

/* x/2 (1 + erf(x / sqrt(2))): 1 + erf(y) is erfc(-y), which keeps its digits where erf is nearly -1. */
static double gelu(double x)
{
    return x / 2 * erfc(-x / sqrt(2));
}

/* (1 + tanh(u)) / 2 is 1 / (1 + exp(-2u)), which keeps its digits where tanh is nearly -1. */
static double gelu_tanh(double x)
{
    return x / (1 + exp(-2 * sqrt(0.63661977236758134308) * (x + 0.044715 * x * x * x))); /* 2 / pi */
}

static double silu(double x)
{
    return x / (1 + exp(-x));
}

static double quick_gelu(double x)
{
    return x / (1 + exp(-1.702 * x));
}

static double relu(double x)
{
    return x > 0 || isnan(x) ? x : 0;
}

static const struct {
    const char *layer;
    double (*apply)(double x);
} activations[] = {
    {"GeLU", gelu},       {"GeluTanh", gelu_tanh},       {"SiLU", silu},       {"QuickGELU", quick_gelu},
    {"ReLU", relu},       {"SiluAndMul", silu},          {"GeluAndMul", gelu}, {"Linear", NULL},
    {"LinearGeLU", gelu}, {"LinearGeluTanh", gelu_tanh}, {"LinearSiLU", silu}, {"LinearReLU", relu},
    {"LinearAdd", NULL}};

static int64_t count_of(const khub__case_arg *arg)
{
    int64_t count = 1;
    for (int32_t i = 0; i < arg->ndim; i++)
        count *= arg->shape[i];
    return count;
}

static void same_scale(const khub__exact *e, int32_t arg, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        e->scale[arg][i] = fabs(e->out[arg][i]);
}

static void activation(const khub__case *c, const khub__exact *e, double (*apply)(double x))
{
    int64_t count = count_of(&c->args[0]);
    for (int64_t i = 0; i < count; i++)
        e->out[0][i] = apply(e->in[1][i]);
    same_scale(e, 0, count);
}

static void gated(const khub__case *c, const khub__exact *e, double (*apply)(double x))
{
    int64_t count = count_of(&c->args[0]), n = c->extents[c->ndim - 1];
    for (int64_t i = 0; i < count; i++) {
        const double *x = e->in[1] + i / n * 2 * n + i % n;
        e->out[0][i] = apply(x[0]) * x[n];
    }
    same_scale(e, 0, count);
}

static void add(const khub__case *c, const khub__exact *e)
{
    int64_t count = count_of(&c->args[0]);
    for (int64_t i = 0; i < count; i++)
        e->out[0][i] = e->in[1][i] + e->in[2][i];
    same_scale(e, 0, count);
}

/* One of the two tensors: `in` (t, heads, d) with cos and sin (t, d/2). */
static void rotate(const khub__case *c, const khub__exact *e, int32_t out, int32_t in)
{
    int64_t heads = c->args[in].shape[1], d = c->args[in].shape[2], half = d / 2,
            count = count_of(&c->args[in]);
    for (int64_t i = 0; i < count; i++) {
        int64_t j = i % d % (half ? half : 1), row = i - i % d, angle = i / d / heads * half + j;
        double x1 = e->in[in][row + j], x2 = e->in[in][row + half + j], cosine = e->in[4][angle],
               sine = e->in[5][angle];
        int second = i % d >= half;
        double a = (second ? x2 : x1) * cosine, b = (second ? x1 : -x2) * sine;
        e->out[out][i] = a + b;
        e->scale[out][i] = fabs(a) + fabs(b);
    }
}

static void rotary(const khub__case *c, const khub__exact *e)
{
    rotate(c, e, 0, 2);
    rotate(c, e, 1, 3);
}

void khub__reference(const khub__case *c, const khub__exact *exact)
{
    static const struct {
        const char *layer;
        void (*of)(const khub__case *c, const khub__exact *exact);
    } others[] = {{"Add", add},
                  {"RMSNorm", khub__reference_norm},
                  {"AddRMSNorm", khub__reference_norm},
                  {"LayerNorm", khub__reference_norm},
                  {"AddLayerNorm", khub__reference_norm},
                  {"Embedding", khub__reference_tables},
                  {"EmbeddingLayerNorm", khub__reference_tables},
                  {"Softmax", khub__reference_softmax},
                  {"Attention", khub__reference_attention},
                  {"RMSNormLinear", khub__reference_norm_linear},
                  {"rotary_pos_emb", rotary}};
    const char *name = c->layer->name;
    for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
        if (!strcmp(others[i].layer, name)) others[i].of(c, exact);
    for (size_t i = 0; i < sizeof(activations) / sizeof(*activations); i++) {
        if (strcmp(activations[i].layer, name) != 0) continue;
        if (!strncmp(name, "Linear", 6))
            khub__reference_linear(c, exact, activations[i].apply);
        else if (strstr(name, "AndMul"))
            gated(c, exact, activations[i].apply);
        else
            activation(c, exact, activations[i].apply);
    }
}
