#include "model/bert.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/text.h"
#include "model/cut.h"
#include "model/weights.h"

#include <khub/standard.h>

#include <math.h>
#include <stdarg.h>

/* About how many multiply-adds' time an element takes in layers that aren't made of them: a normalization
 * reads it a few times, an activation or a softmax computes an exponential. */
#define NORM_WORK 16.0
#define EXP_WORK  24.0

/* Tokens of one run, unless one sentence is longer: enough for matrices to be multiplied at full speed, few
 * enough for the layers' values to stay in a cache (some MB). */
enum { TOKENS_PER_RUN = 512, ALIGNMENT = 64 };

/* The Linear layers of one encoder layer. */
enum { QUERY, KEY, VALUE, ATTENTION_DENSE, UP, DOWN, LINEARS };
enum { ATTENTION_NORM, OUTPUT_NORM, NORMS };

struct linear {
    khub_slot *slot;
    khub_tensor weight, bias; /* (out, in), (out) */
};

struct norm {
    khub_slot *slot;
    khub_slot *add, *fused;   /* of what is added before, and the run of both; NULL: nothing is added */
    khub_tensor weight, bias; /* (hidden) */
};

struct layer {
    struct linear linears[LINEARS];
    struct norm norms[NORMS];
    khub_slot *attention, *activation;
    khub_slot *fused; /* the run of UP and the activation; NULL: no layer is both */
};

/* Sentences of equal length that follow one another: what one call of Attention works on. */
struct group {
    int64_t shape[4], strides[4]; /* (sentences, tokens, heads, head size) */
    khub_tensor out, q, k, v;
};

struct khub__bert {
    khub__config config;
    khub__weights weights;
    khub__threads *threads; /* borrowed */
    const khub__stored *words, *positions, *types;
    struct norm embeddings;
    struct layer *layers; /* config.layers of them */

    int64_t capacity;           /* tokens */
    void *memory;               /* all that follows lies in it */
    float *hidden, *other;      /* (tokens, hidden) */
    float *q, *k, *v, *context; /* (tokens, hidden) */
    float
        *wide; /* (tokens, intermediate): the same memory as q, k, v, context, which are done with by then */
    struct group *groups; /* as many as tokens */
    khub__calls calls;
};

/* While a model is opened. */
struct builder {
    khub__bert *bert;
    khub_layers *layers;
    khub_error *err;
};

#define COUNT(array) (sizeof(array) / sizeof(*(array)))

static const khub_dtype float32 = {KHUB_DTYPE_FLOAT, 32, 1};

/* A slot, or with parts a run. */
static int add_run(khub_slot **slot, struct builder *b, const char *layer, const char *path,
                   khub_slot *const *parts, size_t count)
{
    khub_function standard;
    const khub_slot_axis *axes;
    int rc = khub_standard(&standard, layer, b->err);
    if (rc == KHUB_OK)
        rc = parts
                 ? khub_layers_add_run(b->layers, path, layer, standard, float32, parts, count, slot, b->err)
                 : khub_layers_add(b->layers, path, layer, standard, float32, slot, b->err);
    if (rc != KHUB_OK) return rc;
    size_t axis_count = khub_standard_axes(layer, &axes);
    return khub_slot_slice(*slot, axes, axis_count, b->err);
}

static int add_slot(khub_slot **slot, struct builder *b, const char *layer, const char *path)
{
    return add_run(slot, b, layer, path, NULL, 0);
}

/* The tensor PATH.NAME, bound to a slot. */
static int bind(khub_tensor *out, khub_slot *slot, struct builder *b, const char *path, const char *name,
                int32_t ndim, const int64_t *shape)
{
    khub__text full = {0};
    khub__text_addf(&full, "%s.%s", path, name);
    if (full.failed) return khub__fail_memory(b->err, "reading a model's weights");
    int rc = khub__weights_get(out, &b->bert->weights, full.data, ndim, shape, b->err);
    khub__text_free(&full);
    return rc == KHUB_OK ? khub_slot_bind(slot, name, out, b->err) : rc;
}

