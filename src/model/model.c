/* A sentence embedding model: tokenizer, encoder, pooling. */
#include <khub/model.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/options.h"
#include "model/bert.h"
#include "model/pooling.h"
#include "torch/torch.h"

#include <stdlib.h>

enum { TEXTS_PER_PIECE = 16 /* that one thread tokenizes at a time */ };

struct khub_model {
    khub__sentence sentence;
    khub__threads *threads;
    khub_layers *layers;
    khub__bert *bert;
    khub_tokenizer *tokenizer;
    size_t max_tokens;
    /* One run of the encoder, at most khub__bert_capacity of each. */
    int32_t *ids;
    int64_t *lengths;
    double *sums; /* (width), for pooling */
    int relaxed;  /* the pages that kernels read while they prepared their weights were given back */
};

static int check_sizes(khub_model *model, const char *directory, khub_error *err)
{
    const khub__config *c = khub__bert_config(model->bert);
    const khub__sentence *s = &model->sentence;
    if (s->width && s->width != c->hidden)
        return khub__fail(err, KHUB_E_FORMAT,
                          "%s: the pooling is for vectors of %lld, config.json says \"hidden_size\" %lld",
                          directory, (long long)s->width, (long long)c->hidden);
    model->max_tokens =
        (size_t)(s->max_tokens && s->max_tokens < c->positions ? s->max_tokens : c->positions);
    return KHUB_OK;
}

static int take_memory(khub_model *model, khub_error *err)
{
    size_t capacity = (size_t)khub__bert_capacity(model->bert);
    model->ids = khub__calloc(capacity, sizeof(*model->ids));
    model->lengths = khub__calloc(capacity, sizeof(*model->lengths));
    model->sums = khub__calloc(khub_model_width(model), sizeof(*model->sums));
    return model->ids && model->lengths && model->sums ? KHUB_OK : khub__fail_memory(err, "opening a model");
}

static int open_parts(khub_model *model, const char *directory, const khub_model_options *options,
                      khub_error *err)
{
    int rc = khub__sentence_read(&model->sentence, directory, err);
    if (rc == KHUB_OK) rc = khub__threads_new(&model->threads, options->threads, err);
    if (rc == KHUB_OK) khub__torch_set_threads((int)khub__threads_count(model->threads));
    if (rc == KHUB_OK) rc = khub_layers_new(&model->layers, err);
    if (rc == KHUB_OK)
        rc = khub__bert_open(&model->bert, model->sentence.encoder, model->layers,
                             (khub__whose){options->standard, options->torch}, model->threads, err);
    if (rc == KHUB_OK) rc = khub_tokenizer_open(&model->tokenizer, model->sentence.encoder, err);
    if (rc == KHUB_OK) rc = check_sizes(model, directory, err);
    return rc == KHUB_OK ? take_memory(model, err) : rc;
}

int khub_model_open(khub_model **out, const char *directory, const khub_model_options *options,
                    khub_error *err)
{
    khub_model_options ours;
    int missing = khub__given("khub_model_open", out && directory, err);
    if (out) *out = NULL;
    if (missing != KHUB_OK) return missing;
    int rc = khub__options(&ours, sizeof(ours), options, "khub_model_options", err);
    if (rc != KHUB_OK) return rc;
    khub_model *model = khub__calloc(1, sizeof(*model));
    if (!model) return khub__fail_memory(err, "opening a model");
    rc = open_parts(model, directory, &ours, err);
    if (rc == KHUB_OK)
        *out = model;
    else
        khub_model_close(model);
    return rc;
}

void khub_model_close(khub_model *model)
{
    if (!model) return;
    khub_tokenizer_close(model->tokenizer);
    khub_layers_free(model->layers); /* before the weights that the slots borrow */
    khub__bert_close(model->bert);
    khub__threads_free(model->threads);
    khub__sentence_free(&model->sentence);
    khub__free(model->ids);
    khub__free(model->lengths);
    khub__free(model->sums);
    khub__free(model);
}

khub_layers *khub_model_layers(khub_model *model)
{
    return model->layers;
}

const khub_tokenizer *khub_model_tokenizer(const khub_model *model)
{
    return model->tokenizer;
}

size_t khub_model_width(const khub_model *model)
{
    return (size_t)khub__bert_config(model->bert)->hidden;
}

size_t khub_model_max_tokens(const khub_model *model)
{
    return model->max_tokens;
}

unsigned khub_model_threads(const khub_model *model)
{
    return khub__threads_count(model->threads);
}

/* The texts of one khub_model_embed. */
struct batch {
    khub_model *model;
    const char *const *texts;
    const size_t *lengths; /* NULL: the texts end with NUL */
    size_t count;
    khub_tokens *tokens;       /* of text i */
    const khub_tokens **order; /* shortest first */
};

