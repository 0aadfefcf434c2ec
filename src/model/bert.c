/* Running a BERT encoder. */
#include "base/error.h"
#include "model/bert_parts.h"

#include <math.h>

/* About how many multiply-adds' time an element takes in layers that aren't made of them: a normalization
 * reads it a few times, an activation or a softmax computes an exponential. */
#define NORM_WORK 16.0
#define EXP_WORK  24.0

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

static int check_ids(const khub__bert *bert, const int32_t *ids, int64_t count, khub_error *err)
{
    for (int64_t i = 0; i < count; i++)
        if (ids[i] < 0 || ids[i] >= bert->config.vocabulary)
            return khub__fail(err, KHUB_E_FORMAT, "%s: the tokenizer gave token %d, the model has %d of them",
                              khub__weights_path(&bert->weights, bert->embeddings.stored), (int)ids[i],
                              (int)bert->config.vocabulary);
    return KHUB_OK;
}

static void place_tokens(khub__bert *bert, const int64_t *lengths, size_t count)
{
    int32_t *place = bert->places;
    for (size_t s = 0; s < count; s++)
        for (int32_t i = 0; i < lengths[s]; i++)
            *place++ = i;
}

/* Of a table that doesn't lie as floats in its file the rows of the tokens, where the layers work later. */
static khub_tensor rows_of_words(khub__bert *bert, const int32_t *ids, const int64_t shape[2])
{
    for (int64_t i = 0; i < shape[0]; i++)
        khub__stored_floats(bert->other + i * shape[1], bert->embeddings.stored, ids[i] * shape[1], shape[1]);
    return khub_tensor_f32(bert->other, 2, shape);
}

/* LayerNorm(word + type + position) of every token, added in this order, as Transformers does; token type 0.
 */
static int call_embeddings(const struct run *run, const int32_t *ids, khub_tensor *x)
{
    khub__bert *bert = run->bert;
    const struct embeddings *e = &bert->embeddings;
    const khub_dtype int32 = khub_dtype_of(KHUB_DTYPE_INT, 32);
    khub_tensor tokens = khub_tensor_over((void *)(uintptr_t)ids, int32, 1, x->shape), words = e->words,
                places = khub_tensor_over(bert->places, int32, 1, x->shape);
    if (!words.data) {
        words = rows_of_words(bert, ids, x->shape);
        tokens.data = bert->numbers;
    }
    const khub_value out = khub_arg_tensor(x), none = khub_arg_none(), at = khub_arg_tensor(&places);
    const khub_value w = khub_arg_tensor(&words), t = khub_arg_tensor(&e->types),
                     p = khub_arg_tensor(&e->positions);
    const khub_value sum[] = {out, khub_arg_tensor(&tokens), none, at, w, t, p};
    const khub_value fused[] = {out,
                                sum[1],
                                none,
                                at,
                                w,
                                t,
                                p,
                                khub_arg_tensor(&e->norm.weight),
                                khub_arg_tensor(&e->norm.bias),
                                khub_arg_float(bert->config.eps)};
    double work = NORM_WORK * (double)run->tokens * (double)bert->config.hidden;
    if (khub_slot_is_served(e->fused)) return call(run, e->fused, fused, COUNT(fused), 2 * work);
    int rc = call(run, e->sum, sum, COUNT(sum), work);
    return rc == KHUB_OK ? call_norm(run, &e->norm, x, NULL) : rc;
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
                                   khub_arg_bool(0),         khub_arg_none()};
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
    int rc = check_ids(bert, ids, run.tokens, err);
    if (rc != KHUB_OK || run.tokens == 0) return rc;
    place_tokens(bert, lengths, count);
    run.groups = group_sentences(bert, lengths, count);
    const int64_t shape[2] = {run.tokens, bert->config.hidden};
    khub_tensor x = khub_tensor_f32(bert->hidden, 2, shape);
    rc = call_embeddings(&run, ids, &x);
    for (int64_t i = 0; rc == KHUB_OK && i < bert->config.layers; i++)
        rc = run_layer(&run, &bert->layers[i]);
    return rc;
}