static int add_linear(struct linear *linear, struct builder *b, const char *path, int64_t out, int64_t in)
{
    const int64_t shape[2] = {out, in};
    int rc = add_slot(&linear->slot, b, "Linear", path);
    if (rc == KHUB_OK) rc = bind(&linear->weight, linear->slot, b, path, "weight", 2, shape);
    if (rc == KHUB_OK) rc = bind(&linear->bias, linear->slot, b, path, "bias", 1, shape);
    return rc;
}

static int add_norm(struct norm *norm, struct builder *b, const char *path)
{
    const int64_t shape[1] = {b->bert->config.hidden};
    int rc = add_slot(&norm->slot, b, "LayerNorm", path);
    if (rc == KHUB_OK) rc = bind(&norm->weight, norm->slot, b, path, "weight", 1, shape);
    if (rc == KHUB_OK) rc = bind(&norm->bias, norm->slot, b, path, "bias", 1, shape);
    return rc;
}

/* Adds the slot PARENT.add, and the run PARENT of it and the norm. */
static int add_residual(struct norm *norm, struct builder *b, const char *parent)
{
    khub__text path = {0};
    khub__text_addf(&path, "%s.add", parent);
    int rc = path.failed ? khub__fail_memory(b->err, "reading a model")
                         : add_slot(&norm->add, b, "Add", path.data);
    khub__text_free(&path);
    khub_slot *const parts[] = {norm->add, norm->slot};
    if (rc == KHUB_OK) rc = add_run(&norm->fused, b, "AddLayerNorm", parent, parts, COUNT(parts));
    if (rc == KHUB_OK) rc = khub_slot_bind(norm->fused, "weight", &norm->weight, b->err);
    if (rc == KHUB_OK) rc = khub_slot_bind(norm->fused, "bias", &norm->bias, b->err);
    return rc;
}

/* Adds the run PARENT of a Linear and the activation behind it, where there is a layer that is both. */
static int fuse_activation(struct layer *layer, struct builder *b, const char *parent)
{
    static const struct {
        const char *activation, *both;
    } table[] = {{"GeLU", "LinearGeLU"},
                 {"GeluTanh", "LinearGeluTanh"},
                 {"SiLU", "LinearSiLU"},
                 {"ReLU", "LinearReLU"}};
    khub_slot *const parts[] = {layer->linears[UP].slot, layer->activation};
    int rc = KHUB_OK;
    for (size_t i = 0; i < COUNT(table); i++)
        if (!strcmp(table[i].activation, b->bert->config.activation))
            rc = add_run(&layer->fused, b, table[i].both, parent, parts, COUNT(parts));
    if (rc == KHUB_OK && layer->fused)
        rc = khub_slot_bind(layer->fused, "weight", &layer->linears[UP].weight, b->err);
    if (rc == KHUB_OK && layer->fused)
        rc = khub_slot_bind(layer->fused, "bias", &layer->linears[UP].bias, b->err);
    return rc;
}

/* The modules of one encoder layer in the order they run in; what fuses some of them, behind the last. */
enum kind { LINEAR, NORM, ATTENTION, ACTIVATION, RESIDUAL, FUSED };
static const struct module {
    enum kind kind;
    int index; /* which linear or norm */
    const char *name;
} modules[] = {
    {LINEAR, QUERY, "attention.self.query"},
    {LINEAR, KEY, "attention.self.key"},
    {LINEAR, VALUE, "attention.self.value"},
    {ATTENTION, 0, "attention.self"},
    {LINEAR, ATTENTION_DENSE, "attention.output.dense"},
    {NORM, ATTENTION_NORM, "attention.output.LayerNorm"},
    {RESIDUAL, ATTENTION_NORM, "attention.output"},
    {LINEAR, UP, "intermediate.dense"},
    {ACTIVATION, 0, "intermediate.intermediate_act_fn"},
    {FUSED, 0, "intermediate"},
    {LINEAR, DOWN, "output.dense"},
    {NORM, OUTPUT_NORM, "output.LayerNorm"},
    {RESIDUAL, OUTPUT_NORM, "output"},
};