static int tokenize_piece(void *user, size_t piece, khub_error *err)
{
    const struct batch *b = user;
    size_t from = piece * TEXTS_PER_PIECE,
           to = b->count - from < TEXTS_PER_PIECE ? b->count : from + TEXTS_PER_PIECE;
    for (size_t i = from; i < to; i++) {
        if (!b->texts[i]) return khub__fail(err, KHUB_E_INVAL, "khub_model_embed: text %zu is NULL", i);
        size_t length = b->lengths ? b->lengths[i] : strlen(b->texts[i]);
        int rc = khub_tokenizer_encode(&b->tokens[i], b->model->tokenizer, b->texts[i], length,
                                       b->model->max_tokens, err);
        if (rc != KHUB_OK) return rc;
    }
    return KHUB_OK;
}

/* By length, so that a run has sentences of like lengths; then by index. */
static int by_length(const void *a, const void *b)
{
    const khub_tokens *x = *(const khub_tokens *const *)a, *y = *(const khub_tokens *const *)b;
    if (x->count != y->count) return x->count < y->count ? -1 : 1;
    return (x > y) - (x < y);
}

static void fill_info(khub_embed_info *info, const struct batch *b)
{
    memset(info, 0, sizeof(*info));
    for (size_t i = 0; i < b->count; i++) {
        const khub_tokens *t = &b->tokens[i];
        info->tokens += t->count;
        if (t->truncated && info->truncated++ == 0) info->first_truncated = i;
        if (t->invalid_utf8 && info->invalid_utf8++ == 0) info->first_invalid = i;
    }
}

/* Takes sentences from order[from] on as long as they fit; returns where the next run starts. */
static size_t gather(const struct batch *b, size_t from)
{
    khub_model *model = b->model;
    size_t room = (size_t)khub__bert_capacity(model->bert), used = 0, i = from;
    for (; i < b->count && i - from < room && b->order[i]->count <= room - used; i++) {
        const khub_tokens *t = b->order[i];
        if (t->count) memcpy(model->ids + used, t->ids, t->count * sizeof(*t->ids));
        model->lengths[i - from] = (int64_t)t->count;
        used += t->count;
    }
    return i;
}

static int embed_run(const struct batch *b, size_t from, size_t to, float *out, khub_error *err)
{
    khub_model *model = b->model;
    size_t width = khub_model_width(model);
    const float *hidden;
    int rc = khub__bert_run(&hidden, model->bert, model->ids, model->lengths, to - from, err);
    if (rc != KHUB_OK) return rc;
    for (size_t i = from; i < to; i++) {
        int64_t tokens = model->lengths[i - from];
        float *row = out + (size_t)(b->order[i] - b->tokens) * width;
        khub__pool_tokens(row, model->sums, hidden, tokens, (int64_t)width, &model->sentence);
        hidden += (size_t)tokens * width;
    }
    return KHUB_OK;
}

static int embed_batch(struct batch *b, float *out, khub_embed_info *info, khub_error *err)
{
    size_t pieces = (b->count + TEXTS_PER_PIECE - 1) / TEXTS_PER_PIECE;
    int rc = khub__threads_run(b->model->threads, pieces, tokenize_piece, b, err);
    if (rc != KHUB_OK) return rc;
    if (info) fill_info(info, b);
    for (size_t i = 0; i < b->count; i++)
        b->order[i] = &b->tokens[i];
    qsort(b->order, b->count, sizeof(*b->order), by_length);
    for (size_t i = 0, next; rc == KHUB_OK && i < b->count; i = next) {
        next = gather(b, i);
        rc = next > i ? embed_run(b, i, next, out, err)
                      : khub__fail(err, KHUB_E_INVAL, "a text has more tokens than the model takes");
    }
    return rc;
}

int khub_model_embed(khub_model *model, const char *const *texts, const size_t *lengths, size_t count,
                     float *out, khub_embed_info *info, khub_error *err)
{
    struct batch b = {model, texts, lengths, count, NULL, NULL};
    if (info) memset(info, 0, sizeof(*info));
    if (count == 0) return KHUB_OK;
    int missing = khub__given("khub_model_embed", model && texts && out, err);
    if (missing != KHUB_OK) return missing;
    if (!model->relaxed) khub__bert_relax(model->bert);
    model->relaxed = 1;
    b.tokens = khub__calloc(count, sizeof(*b.tokens));
    b.order = khub__calloc(count, sizeof(*b.order));
    int rc =
        b.tokens && b.order ? embed_batch(&b, out, info, err) : khub__fail_memory(err, "embedding texts");
    for (size_t i = 0; b.tokens && i < count; i++)
        khub_tokens_free(&b.tokens[i]);
    khub__free(b.tokens);
    khub__free(b.order);
    return rc;
}
