#include "measure/shapes.h"

#include "base/error.h"
#include "base/text.h"

#include <khub/bench.h>

#include <stdio.h>
#include <stdlib.h>

enum { MOST_SHAPES = 9, MOST_EXTENTS = 6 };

/* A row of the table below; `names` a letter for each extent of a khub__case of the layer, in that order.
 * Where the shapes come from: 252 rows and widths of 384 and 1,536 are a batch of all-MiniLM-L6-v2 (21
 * sentences of 12 tokens), the rest are a decoder of 32 heads of 128, 8 of them keys', at its next token and
 * at a prompt of 512; the last one of layers that compute little is larger than caches are. */
#define NORM_SHAPES                                                                                          \
    {                                                                                                        \
        "m=252,n=384", "m=1,n=4096", "m=512,n=4096", "m=2048,n=4096"                                         \
    }
#define WIDE_SHAPES                                                                                          \
    {                                                                                                        \
        "m=252,n=1536", "m=1,n=11008", "m=512,n=11008"                                                       \
    }
#define ROW_SHAPES                                                                                           \
    {                                                                                                        \
        "m=3024,n=252", "m=384,n=12", "m=1,n=32000", "m=4096,n=2048"                                         \
    }
#define LINEAR_SHAPES                                                                                        \
    {                                                                                                        \
        "m=252,n=384,k=384", "m=252,n=1536,k=384", "m=252,n=384,k=1536", "m=12,n=384,k=384",                 \
            "m=12,n=1536,k=384", "m=12,n=384,k=1536", "m=1,n=384,k=384", "m=1,n=4096,k=4096"                 \
    }

#define TABLE_SHAPES                                                                                         \
    {                                                                                                        \
        "m=252,v=30522,n=384", "m=12,v=30522,n=384", "m=512,v=30522,n=768"                                   \
    }

static const struct row {
    const char *layer, *names;
    const char *shapes[MOST_SHAPES]; /* NULL-terminated */
} table[] = {
    {"Add", "mn", NORM_SHAPES},
    {"RMSNorm", "mn", NORM_SHAPES},
    {"AddRMSNorm", "mn", NORM_SHAPES},
    {"LayerNorm", "mn", NORM_SHAPES},
    {"AddLayerNorm", "mn", NORM_SHAPES},
    {"GeLU", "mn", WIDE_SHAPES},
    {"GeluTanh", "mn", WIDE_SHAPES},
    {"SiLU", "mn", WIDE_SHAPES},
    {"QuickGELU", "mn", WIDE_SHAPES},
    {"ReLU", "mn", WIDE_SHAPES},
    {"SiluAndMul", "mn", WIDE_SHAPES},
    {"GeluAndMul", "mn", WIDE_SHAPES},
    {"Softmax", "mn", ROW_SHAPES},
    {"rotary_pos_emb", "thgd", {"t=512,h=32,g=8,d=128", "t=1,h=32,g=8,d=128", "t=4096,h=32,g=8,d=128"}},
    {"Attention",
     "btshgd",
     {"b=21,t=12,s=12,h=12,g=12,d=32", "b=1,t=12,s=12,h=12,g=12,d=32", "b=1,t=252,s=252,h=12,g=12,d=32",
      "b=1,t=512,s=512,h=32,g=8,d=64,causal=1", "b=1,t=512,s=512,h=32,g=8,d=128,causal=1",
      "b=1,t=1,s=2048,h=32,g=8,d=128,causal=1"}},
    {"Linear", "mnk", LINEAR_SHAPES},
    {"LinearGeLU", "mnk", LINEAR_SHAPES},
    {"LinearGeluTanh", "mnk", LINEAR_SHAPES},
    {"LinearSiLU", "mnk", LINEAR_SHAPES},
    {"LinearReLU", "mnk", LINEAR_SHAPES},
    {"LinearAdd", "mnk", LINEAR_SHAPES},
    {"Embedding", "mvn", TABLE_SHAPES},
    {"EmbeddingLayerNorm", "mvn", TABLE_SHAPES},
    {"RMSNormLinear", "mnk", LINEAR_SHAPES},
};

_Static_assert(sizeof(table) / sizeof(*table) == KHUB__LAYERS, "every layer has its shapes");

static const struct row *row_of(const char *layer)
{
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
        if (!strcmp(table[i].layer, layer)) return &table[i];
    return NULL;
}

const char *khub_bench_shape(const char *layer, size_t i)
{
    const struct row *row = layer ? row_of(layer) : NULL;
    return row && i < MOST_SHAPES ? row->shapes[i] : NULL;
}

/* What can be said with 0 and 1: a tensor that may be None, a bool. A count is said with any number. */
static int is_switch(khub__arg_kind kind)
{
    return khub__arg_is_optional(kind) || kind == KHUB__ARG_BOOL;
}

