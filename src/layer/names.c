#include "layer/names.h"

#include "base/error.h"
#include "base/text.h"

#define ARG(...)                                                                                             \
    {                                                                                                        \
        __VA_ARGS__                                                                                          \
    }
#define T(arg)       ARG(arg, KHUB__ARG_TENSOR, 0, 0)
#define MAY(arg)     ARG(arg, KHUB__ARG_MAYBE_TENSOR, 0, 0)
#define F(arg)       ARG(arg, KHUB__ARG_FLOAT, 0, 0)
#define I(arg)       ARG(arg, KHUB__ARG_INDEX, 0, 0)
#define MAY_I(arg)   ARG(arg, KHUB__ARG_MAYBE_INDEX, 0, 0)
#define T_N(arg)     ARG(arg, KHUB__ARG_TENSOR, 1, 0) /* (…, n) */
#define O(arg)       ARG(arg, KHUB__ARG_TENSOR, 0, 1) /* outputs */
#define O_N(arg)     ARG(arg, KHUB__ARG_TENSOR, 1, 1)
#define MAY_O_N(arg) ARG(arg, KHUB__ARG_MAYBE_TENSOR, 1, 1)

/* The twin of the table in docs/layers.md. */
static const khub__layer_def layers[] = {
    {"Add", 3, {O("out"), T("x"), T("residual")}},
    {"RMSNorm", 4, {O_N("out"), T_N("x"), T("weight"), F("eps")}},
    {"AddRMSNorm", 6, {O_N("out"), MAY_O_N("sum"), T_N("x"), T_N("residual"), T("weight"), F("eps")}},
    {"LayerNorm", 5, {O_N("out"), T_N("x"), T("weight"), MAY("bias"), F("eps")}},
    {"AddLayerNorm",
     7,
     {O_N("out"), MAY_O_N("sum"), T_N("x"), T_N("residual"), T("weight"), MAY("bias"), F("eps")}},
    {"GeLU", 2, {O("out"), T("x")}},
    {"GeluTanh", 2, {O("out"), T("x")}},
    {"SiLU", 2, {O("out"), T("x")}},
    {"QuickGELU", 2, {O("out"), T("x")}},
    {"ReLU", 2, {O("out"), T("x")}},
    {"SiluAndMul", 2, {O_N("out"), T_N("x")}},
    {"GeluAndMul", 2, {O_N("out"), T_N("x")}},
    {"Softmax", 2, {O_N("out"), T_N("x")}},
    {"rotary_pos_emb", 6, {O("q_out"), O("k_out"), T("q"), T("k"), T("cos"), T("sin")}},
    {"Attention",
     8,
     {O("out"),
      T("q"),
      T("k"),
      T("v"),
      {"lengths", KHUB__ARG_MAYBE_LENGTHS, 0, 0},
      F("scale"),
      {"causal", KHUB__ARG_BOOL, 0, 0},
      {"window", KHUB__ARG_MAYBE_COUNT, 0, 0}}},
    {"Linear", 4, {O("out"), T("x"), T("weight"), MAY("bias")}},
    {"LinearGeLU", 4, {O("out"), T("x"), T("weight"), MAY("bias")}},
    {"LinearGeluTanh", 4, {O("out"), T("x"), T("weight"), MAY("bias")}},
    {"LinearSiLU", 4, {O("out"), T("x"), T("weight"), MAY("bias")}},
    {"LinearReLU", 4, {O("out"), T("x"), T("weight"), MAY("bias")}},
    {"LinearAdd", 5, {O("out"), T("x"), T("weight"), MAY("bias"), T("residual")}},
    {"Embedding",
     7,
     {O_N("out"), I("ids"), MAY_I("type_ids"), MAY_I("position_ids"), T("words"), MAY("types"),
      MAY("positions")}},
    {"EmbeddingLayerNorm",
     10,
     {O_N("out"), I("ids"), MAY_I("type_ids"), MAY_I("position_ids"), T("words"), MAY("types"),
      MAY("positions"), T("weight"), MAY("bias"), F("eps")}},
    {"RMSNormLinear", 6, {O("out"), T("x"), T("norm_weight"), F("eps"), T("weight"), MAY("bias")}},
};

_Static_assert(sizeof(layers) / sizeof(*layers) == KHUB__LAYERS, "KHUB__LAYERS counts them");

size_t khub__layer_number(const khub__layer_def *layer)
{
    return (size_t)(layer - layers);
}

const khub__layer_def *khub__layer_at(size_t number)
{
    return &layers[number];
}

const khub__layer_def *khub__layer_find(const char *name)
{
    for (size_t i = 0; i < sizeof(layers) / sizeof(*layers); i++)
        if (!strcmp(layers[i].name, name)) return &layers[i];
    return NULL;
}

int khub__layer_check(const char *name, const char *where, khub_error *err)
{
    if (khub__layer_find(name)) return KHUB_OK;
    const char *meant = NULL; /* "Gelu" */
    for (size_t i = 0; i < sizeof(layers) / sizeof(*layers); i++)
        if (khub__is_word(name, strlen(name), layers[i].name)) meant = layers[i].name;
    return khub__fail(err, KHUB_E_FORMAT,
                      meant ? "%s: there is no layer \"%.60s\": did you mean %s?"
                            : "%s: there is no layer \"%.60s\"; docs/layers.md lists them",
                      where, name, meant);
}

int32_t khub__layer_position(const khub__layer_def *layer, const char *arg)
{
    for (int32_t i = 0; i < layer->arg_count; i++)
        if (!strcmp(layer->args[i].name, arg)) return i;
    return -1;
}

const char *khub_layer_arg(const char *layer, size_t i)
{
    const khub__layer_def *def = khub__layer_find(layer);
    return def && i < (size_t)def->arg_count ? def->args[i].name : NULL;
}
