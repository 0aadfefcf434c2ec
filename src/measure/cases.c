#include "measure/cases.h"

#include "base/error.h"
#include "measure/element.h"

#include <stdio.h>
#include <stdlib.h>

/* How a layer's arguments get their shapes from a case's extents. */
typedef enum family { ROWS, SAME, GATED, ROTARY, ATTENTION, LINEAR, NORM_LINEAR, TABLES } family;

/* Of each argument of a layer, in its order: one letter of `shapes`, and the positions of outputs. Letters: x
 * the extents as they are, d the same with the last one doubled, n the last extent; of rotary_pos_emb q (t,
 * h, d), k (t, g, d), a (t, d/2); of Attention Q (b, t, h, d), K (b, s, g, d), b (b); of Linear o and r (m,
 * n), i (m, k), w (n, k), c (n), and g (k) of the norm before it; of tables looked up i (m, n), b (m), t (v,
 * n), g (n); . none. */
typedef struct plan {
    const char *layer;
    family family;
    const char *shapes;
    unsigned outputs, batched; /* bits by position */
} plan;

static const plan plans[] = {
    {"Add", SAME, "xxx", 1, 7},
    {"RMSNorm", ROWS, "xxn.", 1, 3},
    {"AddRMSNorm", ROWS, "xxxxn.", 3, 15},
    {"LayerNorm", ROWS, "xxnn.", 1, 3},
    {"AddLayerNorm", ROWS, "xxxxnn.", 3, 15},
    {"GeLU", SAME, "xx", 1, 3},
    {"GeluTanh", SAME, "xx", 1, 3},
    {"SiLU", SAME, "xx", 1, 3},
    {"QuickGELU", SAME, "xx", 1, 3},
    {"ReLU", SAME, "xx", 1, 3},
    {"SiluAndMul", GATED, "xd", 1, 3},
    {"GeluAndMul", GATED, "xd", 1, 3},
    {"Softmax", ROWS, "xx", 1, 3},
    {"rotary_pos_emb", ROTARY, "qkqkaa", 3, 63},
    {"Attention", ATTENTION, "QQKKb...", 1, 31},
    {"Linear", LINEAR, "oiwc", 1, 3},
    {"LinearGeLU", LINEAR, "oiwc", 1, 3},
    {"LinearGeluTanh", LINEAR, "oiwc", 1, 3},
    {"LinearSiLU", LINEAR, "oiwc", 1, 3},
    {"LinearReLU", LINEAR, "oiwc", 1, 3},
    {"LinearAdd", LINEAR, "oiwcr", 1, 19},
    {"Embedding", TABLES, "ibbbttt", 1, 15},
    {"EmbeddingLayerNorm", TABLES, "ibbbtttgg.", 1, 15},
    {"RMSNormLinear", NORM_LINEAR, "oig.wc", 1, 3},
};

_Static_assert(sizeof(plans) / sizeof(*plans) == KHUB__LAYERS,
               "a plan for every layer, in the order of names.c");

static const plan *plan_of(const khub__layer_def *layer)
{
    return &plans[khub__layer_number(layer)];
}

/* How many extents a family's cases have. */
static const struct {
    int32_t least, most;
    const char *what;
} extents_of[] = {[ROWS] = {1, KHUB_MAX_NDIM, "…xn, n from 1 on"},
                  [SAME] = {0, KHUB_MAX_NDIM, "x's shape"},
                  [GATED] = {1, KHUB_MAX_NDIM, "out's shape"},
                  [ROTARY] = {4, 4, "t, h, g, d, where d is even"},
                  [ATTENTION] = {6, 6, "b, t, s, h, g, d, where h is a multiple of g"},
                  [LINEAR] = {3, 3, "m, n, k"},
                  [NORM_LINEAR] = {3, 3, "m, n, k, k from 1 on"},
                  [TABLES] = {3, 3, "m, v, n, v and n from 1 on"}};

static void set_shape(khub__case_arg *arg, int32_t ndim, const int64_t *shape)
{
    arg->ndim = ndim;
    memcpy(arg->shape, shape, (size_t)ndim * sizeof(*shape));
}

#define SHAPE(...)                                                                                           \
    set_shape(arg, (int32_t)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (int64_t[]){__VA_ARGS__})