static unsigned usual_switches(const khub__layer_def *layer)
{
    unsigned with = 0;
    for (int32_t i = 0; i < layer->arg_count; i++)
        if (layer->args[i].kind == KHUB__ARG_MAYBE_TENSOR || layer->args[i].kind == KHUB__ARG_MAYBE_INDEX)
            with |= 1u << i;
    return with;
}

/* "m, n, bias": what a shape of the layer can name. */
static int unknown_name(const khub__layer_def *layer, const struct row *row, const char *text,
                        const char *name, size_t length, khub_error *err)
{
    khub__text known = {0};
    for (size_t i = 0; row->names[i]; i++)
        khub__text_addf(&known, "%s%c", i ? ", " : "", row->names[i]);
    for (int32_t i = 0; i < layer->arg_count; i++)
        if (is_switch(layer->args[i].kind))
            khub__text_addf(&known, ", %s%s", layer->args[i].name,
                            layer->args[i].kind == KHUB__ARG_MAYBE_COUNT ? "" : " (0 or 1)");
    int rc = khub__fail(err, KHUB_E_INVAL, "shape \"%s\": %s has no \"%.*s\"; there are %s", text,
                        layer->name, (int)length, name, known.data ? known.data : "none");
    khub__text_free(&known);
    return rc;
}

/* Sets what NAME (`length` bytes) stands for. 0: it stands for nothing; -1: its value can't be. */
static int set(khub__case *c, const struct row *row, const char *name, size_t length, long long value)
{
    const char *letter = length == 1 ? strchr(row->names, *name) : NULL;
    if (letter) {
        c->extents[letter - row->names] = value;
        return 1;
    }
    for (int32_t i = 0; i < c->layer->arg_count; i++) {
        const khub__layer_arg *arg = &c->layer->args[i];
        if (!is_switch(arg->kind) || strlen(arg->name) != length || memcmp(arg->name, name, length) != 0)
            continue;
        if (arg->kind == KHUB__ARG_MAYBE_COUNT)
            c->window = value;
        else if (value > 1)
            return -1;
        c->with = value ? c->with | 1u << i : c->with & ~(1u << i);
        return 1;
    }
    return 0;
}

/* "m=252,n=384" over what the case has. */
static int take(khub__case *c, const struct row *row, const char *text, khub_error *err)
{
    const char *const form = "NAME=NUMBER,… is expected, as in";
    for (const char *at = text; *at;) {
        size_t length = strcspn(at, "=,");
        char *end = NULL;
        long long value = at[length] == '=' && at[length + 1] >= '0' && at[length + 1] <= '9'
                              ? strtoll(at + length + 1, &end, 10)
                              : 0;
        if (!length || !end || (*end && (*end != ',' || !end[1])))
            return khub__fail(err, KHUB_E_INVAL, "shape \"%s\": %s %s", text, form, row->shapes[0]);
        int known = set(c, row, at, length, value);
        if (known < 0)
            return khub__fail(err, KHUB_E_INVAL, "shape \"%s\": %.*s is 0 or 1", text, (int)length, at);
        if (!known) return unknown_name(c->layer, row, text, at, length, err);
        at = *end ? end + 1 : end;
    }
    return KHUB_OK;
}

int khub__shape_parse(khub__case *out, const khub__layer_def *layer, khub_dtype dtype, const char *text,
                      khub_error *err)
{
    const struct row *row = row_of(layer->name);
    memset(out, 0, sizeof(*out));
    out->layer = layer;
    out->dtype = dtype;
    out->ndim = (int32_t)strlen(row->names);
    out->with = usual_switches(layer);
    int rc = take(out, row, row->shapes[0], err);
    if (rc == KHUB_OK) rc = take(out, row, text, err);
    return rc == KHUB_OK ? khub__case_complete(out, err) : rc;
}

const char *khub__shape_text_of(char text[KHUB__SHAPE_TEXT], const khub__case *c)
{
    const struct row *row = row_of(c->layer->name);
    unsigned usual = usual_switches(c->layer);
    size_t used = 0;
    text[0] = 0;
    for (int32_t i = 0; i < c->ndim && used < KHUB__SHAPE_TEXT; i++)
        used += (size_t)snprintf(text + used, KHUB__SHAPE_TEXT - used, "%s%c=%lld", i ? "," : "",
                                 row->names[i], (long long)c->extents[i]);
    for (int32_t i = 0; i < c->layer->arg_count && used < KHUB__SHAPE_TEXT; i++)
        if ((c->with ^ usual) >> i & 1)
            used += (size_t)snprintf(text + used, KHUB__SHAPE_TEXT - used, ",%s=%lld", c->layer->args[i].name,
                                     c->layer->args[i].kind == KHUB__ARG_MAYBE_COUNT
                                         ? (long long)c->window
                                         : (long long)(c->with >> i & 1));
    return text;
}
