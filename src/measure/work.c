/* Operations are counted as the definitions in docs/layers.md are written, one for each +, -, *, /, maximum,
 * square root, exp, erf and tanh of float numbers. Signs, comparisons and conversions are free, and so is
 * what an implementation does beyond the definition (the largest of a row of scores in attention,
 * polynomials). */
#include "measure/work.h"

#include "layer/names.h"

double khub__bytes_of(const khub_value *args, int32_t n)
{
    double bytes = 0;
    for (int32_t i = 0; i < n; i++) {
        const khub_tensor *t = khub_value_tensor(&args[i]);
        int64_t own = t ? khub_tensor_bytes(t) : 0;
        if (own > 0) bytes += (double)own;
    }
    return bytes;
}

static double extent(const khub_value *arg, int32_t axis)
{
    const khub_tensor *t = khub_value_tensor(arg);
    return t && axis < t->ndim ? (double)t->shape[axis] : 0;
}

static double elements(const khub_value *arg)
{
    const khub_tensor *t = khub_value_tensor(arg);
    return t ? (double)khub_tensor_count(t) : 0;
}

/* RMSNorm of a row of n: x·x and its sum 2n, /n, +eps, sqrt, 1/ that: 4; times it and the weight 2n.
 * LayerNorm: sum n, /n; x - mean n; its square's sum 2n, /n, +eps, sqrt, 1/: 5 in all; times it and the
 * weight 2n, + bias n. Add…: n more. */
enum { RMS_ELEMENT = 4, RMS_ROW = 4, LAYER_ELEMENT = 6, LAYER_ROW = 5 };

static double norm(const khub_value *x, double per_element, double per_row)
{
    const khub_tensor *t = khub_value_tensor(x);
    double n = t && t->ndim > 0 ? (double)t->shape[t->ndim - 1] : 0;
    return n > 0 ? elements(x) * per_element + elements(x) / n * per_row : 0;
}

static double rms_norm(const khub_value *args, double self)
{
    (void)self;
    return norm(&args[1], RMS_ELEMENT, RMS_ROW);
}

static double add_rms_norm(const khub_value *args, double self)
{
    (void)self;
    return norm(&args[2], 1 + RMS_ELEMENT, RMS_ROW);
}

static double layer_norm(const khub_value *args, double self)
{
    (void)self;
    return norm(&args[1], LAYER_ELEMENT + (khub_value_tensor(&args[3]) != NULL), LAYER_ROW);
}

static double add_layer_norm(const khub_value *args, double self)
{
    (void)self;
    return norm(&args[2], 1 + LAYER_ELEMENT + (khub_value_tensor(&args[5]) != NULL), LAYER_ROW);
}

/* Rows of as many tables as there are added up, and LayerNorm of the sum where a weight follows them. */
static double tables(const khub_value *args, double self)
{
    enum { TYPES = 5, POSITIONS, BIAS = 8 };
    double per_element =
        (khub_value_tensor(&args[TYPES]) != NULL) + (khub_value_tensor(&args[POSITIONS]) != NULL);
    if (self == 0) return elements(&args[0]) * per_element;
    return norm(&args[0], per_element + LAYER_ELEMENT + (khub_value_tensor(&args[BIAS]) != NULL), LAYER_ROW);
}

/* `self` operations for each element of out: an activation's own, and the product of a gated one. */
static double each(const khub_value *args, double self)
{
    return elements(&args[0]) * self;
}

/* x - max, exp, its sum, the quotient, and the maximum: 5 for each element. */
static double softmax(const khub_value *args, double self)
{
    return elements(&args[1]) * self;
}

/* Four products, a difference and a sum for each pair: 3 for each element. */
static double rotary(const khub_value *args, double self)
{
    return (elements(&args[2]) + elements(&args[3])) * self;
}

/* Keys that a query at key `place` sees: those before `length`, when causal those up to its place, and of a
 * window (0: there is none) those nearer than that. */
static double keys_seen(int64_t place, int64_t length, int causal, int64_t window)
{
    int64_t until = causal && place + 1 < length ? place + 1 : length;
    int64_t from = window > 0 && place - window + 1 > 0 ? place - window + 1 : 0;
    if (window > 0 && place + window < until) until = place + window;
    return until > from ? (double)(until - from) : 0;
}

/* For each head and each pair of a query and a key that it sees: q·k 2d, its scale 1, softmax 5 as above, p·v
 * 2d. */