static void shape_by_letter(khub__case_arg *arg, char letter, const khub__case *c)
{
    const int64_t *e = c->extents;
    int32_t last = c->ndim ? c->ndim - 1 : 0;
    switch (letter) {
    case 'n':
        SHAPE(e[last]);
        break;
    case 'q':
        SHAPE(e[0], e[1], e[3]);
        break;
    case 'k':
        SHAPE(e[0], e[2], e[3]);
        break;
    case 'a':
        SHAPE(e[0], e[3] / 2);
        break;
    case 'Q':
        SHAPE(e[0], e[1], e[3], e[5]);
        break;
    case 'K':
        SHAPE(e[0], e[2], e[4], e[5]);
        break;
    case 'b':
        SHAPE(e[0]);
        break;
    case 'o':
    case 'r':
        SHAPE(e[0], e[1]);
        break;
    case 'i':
        SHAPE(e[0], e[2]);
        break;
    case 'w':
    case 't':
        SHAPE(e[1], e[2]);
        break;
    case 'c':
        SHAPE(e[1]);
        break;
    case 'g':
        SHAPE(e[2]);
        break;
    default:
        set_shape(arg, c->ndim, e);
        if (letter == 'd') arg->shape[last] *= 2;
    }
}

#define MOST_ELEMENTS 0x1p31 /* of a tensor */

static int fits(const khub__case *c, family f)
{
    const int64_t *e = c->extents;
    int fit = c->ndim >= extents_of[f].least && c->ndim <= extents_of[f].most;
    for (int32_t i = 0; i < c->ndim; i++)
        fit = fit && e[i] >= 0 && (double)e[i] <= MOST_ELEMENTS;
    if (!fit) return 0;
    if (f == ROWS || f == NORM_LINEAR) return e[c->ndim - 1] > 0;
    if (f == TABLES) return e[1] > 0 && e[2] > 0;
    if (f == ROTARY) return e[3] % 2 == 0;
    if (f == ATTENTION) return e[4] ? e[3] % e[4] == 0 : e[3] == 0;
    return 1;
}

/* eps as models have it; scale as attention is usually called. */
static double number_of(const khub__case *c, int32_t at)
{
    if (c->layer->args[at].kind == KHUB__ARG_BOOL) return c->with >> at & 1;
    if (c->layer->args[at].kind == KHUB__ARG_MAYBE_COUNT)
        return (double)(c->window ? c->window : (c->extents[2] + 2) / 3);
    if (plan_of(c->layer)->family != ATTENTION) return 1e-5;
    return c->extents[5] == 64 ? 0.125 : 0.25;
}

static double elements(const khub__case_arg *arg)
{
    double count = 1;
    for (int32_t i = 0; i < arg->ndim; i++)
        count *= (double)arg->shape[i];
    return count;
}

int khub__case_complete(khub__case *out, khub_error *err)
{
    const plan *p = plan_of(out->layer);
    char name[KHUB__CASE_NAME];
    memset(out->args, 0, sizeof(out->args));
    if (!fits(out, p->family))
        return khub__fail(err, KHUB_E_INVAL, "%s has no case %s: its extents are %s", out->layer->name,
                          khub__case_name(name, out), extents_of[p->family].what);
    for (int32_t i = 0; i < out->layer->arg_count; i++) {
        khub__case_arg *arg = &out->args[i];
        arg->kind = out->layer->args[i].kind;
        arg->is_output = p->outputs >> i & 1;
        arg->is_none = khub__arg_is_optional(arg->kind) && !(out->with >> i & 1);
        arg->dtype = out->dtype;
        if (khub__arg_is_index(arg->kind) || arg->kind == KHUB__ARG_MAYBE_LENGTHS)
            arg->dtype = khub_dtype_of(KHUB_DTYPE_INT, arg->kind == KHUB__ARG_INDEX ? 64 : 32);
        if (p->shapes[i] == '.')
            arg->number = number_of(out, i);
        else
            shape_by_letter(arg, p->shapes[i], out);
        if (elements(arg) > MOST_ELEMENTS)
            return khub__fail(err, KHUB_E_INVAL, "%s has no case %s: %s would have more than 2^31 elements",
                              out->layer->name, khub__case_name(name, out), out->layer->args[i].name);
    }
    return KHUB_OK;
}

/* Shapes: an extent of 0 and 1, odd ones, multiples of every vector width and one beside, sizes of models,
 * more rows than a function may take at a time.
 * The first few are those that the classes of values other than normal are tried with. */