static int add_module(struct layer *layer, struct builder *b, const struct module *m, const char *path)
{
    const khub__config *c = &b->bert->config;
    switch (m->kind) {
    case LINEAR:
        return add_linear(&layer->linears[m->index], b, path, m->index == UP ? c->intermediate : c->hidden,
                          m->index == DOWN ? c->intermediate : c->hidden);
    case NORM:
        return add_norm(&layer->norms[m->index], b, path);
    case RESIDUAL:
        return add_residual(&layer->norms[m->index], b, path);
    case FUSED:
        return fuse_activation(layer, b, path);
    case ATTENTION:
        return add_slot(&layer->attention, b, "Attention", path);
    default:
        return add_slot(&layer->activation, b, c->activation, path);
    }
}

static int add_layer(struct builder *b, int64_t number)
{
    for (size_t i = 0; i < COUNT(modules); i++) {
        khub__text path = {0};
        khub__text_addf(&path, "encoder.layer.%d.%s", (int)number, modules[i].name);
        int rc = path.failed ? khub__fail_memory(b->err, "reading a model")
                             : add_module(&b->bert->layers[number], b, &modules[i], path.data);
        khub__text_free(&path);
        if (rc != KHUB_OK) return rc;
    }
    return KHUB_OK;
}

static int add_embeddings(struct builder *b)
{
    khub__bert *bert = b->bert;
    const struct {
        const khub__stored **to;
        const char *name;
        int64_t rows;
    } tables[] = {{&bert->words, "embeddings.word_embeddings.weight", bert->config.vocabulary},
                  {&bert->positions, "embeddings.position_embeddings.weight", bert->config.positions},
                  {&bert->types, "embeddings.token_type_embeddings.weight", bert->config.token_types}};
    for (size_t i = 0; i < COUNT(tables); i++) {
        const int64_t shape[2] = {tables[i].rows, bert->config.hidden};
        int rc = khub__weights_find(tables[i].to, &bert->weights, tables[i].name, 2, shape, b->err);
        if (rc != KHUB_OK) return rc;
    }
    return add_norm(&bert->embeddings, b, "embeddings.LayerNorm");
}

/* Takes the memory of all runs; a system that hands out pages when they are touched gives a short sentence
 * few of them. */
