/* Opening a BERT encoder: a slot for each module, a run for what one kernel may do together. */
#include "base/error.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/text.h"
#include "model/bert_parts.h"
#include "ops/whose.h"

/* Tokens of one run, unless one sentence is longer: enough for matrices to be multiplied at full speed, few
 * enough for the layers' values to stay in a cache (some MB). */
enum { TOKENS_PER_RUN = 512, ALIGNMENT = 64 };

/* While a model is opened. */
struct builder {
    khub__bert *bert;
    khub_layers *layers;
    khub__whose standard; /* whose functions */
    khub_error *err;
};

static const khub_slot_options of_float32 = {sizeof(of_float32), {KHUB_DTYPE_FLOAT, 32, 1}, NULL, NULL, 0};

/* A slot, or with parts a run. */
static int add_run(khub_slot **slot, struct builder *b, const char *layer, const char *path,
                   khub_slot *const *parts, size_t count)
{
    khub__standard standard;
    int rc = khub__standard_of(&standard, b->standard, layer, b->err);
    if (rc == KHUB_OK)
        rc = parts ? khub_layers_add_run(b->layers, path, layer, standard.function, &of_float32, parts, count,
                                         slot, b->err)
                   : khub_layers_add(b->layers, path, layer, standard.function, &of_float32, slot, b->err);
    return rc == KHUB_OK ? khub_slot_slice(*slot, standard.axes, standard.axis_count, b->err) : rc;
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

/* The words stay in their file, of which a text touches little, also where they aren't floats there. */
static int find_tables(struct embeddings *e, struct builder *b)
{
    static const char words[] = "embeddings.word_embeddings.weight";
    khub__weights *weights = &b->bert->weights;
    const khub__config *c = &b->bert->config;
    const int64_t w[2] = {c->vocabulary, c->hidden}, t[2] = {c->token_types, c->hidden},
                  p[2] = {c->positions, c->hidden};
    int rc = khub__weights_find(&e->stored, weights, words, 2, w, b->err);
    if (rc == KHUB_OK && khub__stored_are_floats(e->stored))
        rc = khub__weights_get(&e->words, weights, words, 2, w, b->err);
    if (rc == KHUB_OK)
        rc = khub__weights_get(&e->types, weights, "embeddings.token_type_embeddings.weight", 2, t, b->err);
    return rc == KHUB_OK ? khub__weights_get(&e->positions, weights, "embeddings.position_embeddings.weight",
                                             2, p, b->err)
                         : rc;
}

static int add_embeddings(struct builder *b)
{
    struct embeddings *e = &b->bert->embeddings;
    int rc = find_tables(e, b);
    if (rc == KHUB_OK) rc = add_slot(&e->sum, b, "Embedding", "embeddings.sum");
    if (rc == KHUB_OK) rc = add_norm(&e->norm, b, "embeddings.LayerNorm");
    khub_slot *const parts[] = {e->sum, e->norm.slot};
    return rc == KHUB_OK ? add_run(&e->fused, b, "EmbeddingLayerNorm", "embeddings", parts, COUNT(parts))
                         : rc;
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
    bert->places = khub__calloc(tokens, 2 * sizeof(*bert->places));
    bert->layers = khub__calloc((size_t)c->layers, sizeof(*bert->layers));
    if (!bert->memory || !bert->groups || !bert->places || !bert->layers)
        return khub__fail_memory(err, "opening a model");
    uintptr_t start = ((uintptr_t)bert->memory + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    bert->numbers = bert->places + tokens;
    for (size_t i = 0; i < tokens; i++)
        bert->numbers[i] = (int32_t)i;
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

int khub__bert_open(khub__bert **out, const char *directory, khub_layers *layers, khub__whose standard,
                    khub__threads *threads, khub_error *err)
{
    *out = NULL;
    khub__bert *bert = khub__calloc(1, sizeof(*bert));
    if (!bert) return khub__fail_memory(err, "opening a model");
    bert->threads = threads;
    struct builder b = {bert, layers, standard, err};
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
    khub__free(bert->places);
    khub__free(bert->memory);
    khub__free(bert);
}