typedef struct shape {
    int32_t ndim;
    int64_t extents[KHUB_MAX_NDIM];
    unsigned with; /* all bits: everything optional */
} shape;

enum { OPTIONAL = 0x3ff, WINDOW = 1u << 7, CAUSAL = 1u << 6, LENGTHS = 1u << 4 };

static const shape row_shapes[] = {
    {2, {4, 33}, OPTIONAL},
    {2, {9, 384}, 0},
    {1, {7}, OPTIONAL},
    {1, {1}, 0},
    {1, {16}, 0},
    {2, {3, 1}, OPTIONAL},
    {2, {2, 2}, 0},
    {2, {5, 15}, OPTIONAL},
    {2, {4, 16}, 0},
    {2, {3, 17}, OPTIONAL},
    {2, {2, 31}, 0},
    {2, {2, 32}, OPTIONAL},
    {2, {7, 63}, 0},
    {2, {3, 64}, OPTIONAL},
    {2, {3, 65}, 0},
    {2, {4, 127}, OPTIONAL},
    {3, {2, 3, 5}, 0},
    {3, {2, 3, 48}, OPTIONAL},
    {4, {2, 1, 3, 20}, 0},
    {2, {16, 384}, OPTIONAL},
    {2, {2, 768}, OPTIONAL},
    {2, {1, 1000}, 0},
    {2, {2, 4096}, OPTIONAL},
    {2, {130, 3}, 0},
    {2, {0, 16}, OPTIONAL},
};
static const shape rotary_shapes[] = {
    {4, {5, 3, 1, 34}, 0}, {4, {9, 4, 2, 64}, 0},   {4, {1, 1, 1, 2}, 0},   {4, {2, 1, 1, 30}, 0},
    {4, {3, 2, 2, 16}, 0}, {4, {7, 12, 12, 64}, 0}, {4, {8, 8, 2, 128}, 0}, {4, {130, 2, 1, 16}, 0},
    {4, {3, 2, 1, 0}, 0},  {4, {0, 2, 2, 8}, 0},    {4, {2, 0, 1, 8}, 0},
};
static const shape attention_shapes[] = {
    {6, {3, 5, 7, 4, 2, 12}, LENGTHS | CAUSAL},
    {6, {8, 9, 9, 2, 2, 32}, LENGTHS},
    {6, {1, 1, 1, 1, 1, 1}, 0},
    {6, {1, 1, 17, 2, 1, 16}, CAUSAL},
    {6, {2, 16, 16, 2, 2, 15}, CAUSAL},
    {6, {2, 7, 3, 2, 1, 17}, CAUSAL},
    {6, {2, 31, 33, 3, 1, 8}, 0},
    {6, {2, 24, 24, 12, 12, 32}, LENGTHS},
    {6, {1, 64, 64, 8, 2, 64}, CAUSAL},
    {6, {1, 65, 130, 2, 2, 64}, LENGTHS},
    {6, {2, 20, 200, 4, 2, 16}, CAUSAL | WINDOW},
    {6, {3, 90, 90, 1, 1, 24}, LENGTHS | WINDOW},
    {6, {130, 2, 3, 2, 1, 8}, LENGTHS},
    {6, {2, 3, 0, 2, 1, 8}, 0},
    {6, {2, 0, 3, 2, 1, 8}, 0},
    {6, {0, 3, 3, 2, 1, 8}, LENGTHS},
    {6, {1, 3, 3, 2, 2, 0}, 0},
};
static const shape linear_shapes[] = {
    {3, {3, 17, 33}, OPTIONAL}, {3, {9, 48, 64}, 0},
    {3, {1, 1, 1}, OPTIONAL},   {3, {2, 3, 5}, 0},
    {3, {5, 16, 16}, OPTIONAL}, {3, {7, 31, 15}, 0},
    {3, {3, 64, 17}, OPTIONAL}, {3, {4, 65, 128}, OPTIONAL},
    {3, {8, 100, 48}, 0},       {3, {1, 384, 384}, OPTIONAL},
    {3, {16, 384, 384}, 0},     {3, {9, 384, 1536}, OPTIONAL},
    {3, {0, 16, 16}, OPTIONAL}, {3, {3, 0, 5}, 0},
    {3, {13, 200, 31}, 0},      {3, {130, 24, 40}, OPTIONAL},
    {3, {4, 5, 0}, OPTIONAL}, /* the last one is no case of a norm */
};
static const shape table_shapes[] = {
    {3, {4, 7, 33}, OPTIONAL},  {3, {9, 300, 384}, 0},      {3, {1, 1, 1}, OPTIONAL},
    {3, {5, 3, 15}, 0},         {3, {3, 64, 16}, OPTIONAL}, {3, {8, 2, 17}, 0},
    {3, {7, 100, 64}, 0},       {3, {3, 5, 65}, OPTIONAL},  {3, {16, 50, 384}, OPTIONAL},
    {3, {2, 9, 768}, OPTIONAL}, {3, {130, 9, 24}, 0},       {3, {0, 4, 16}, OPTIONAL},
};
/* Activations have extents that norms can't have, too. */
static const shape more_same_shapes[] = {{0, {0}, 0}, {2, {3, 0}, 0}, {1, {0}, 0}};
static const shape bits_of_16 = {2, {256, 256}, 0}, bits_of_32 = {2, {1024, 1024}, 0};

