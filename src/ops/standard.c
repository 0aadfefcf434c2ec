/* The standard function of each layer. */
#include <khub/standard.h>

#include "base/error.h"
#include "ops/blas.h"
#include "ops/functions.h"

#define PART(arg, dim)                                                                                       \
    {                                                                                                        \
        arg, dim, 1, 0                                                                                       \
    }
#define ROWS(count, ...)                                                                                     \
    {                                                                                                        \
        {                                                                                                    \
            "rows", {__VA_ARGS__}, count, 0                                                                  \
        }                                                                                                    \
    }

/* The axes along which the functions below compute piece by piece whatever lies beside it. */
static const khub_slot_axis rows_of_2[] = ROWS(2, PART(0, 0), PART(1, 0)),
                            rows_of_3[] = ROWS(3, PART(0, 0), PART(1, 0), PART(2, 0)),
                            rows_of_4[] = ROWS(4, PART(0, 0), PART(1, 0), PART(2, 0), PART(3, 0)),
                            rotary[] = ROWS(6, PART(0, 0), PART(1, 0), PART(2, 0), PART(3, 0), PART(4, 0),
                                            PART(5, 0));
static const khub_slot_axis attention[] = {
    {"batch", {PART(0, 0), PART(1, 0), PART(2, 0), PART(3, 0), PART(4, 0)}, 5, 0},
    {"heads", {PART(0, 2), PART(1, 2), PART(2, 2), PART(3, 2)}, 4, 0}};
/* Not rows: how a BLAS computes a row may depend on how many there are. */
static const khub_slot_axis linear[] = {
    {"columns", {PART(0, 1), PART(2, 0), PART(3, 0)}, 3, KHUB__LINEAR_BLOCK}};

static const khub_slot_axis linear_add[] = {
    {"columns", {PART(0, 1), PART(2, 0), PART(3, 0), PART(4, 1)}, 4, KHUB__LINEAR_BLOCK}};

static const khub_slot_axis norm_linear[] = {
    {"columns", {PART(0, 1), PART(4, 0), PART(5, 0)}, 3, KHUB__LINEAR_BLOCK}};

#define AXES(list) list, sizeof(list) / sizeof(*list)

/* Only an activation's row has a self. */
static const struct {
    khub__activation self;
    khub_call_fn call;
    const khub_slot_axis *axes;
    size_t axis_count;
} table[] = {
    {{"Add", NULL}, khub__std_add, AXES(rows_of_3)},
    {{"RMSNorm", NULL}, khub__std_rms_norm, AXES(rows_of_2)},
    {{"AddRMSNorm", NULL}, khub__std_add_rms_norm, AXES(rows_of_4)},
    {{"LayerNorm", NULL}, khub__std_layer_norm, AXES(rows_of_2)},
    {{"AddLayerNorm", NULL}, khub__std_add_layer_norm, AXES(rows_of_4)},
    {{"GeLU", khub__gelu}, khub__std_activation, AXES(rows_of_2)},
    {{"GeluTanh", khub__gelu_tanh}, khub__std_activation, AXES(rows_of_2)},
    {{"SiLU", khub__silu}, khub__std_activation, AXES(rows_of_2)},
    {{"QuickGELU", khub__quick_gelu}, khub__std_activation, AXES(rows_of_2)},
    {{"ReLU", khub__relu}, khub__std_activation, AXES(rows_of_2)},
    {{"SiluAndMul", khub__silu}, khub__std_gated, AXES(rows_of_2)},
    {{"GeluAndMul", khub__gelu}, khub__std_gated, AXES(rows_of_2)},
    {{"Softmax", NULL}, khub__std_softmax, AXES(rows_of_2)},
    {{"rotary_pos_emb", NULL}, khub__std_rotary, AXES(rotary)},
    {{"Attention", NULL}, khub__std_attention, AXES(attention)},
    {{"Linear", NULL}, khub__std_linear, AXES(linear)},
    {{"LinearGeLU", khub__gelu}, khub__std_linear, AXES(linear)},
    {{"LinearGeluTanh", khub__gelu_tanh}, khub__std_linear, AXES(linear)},
    {{"LinearSiLU", khub__silu}, khub__std_linear, AXES(linear)},
    {{"LinearReLU", khub__relu}, khub__std_linear, AXES(linear)},
    {{"LinearAdd", NULL}, khub__std_linear, AXES(linear_add)},
    {{"Embedding", NULL}, khub__std_embedding, AXES(rows_of_4)},
    {{"EmbeddingLayerNorm", NULL}, khub__std_embedding_layer_norm, AXES(rows_of_4)},
    {{"RMSNormLinear", NULL}, khub__std_rms_norm_linear, AXES(norm_linear)},
};

int khub_standard(khub_function *out, const char *layer, khub_error *err)
{
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
        if (strcmp(table[i].self.layer, layer) != 0) continue;
        out->call = table[i].call;
        out->self = (void *)(uintptr_t)&table[i].self;
        return KHUB_OK;
    }
    return khub__fail(err, KHUB_E_NOTFOUND, "there is no layer \"%s\"; docs/layers.md lists them", layer);
}

size_t khub_standard_axes(const char *layer, const khub_slot_axis **axes)
{
    *axes = NULL;
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
        if (strcmp(table[i].self.layer, layer) != 0) continue;
        int on_blas = table[i].axes == linear || table[i].axes == linear_add ||
                      table[i].axes == norm_linear || table[i].axes == attention;
        if (on_blas && khub__blas_threads() != 1)
            return 0; /* two kinds of threads would fight for the CPUs */
        *axes = table[i].axes;
        return table[i].axis_count;
    }
    return 0;
}