static int take_memory(khub__bert *bert, khub_error *err)
{
    const khub__config *c = &bert->config;
    bert->capacity = c->positions > TOKENS_PER_RUN ? c->positions : TOKENS_PER_RUN;
    size_t tokens = (size_t)bert->capacity, narrow = tokens * (size_t)c->hidden,
           wide = tokens * (size_t)c->intermediate;
    size_t shared = 4 * narrow > wide ? 4 * narrow : wide;
    bert->memory = khub__malloc((2 * narrow + shared) * sizeof(float) + ALIGNMENT);
    bert->groups = khub__calloc(tokens, sizeof(*bert->groups));
    bert->layers = khub__calloc((size_t)c->layers, sizeof(*bert->layers));
    if (!bert->memory || !bert->groups || !bert->layers) return khub__fail_memory(err, "opening a model");
    uintptr_t start = ((uintptr_t)bert->memory + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    bert->hidden = (float *)start;
    bert->other = bert->hidden + narrow;
    bert->q = bert->wide = bert->other + narrow;
    bert->k = bert->q + narrow;
    bert->v = bert->k + narrow;
    bert->context = bert->v + narrow;
    return KHUB_OK;
}

static int read_config(khub__bert *bert, const char *directory, khub_error *err)
{
    char *path = khub__path_join(directory, "config.json");
    if (!path) return khub__fail_memory(err, "opening a model");
    int rc = khub__config_read(&bert->config, path, err);
    khub__free(path);
    return rc;
}

static int build(struct builder *b, const char *directory)
{
    khub__bert *bert = b->bert;
    int rc = read_config(bert, directory, b->err);
    if (rc == KHUB_OK)
        rc = khub__weights_open(&bert->weights, directory, "embeddings.word_embeddings.weight", b->err);
    if (rc == KHUB_OK) rc = take_memory(bert, b->err);
    if (rc == KHUB_OK) rc = add_embeddings(b);
    for (int64_t i = 0; rc == KHUB_OK && i < bert->config.layers; i++)
        rc = add_layer(b, i);
    return rc;
}

int khub__bert_open(khub__bert **out, const char *directory, khub_layers *layers, khub__threads *threads,
                    khub_error *err)
{
    *out = NULL;
    khub__bert *bert = khub__calloc(1, sizeof(*bert));
    if (!bert) return khub__fail_memory(err, "opening a model");
    bert->threads = threads;
    struct builder b = {bert, layers, err};
    int rc = build(&b, directory);
    if (rc == KHUB_OK)
        *out = bert;
    else
        khub__bert_close(bert);
    return rc;
}

void khub__bert_close(khub__bert *bert)
{
    if (!bert) return;
    khub__weights_close(&bert->weights);
    khub__calls_free(&bert->calls);
    khub__free(bert->layers);
    khub__free(bert->groups);
    khub__free(bert->memory);
    khub__free(bert);
}

const khub__config *khub__bert_config(const khub__bert *bert)
{
    return &bert->config;
}

int64_t khub__bert_capacity(const khub__bert *bert)
{
    return bert->capacity;
}

void khub__bert_relax(const khub__bert *bert)
{
    khub__checkpoint_relax(&bert->weights.checkpoint);
}

/* word + type + position of every token, in this order, as Transformers adds them; token type 0. */
static int embed_tokens(khub__bert *bert, const int32_t *ids, const int64_t *lengths, size_t count,
                        khub_error *err)
{
    int64_t n = bert->config.hidden;
    float *row = bert->hidden, *part = bert->other;
    for (size_t s = 0; s < count; s++) {
        for (int64_t i = 0; i < lengths[s]; i++, row += n) {
            int32_t id = *ids++;
            if (id < 0 || id >= bert->config.vocabulary)
                return khub__fail(
                    err, KHUB_E_FORMAT, "%s: the tokenizer gave token %d, the model has %d of them",
                    khub__weights_path(&bert->weights, bert->words), (int)id, (int)bert->config.vocabulary);
            khub__stored_floats(row, bert->words, id * n, n);
            khub__stored_floats(part, bert->types, 0, n);
            for (int64_t k = 0; k < n; k++)
                row[k] += part[k];
            khub__stored_floats(part, bert->positions, i * n, n);
            for (int64_t k = 0; k < n; k++)
                row[k] += part[k];
        }
    }
    return KHUB_OK;
}

/* One run: what its layers share. */
struct run {
    khub__bert *bert;
    int64_t tokens;
    size_t groups;
    khub_error *err;
};

static int run_calls(const struct run *run)
{
    return khub__calls_run(&run->bert->calls, run->bert->threads, run->err);
}

static int add_call(const struct run *run, const khub_slot *slot, const khub_value *args, size_t n,
                    double work)
{
    return khub__calls_add(&run->bert->calls, slot, args, (int32_t)n, work, run->err);
}

static int call(const struct run *run, const khub_slot *slot, const khub_value *args, size_t n, double work)
{
    int rc = add_call(run, slot, args, n, work);
    return rc == KHUB_OK ? run_calls(run) : rc;
}

/* Normalizes x in place, after adding `residual` (NULL: nothing) to it. */
static int call_norm(const struct run *run, const struct norm *norm, khub_tensor *x, khub_tensor *residual)
{
    const khub__config *c = &run->bert->config;
    const khub_value w = khub_arg_tensor(&norm->weight), b = khub_arg_tensor(&norm->bias),
                     eps = khub_arg_float(c->eps), in = khub_arg_tensor(x), other = khub_arg_tensor(residual);
    const khub_value plain[] = {in, in, w, b, eps}, added[] = {in, in, other};
    const khub_value fused[] = {in, khub_arg_none(), in, other, w, b, eps};
    double work = NORM_WORK * (double)run->tokens * (double)c->hidden;
    if (residual && khub_slot_is_served(norm->fused))
        return call(run, norm->fused, fused, COUNT(fused), work);
    int rc = residual ? call(run, norm->add, added, COUNT(added), work) : KHUB_OK;
    return rc == KHUB_OK ? call(run, norm->slot, plain, COUNT(plain), work) : rc;
}

/* `slot` is the linear's own, or a run that begins with it. */
static int add_linear_call(const struct run *run, const khub_slot *slot, const struct linear *linear,
                           khub_tensor *out, khub_tensor *x)
{
    const khub_value args[] = {khub_arg_tensor(out), khub_arg_tensor(x), khub_arg_tensor(&linear->weight),
                               khub_arg_tensor(&linear->bias)};
    double work = (double)run->tokens * (double)linear->weight.shape[0] * (double)linear->weight.shape[1];
    return add_call(run, slot, args, COUNT(args), work);
}

static int call_linear(const struct run *run, const khub_slot *slot, const struct linear *linear,
                       khub_tensor *out, khub_tensor *x)
{
    int rc = add_linear_call(run, slot, linear, out, x);
    return rc == KHUB_OK ? run_calls(run) : rc;
}

/* wide = activation(x weightᵀ + bias) */
static int call_up(const struct run *run, const struct layer *layer, khub_tensor *wide, khub_tensor *x)
{
    const khub_value args[] = {khub_arg_tensor(wide), khub_arg_tensor(wide)};
    const struct linear *up = &layer->linears[UP];
    if (layer->fused && khub_slot_is_served(layer->fused)) return call_linear(run, layer->fused, up, wide, x);
    int rc = call_linear(run, up->slot, up, wide, x);
    double work = EXP_WORK * (double)run->tokens * (double)wide->shape[1];
    return rc == KHUB_OK ? call(run, layer->activation, args, COUNT(args), work) : rc;
}

static int call_attention(const struct run *run, const khub_slot *slot)
{
    khub__bert *bert = run->bert;
    const int64_t head = bert->config.hidden / bert->config.heads; /* whole: config.c sees to it */
    const double d = (double)head;
    for (size_t i = 0; i < run->groups; i++) {
        struct group *g = &bert->groups[i];
        const khub_value args[] = {khub_arg_tensor(&g->out), khub_arg_tensor(&g->q),
                                   khub_arg_tensor(&g->k),   khub_arg_tensor(&g->v),
                                   khub_arg_none(),          khub_arg_float(1 / sqrt(d)),
                                   khub_arg_bool(0)};
        double pairs = (double)g->shape[0] * (double)g->shape[2] * (double)g->shape[1] * (double)g->shape[1];
        int rc = add_call(run, slot, args, COUNT(args), pairs * (2 * d + EXP_WORK));
        if (rc != KHUB_OK) return rc;
    }
    return run_calls(run);
}

/* Finds the runs of equal lengths and lays views over q, k, v and context for them. */
static size_t group_sentences(khub__bert *bert, const int64_t *lengths, size_t count)
{
    int64_t heads = bert->config.heads, n = bert->config.hidden, at = 0;
    size_t groups = 0;
    for (size_t i = 0, next; i < count; i = next) {
        for (next = i; next < count && lengths[next] == lengths[i]; next++)
            ;
        if (lengths[i] == 0) continue;
        struct group *g = &bert->groups[groups++];
        *g = (struct group){.shape = {(int64_t)(next - i), lengths[i], heads, n / heads},
                            .strides = {lengths[i] * n, n, n / heads, 1}};
        g->out = khub_tensor_f32(bert->context + at, 4, g->shape);
        g->q = khub_tensor_f32(bert->q + at, 4, g->shape);
        g->k = khub_tensor_f32(bert->k + at, 4, g->shape);
        g->v = khub_tensor_f32(bert->v + at, 4, g->shape);
        g->out.strides = g->q.strides = g->k.strides = g->v.strides = g->strides;
        at += (int64_t)(next - i) * lengths[i] * n;
    }
    return groups;
}

static int run_attention(const struct run *run, const struct layer *layer, khub_tensor *hidden,
                         khub_tensor *other)
{
    khub__bert *bert = run->bert;
    float *const to[] = {bert->q, bert->k, bert->v, bert->context};
    khub_tensor part[4];
    int rc = KHUB_OK;
    for (int i = 0; i < 4; i++) {
        part[i] = *hidden;
        part[i].data = to[i];
    }
    for (int i = QUERY; rc == KHUB_OK && i <= VALUE; i++)
        rc = add_linear_call(run, layer->linears[i].slot, &layer->linears[i], &part[i], hidden);
    if (rc == KHUB_OK) rc = run_calls(run);
    if (rc == KHUB_OK) rc = call_attention(run, layer->attention);
    const struct linear *dense = &layer->linears[ATTENTION_DENSE];
    if (rc == KHUB_OK) rc = call_linear(run, dense->slot, dense, other, &part[3]);
    if (rc == KHUB_OK) rc = call_norm(run, &layer->norms[ATTENTION_NORM], other, hidden);
    return rc;
}

/* hidden is where the layer's result is, other where it works. */
static int run_layer(const struct run *run, const struct layer *layer)
{
    khub__bert *bert = run->bert;
    const int64_t narrow[2] = {run->tokens, bert->config.hidden},
                  broad[2] = {run->tokens, bert->config.intermediate};
    khub_tensor hidden = khub_tensor_f32(bert->hidden, 2, narrow),
                other = khub_tensor_f32(bert->other, 2, narrow);
    khub_tensor wide = khub_tensor_f32(bert->wide, 2, broad);
    int rc = run_attention(run, layer, &hidden, &other); /* its result is in other */
    if (rc == KHUB_OK) rc = call_up(run, layer, &wide, &other);
    const struct linear *down = &layer->linears[DOWN];
    if (rc == KHUB_OK) rc = call_linear(run, down->slot, down, &hidden, &wide);
    if (rc == KHUB_OK) rc = call_norm(run, &layer->norms[OUTPUT_NORM], &hidden, &other);
    return rc;
}

int khub__bert_run(const float **hidden, khub__bert *bert, const int32_t *ids, const int64_t *lengths,
                   size_t count, khub_error *err)
{
    struct run run = {bert, 0, 0, err};
    for (size_t i = 0; i < count; i++) {
        run.tokens += lengths[i];
        if (lengths[i] > bert->config.positions || run.tokens > bert->capacity)
            return khub__fail(err, KHUB_E_INVAL, "more tokens than the model takes at once");
    }
    *hidden = bert->hidden;
    bert->calls.count = 0; /* what a failed run left */
    int rc = embed_tokens(bert, ids, lengths, count, err);
    if (rc != KHUB_OK || run.tokens == 0) return rc;
    run.groups = group_sentences(bert, lengths, count);
    const int64_t shape[2] = {run.tokens, bert->config.hidden};
    khub_tensor x = khub_tensor_f32(bert->hidden, 2, shape);
    rc = call_norm(&run, &bert->embeddings, &x, NULL);
    for (int64_t i = 0; rc == KHUB_OK && i < bert->config.layers; i++)
        rc = run_layer(&run, &bert->layers[i]);
    return rc;
}