enum { HARD_SHAPES = 2 }; /* that every class of values is tried with */

#define COUNT(list) (sizeof(list) / sizeof(*(list)))

/* The tables of a family; the second may be empty. */
typedef struct tables {
    const shape *first, *more;
    size_t first_count, more_count;
} tables;

static tables tables_of(family f)
{
    static const tables all[] = {
        [ROWS] = {row_shapes, NULL, COUNT(row_shapes), 0},
        [SAME] = {row_shapes, more_same_shapes, COUNT(row_shapes), COUNT(more_same_shapes)},
        [GATED] = {row_shapes, more_same_shapes + 1, COUNT(row_shapes), COUNT(more_same_shapes) - 1},
        [ROTARY] = {rotary_shapes, NULL, COUNT(rotary_shapes), 0},
        [ATTENTION] = {attention_shapes, NULL, COUNT(attention_shapes), 0},
        [LINEAR] = {linear_shapes, NULL, COUNT(linear_shapes), 0},
        [NORM_LINEAR] = {linear_shapes, NULL, COUNT(linear_shapes) - 1, 0},
        [TABLES] = {table_shapes, NULL, COUNT(table_shapes), 0},
    };
    return all[f];
}

/* Only where a result depends on one number (or, with a gate, on two) does a pass over all of them make
 * sense. */
static size_t bits_parts(family f, khub_dtype dtype)
{
    if (f != SAME && f != GATED) return 0;
    return dtype.bits == 16 ? 1 : KHUB__BITS_PARTS;
}

/* The classes that come after normal, but for bits. */
enum { HARD_CLASSES = KHUB__BITS - KHUB__TINY };

size_t khub__case_count(const khub__layer_def *layer, khub_dtype dtype)
{
    family f = plan_of(layer)->family;
    tables t = tables_of(f);
    return t.first_count + t.more_count + (size_t)HARD_SHAPES * HARD_CLASSES + bits_parts(f, dtype);
}

/* Of `with` what the layer has. */
static unsigned possible(const khub__layer_def *layer, unsigned with)
{
    unsigned mask = 0;
    for (int32_t i = 0; i < layer->arg_count; i++)
        if (khub__arg_is_optional(layer->args[i].kind) || layer->args[i].kind == KHUB__ARG_BOOL)
            mask |= 1u << i;
    return with & mask;
}

void khub__case_at(khub__case *out, const khub__layer_def *layer, khub_dtype dtype, size_t i, uint64_t seed)
{
    tables t = tables_of(plan_of(layer)->family);
    const shape *s = NULL;
    memset(out, 0, sizeof(*out));
    out->layer = layer;
    out->dtype = dtype;
    out->seed = seed;
    if (i < t.first_count) {
        s = &t.first[i];
    } else if ((i -= t.first_count) < t.more_count) {
        s = &t.more[i];
    } else if ((i -= t.more_count) < (size_t)HARD_SHAPES * HARD_CLASSES) {
        s = &t.first[i % HARD_SHAPES];
        out->values = (khub__values)(KHUB__TINY + i / HARD_SHAPES);
    } else {
        s = dtype.bits == 16 ? &bits_of_16 : &bits_of_32;
        out->values = KHUB__BITS;
        out->part = (int)(i - (size_t)HARD_SHAPES * HARD_CLASSES);
    }
    out->ndim = s->ndim;
    memcpy(out->extents, s->extents, sizeof(out->extents));
    out->with = possible(layer, s->with);
    khub__case_complete(out, NULL);
}