static double attention(const khub_value *args, double self)
{
    const khub_tensor *lengths = khub_value_tensor(&args[4]);
    int64_t b = (int64_t)extent(&args[1], 0), t = (int64_t)extent(&args[1], 1),
            s = (int64_t)extent(&args[2], 1);
    double h = extent(&args[1], 2), d = extent(&args[1], 3), pairs = 0;
    for (int64_t k = 0; k < b; k++) {
        int64_t length = s;
        if (lengths) {
            int64_t stride = lengths->strides ? lengths->strides[0] : 1;
            int32_t own;
            memcpy(&own, (const char *)lengths->data + lengths->byte_offset + 4 * k * stride, sizeof(own));
            length = own < s ? own : s;
        }
        for (int64_t i = 0; i < t; i++)
            pairs += keys_seen(i + s - t, length, args[6].as.i64 != 0,
                               args[7].type == KHUB_TYPE_INT ? args[7].as.i64 : 0);
    }
    return h * pairs * (4 * d + self);
}

/* A product and a sum for each of m·n·k, the bias, and `self` of what is behind it, for each of m·n. */
static double linear(const khub_value *args, double self)
{
    double m_n = elements(&args[0]), k = extent(&args[2], 1);
    return m_n * (2 * k + (khub_value_tensor(&args[3]) != NULL) + self);
}

/* RMSNorm of x, and Linear of the result: the weight and the bias stand behind the norm's. */
static double rms_norm_linear(const khub_value *args, double self)
{
    const khub_value of_linear[] = {args[0], args[1], args[4], args[5]};
    return rms_norm(args, 0) + linear(of_linear, self);
}

/* Operations of one element, from the formulae of docs/layers.md. */
enum {
    ADD = 1,
    GELU = 5,       /* x/√2, erf, 1 +, x/2, · */
    GELU_TANH = 9,  /* x², x³, ·0.044715, x +, ·√(2/π), tanh, 1 +, x/2, · */
    SILU = 3,       /* exp, 1 +, / */
    QUICK_GELU = 4, /* ·1.702, exp, 1 +, / */
    RELU = 1,       /* max */
    SOFTMAX = 5,
    ROTARY = 3
};

/* Bytes of tables but for the rows that are looked up, one for each of out. */
static double not_looked_up(const khub__layer_def *def, const khub_value *args)
{
    enum { IDS = 1, WORDS = 4, TABLES = 3 };
    if (def->args[IDS].kind != KHUB__ARG_INDEX) return 0;
    double bytes = 0, rows = khub__bytes_of(args, 1);
    for (int32_t i = WORDS; i < WORDS + TABLES; i++)
        if (khub_value_tensor(&args[i])) bytes += khub__bytes_of(&args[i], 1) - rows;
    return bytes;
}

static const struct {
    const char *layer;
    double (*flops)(const khub_value *args, double self);
    double self;
} table[] = {
    {"Add", each, ADD},
    {"RMSNorm", rms_norm, 0},
    {"AddRMSNorm", add_rms_norm, 0},
    {"LayerNorm", layer_norm, 0},
    {"AddLayerNorm", add_layer_norm, 0},
    {"GeLU", each, GELU},
    {"GeluTanh", each, GELU_TANH},
    {"SiLU", each, SILU},
    {"QuickGELU", each, QUICK_GELU},
    {"ReLU", each, RELU},
    {"SiluAndMul", each, SILU + 1},
    {"GeluAndMul", each, GELU + 1},
    {"Softmax", softmax, SOFTMAX},
    {"rotary_pos_emb", rotary, ROTARY},
    {"Attention", attention, SOFTMAX + 1}, /* softmax, and the scale */
    {"Linear", linear, 0},
    {"LinearGeLU", linear, GELU},
    {"LinearGeluTanh", linear, GELU_TANH},
    {"LinearSiLU", linear, SILU},
    {"LinearReLU", linear, RELU},
    {"LinearAdd", linear, ADD},
    {"Embedding", tables, 0},
    {"EmbeddingLayerNorm", tables, 1},
    {"RMSNormLinear", rms_norm_linear, 0},
};

_Static_assert(sizeof(table) / sizeof(*table) == KHUB__LAYERS, "every layer has its work");

khub__work khub__work_of(const char *layer, const khub_value *args, int32_t n)
{
    khub__work work = {khub__bytes_of(args, n), 0};
    const khub__layer_def *def = khub__layer_find(layer);
    if (!def || def->arg_count != n) return work;
    work.bytes -= not_looked_up(def, args);
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
        if (!strcmp(table[i].layer, layer)) work.flops = table[i].flops(args, table[i].self);
    return work;
}