static const char *const value_names[KHUB__VALUES] = {"normal",     "tiny", "huge", "subnormal", "zeros",
                                                      "infinities", "nan",  "ties", "mixed",     "bits"};

const char *khub__case_name(char name[KHUB__CASE_NAME], const khub__case *c)
{
    char dtype[32];
    size_t size = KHUB__CASE_NAME, at;
    at = (size_t)snprintf(name, size, "%s/%s", khub_dtype_name(c->dtype, dtype), value_names[c->values]);
    if (c->values == KHUB__BITS && at < size) at += (size_t)snprintf(name + at, size - at, "%d", c->part);
    if (at < size) at += (size_t)snprintf(name + at, size - at, "/%s", c->ndim ? "" : "scalar");
    for (int32_t i = 0; i < c->ndim && at < size; i++)
        at += (size_t)snprintf(name + at, size - at, i ? "x%lld" : "%lld", (long long)c->extents[i]);
    const char *before = "/";
    for (int32_t i = 0; i < c->layer->arg_count && at < size; i++) {
        if (!(c->with >> i & 1)) continue;
        at += (size_t)snprintf(name + at, size - at, "%s%s", before, c->layer->args[i].name);
        before = ",";
    }
    return name;
}

/* The next part of a name, up to one of `ends`; moves *at behind the end. */
static size_t take_part(char part[64], const char **at, const char *ends)
{
    size_t n = strcspn(*at, ends), kept = n < 63 ? n : 63;
    memcpy(part, *at, kept);
    part[kept] = 0;
    *at += n + ((*at)[n] != 0);
    return n;
}

static int parse_values(khub__case *out, const char *part)
{
    for (int i = 0; i < KHUB__VALUES; i++) {
        size_t n = strlen(value_names[i]);
        if (strncmp(part, value_names[i], n) != 0) continue;
        out->values = (khub__values)i;
        if (i != KHUB__BITS) return !part[n];
        out->part = part[n] - '0';
        return part[n] >= '0' && out->part < KHUB__BITS_PARTS && !part[n + 1];
    }
    return 0;
}

static int parse_extents(khub__case *out, const char *part)
{
    if (!strcmp(part, "scalar")) return 1;
    for (char *end; *part; part = *end ? end + 1 : end) {
        if (out->ndim == KHUB_MAX_NDIM || *part < '0' || *part > '9') return 0;
        out->extents[out->ndim++] = strtoll(part, &end, 10);
        if (*end && (*end != 'x' || !end[1])) return 0;
    }
    return out->ndim > 0;
}

static int parse_with(khub__case *out, const char *at)
{
    char part[64];
    while (*at) {
        take_part(part, &at, ",");
        int32_t arg = khub__layer_position(out->layer, part);
        if (arg < 0 || !possible(out->layer, 1u << arg)) return 0;
        out->with |= 1u << arg;
    }
    return 1;
}

int khub__case_parse(khub__case *out, const khub__layer_def *layer, const char *name, uint64_t seed,
                     khub_error *err)
{
    const char *at = name, *wrong = NULL;
    char part[64];
    memset(out, 0, sizeof(*out));
    out->layer = layer;
    out->seed = seed;
    take_part(part, &at, "/");
    int rc = khub_dtype_parse(&out->dtype, part, err);
    if (rc != KHUB_OK) return rc;
    if (out->dtype.code != KHUB_DTYPE_FLOAT && out->dtype.code != KHUB_DTYPE_BFLOAT)
        wrong = "its dtype isn't one of floats";
    take_part(part, &at, "/");
    if (!wrong && !parse_values(out, part)) wrong = "there is no such class of values";
    take_part(part, &at, "/");
    if (!wrong && !parse_extents(out, part)) wrong = "extents are numbers with x between them";
    if (!wrong && !parse_with(out, at)) wrong = "what it adds isn't optional in this layer";
    if (wrong)
        return khub__fail(err, KHUB_E_INVAL, "case \"%s\": %s (as in float32/normal/%s)", name, wrong,
                          strchr(plan_of(layer)->shapes, 'w') ? "3x17x33/bias" : "4x33");
    return khub__case_complete(out, err);
}

size_t khub__case_bytes(const khub__case *c, int32_t arg)
{
    const khub__case_arg *a = &c->args[arg];
    size_t bytes = a->dtype.bits / 8;
    if (a->is_none || plan_of(c->layer)->shapes[arg] == '.') return 0;
    for (int32_t i = 0; i < a->ndim; i++)
        bytes *= (size_t)a->shape[i];
    return bytes;
}

int32_t khub__case_in_place(const khub__case *c, int32_t arg)
{
    family f = plan_of(c->layer)->family;
    if (!c->args[arg].is_output || c->args[arg].is_none) return -1;
    if (f == ROTARY) return arg + 2; /* q_out, k_out, q, k */
    if (f == LINEAR) return khub__layer_position(c->layer, "residual");
    if (f != ROWS && f != SAME) return -1;
    return khub__layer_position(c->layer, strcmp(c->layer->args[arg].name, "sum") != 0 ? "x" : "residual");
}

int khub__case_is_batched(const khub__case *c, int32_t arg)
{
    const plan *p = plan_of(c->layer);
    int32_t least = p->family == ROWS || p->family == GATED ? 2 : 1;
    return c->ndim >= least && !c->args[arg].is_none && (p->batched >> arg & 1);
}

/* splitmix64 of a counter: every element for itself, so that order and threads don't matter. */
static uint64_t random_bits(uint64_t seed, int32_t arg, uint64_t i)
{
    uint64_t z = (seed * 64 + (uint64_t)arg + 1) * UINT64_C(0xd1342543de82ef95) +
                 (i + 1) * UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

/* Four uniform numbers added up and brought to deviation 1: nearly normal, and the same on every machine. */
static double normal(uint64_t r)
{
    int64_t sum = (int64_t)((r & 0xffff) + (r >> 16 & 0xffff) + (r >> 32 & 0xffff) + (r >> 48));
    return (double)(sum - 2 * 65536) * (1.7320508075688772 / 65536); /* sqrt(3) */
}

/* What one argument of a case is filled by. */
typedef struct filling {
    const khub__case *c;
    const khub__case_arg *arg;
    int32_t at;
    khub__format format;
    int64_t width, count;  /* the last extent, all elements */
    double factor, offset; /* of what is normal */
    khub__values values;
} filling;

static double with_sign(double size, uint64_t r)
{
    return r >> 63 ? -size : size;
}

/* A number within `binades` from 2^exponent on. */
static double around(int exponent, int binades, uint64_t r)
{
    double mantissa = 1 + (double)(r & 0x3f) / 64;
    return with_sign(mantissa * khub__power_of_two(exponent + (int)((r >> 8) % (unsigned)binades)), r);
}

/* A grid on which sums of two, and of products, need one bit more than the dtype has: numbers of [1, 2) for
 * the first of two that are added, half a step for the second; where products are added, too, halves. */
static double tie(const filling *f, uint64_t r)
{
    int half = -f->format.mantissa - 1;
    int32_t residual = khub__layer_position(f->c->layer, "residual");
    if (residual < 0 || plan_of(f->c->layer)->family == LINEAR) return (double)((int)(r >> 8 & 15) - 8) / 2;
    if (f->at == residual) return with_sign(khub__power_of_two(half) * (double)(1 + 2 * (int)(r & 1)), r);
    return 1 + (double)(r >> 8 & ((UINT64_C(1) << f->format.mantissa) - 1)) *
                   khub__power_of_two(-f->format.mantissa);
}

static uint64_t mixed(const filling *f, uint64_t r)
{
    uint64_t sign = khub__sign_bit(f->format), magnitude = (r >> 1) % (f->format.largest + 1);
    return magnitude | (r & 1 ? sign : 0);
}

/* One pattern of those that element i of the pass stands for. */
static uint64_t stratum(const filling *f, int64_t i, uint64_t r)
{
    int bits = 8 * f->format.bytes;
    if (bits == 16) return (uint64_t)i & 0xffff;
    double all = bits == 32 ? 0x1p32 : 0x1p64;
    uint64_t width = (uint64_t)(all / (double)f->count / KHUB__BITS_PARTS);
    return ((uint64_t)i * KHUB__BITS_PARTS + (uint64_t)f->c->part) * width + (width ? r % width : 0);
}

static uint64_t element(const filling *f, int64_t i)
{
    uint64_t r = random_bits(f->c->seed, f->at, (uint64_t)i), s = random_bits(r, f->at, 1);
    khub__format format = f->format;
    int special = (r & 15) == 0 && (i / (f->width ? f->width : 1)) % 2 == 1;
    switch (f->values) {
    case KHUB__TINY:
        return khub__element_bits(format, around(1 - format.bias, 8, r));
    case KHUB__HUGE:
        return khub__element_bits(format, around(format.bias - 7, 8, r));
    case KHUB__SUBNORMAL:
        return (r >> 1 & ((UINT64_C(1) << format.mantissa) - 1)) | (r >> 63 ? khub__sign_bit(format) : 0);
    case KHUB__ZEROS:
        if (r & 1) return r & 2 ? khub__sign_bit(format) : 0;
        break;
    case KHUB__INFINITIES:
        if (special) return format.infinity | (r & 16 ? khub__sign_bit(format) : 0);
        break;
    case KHUB__NAN:
        if (special) return khub__element_bits(format, khub__double_of(UINT64_C(0x7ff8000000000000)));
        break;
    case KHUB__TIES:
        return khub__element_bits(format, tie(f, r));
    case KHUB__MIXED:
        return mixed(f, r);
    case KHUB__BITS:
        if (f->c->args[f->at].ndim < 1 || f->count < 1) break;
        return stratum(f, i, r);
    default:
        break;
    }
    return khub__element_bits(format, f->offset + f->factor * normal(s));
}

/* Lengths: all, some, one more than there are, none. */
static void fill_lengths(const khub__case *c, int32_t *to, int64_t count)
{
    int64_t s = c->extents[2];
    const int64_t table[] = {s, s / 2, s + 1, 0, 1};
    for (int64_t i = 0; i < count; i++)
        to[i] = (int32_t)table[(uint64_t)(i + (int64_t)c->seed) % COUNT(table)];
}

/* The first row, the last one, any. */
static void fill_indices(const khub__case *c, int32_t arg, void *to, int64_t count)
{
    uint64_t rows = (uint64_t)c->extents[1];
    for (int64_t i = 0; i < count; i++) {
        uint64_t index = i == 0 ? 0 : i == 1 ? rows - 1 : random_bits(c->seed, arg, (uint64_t)i) % rows;
        size_t bytes = c->args[arg].dtype.bits / 8;
        memcpy((char *)to + (size_t)i * bytes, &index, bytes); /* little-endian */
    }
}

static void plan_filling(filling *f)
{
    const plan *p = plan_of(f->c->layer);
    char letter = p->shapes[f->at];
    f->values = strchr("xdqkQKirt", letter)  ? f->c->values
                : f->c->values == KHUB__TIES ? KHUB__TIES
                                             : KHUB__NORMAL;
    f->factor = 1;
    if (letter == 'n' || letter == 'g') f->factor = 0.25;
    if (f->factor < 1 && strcmp(f->c->layer->args[f->at].name, "bias") != 0) f->offset = 1;
    if (letter == 'a') f->factor = 0.25; /* within [-1, 1], as cos and sin are */
    if (letter == 'w') {                 /* so that outputs have about deviation 1, whatever k */
        double k = (double)f->c->extents[2];
        while (k > 1)
            k /= 4, f->factor /= 2;
    }
}

void khub__case_fill(const khub__case *c, int32_t arg, void *to)
{
    filling f = {.c = c, .arg = &c->args[arg], .at = arg};
    size_t bytes = khub__case_bytes(c, arg);
    if (!bytes) return;
    f.count = (int64_t)(bytes / (f.arg->dtype.bits / 8));
    f.width = f.arg->ndim ? f.arg->shape[f.arg->ndim - 1] : 1;
    if (f.arg->kind == KHUB__ARG_MAYBE_LENGTHS) {
        fill_lengths(c, to, f.count);
        return;
    }
    if (khub__arg_is_index(f.arg->kind)) {
        fill_indices(c, arg, to, f.count);
        return;
    }
    f.format = khub__format_of(f.arg->dtype);
    plan_filling(&f);
    for (int64_t i = 0; i < f.count; i++) {
        uint64_t bits = element(&f, i);
        memcpy((char *)to + i * f.format.bytes, &bits, (size_t)f.format.bytes); /* little-endian */
    }
}
