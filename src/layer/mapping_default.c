/* The mapping that khub ships with. */
#include "base/error.h"
#include "base/json.h"
#include "layer/mapping.h"

#include <stdlib.h>

/* Names as Transformers has them, where there are such. On the CPU the built-in kernels; on CUDA what
 * Transformers' own default mapping has and a C program can call, an operator for Torch that takes (out, x).
 * Most of that mapping is Python, or takes what no layer has (docs/layers.md). */
static const struct {
    const char *layer, *on_cpu, *operator; /* of kernels-community/activation@v1; NULL: none */
} rows[] = {
    {"RMSNorm", "khub/norm", NULL},
    {"AddRMSNorm", "khub/norm", NULL},
    {"LayerNorm", "khub/norm", NULL},
    {"AddLayerNorm", "khub/norm", NULL},
    {"EmbeddingLayerNorm", "khub/embedding", NULL},
    {"GeLU", "khub/activation", "gelu"},
    {"GeluTanh", "khub/activation", "gelu_tanh"},
    {"SiLU", "khub/activation", "silu"},
    {"QuickGELU", "khub/activation", "gelu_quick"},
    {"ReLU", "khub/activation", NULL},
    {"SiluAndMul", "khub/activation", "silu_and_mul"},
    {"GeluAndMul", "khub/activation", "gelu_and_mul"},
    {"Softmax", "khub/softmax", NULL},
    {"rotary_pos_emb", "khub/rotary", NULL},
    {"Attention", "khub/attention", NULL},
    {"Linear", "khub/linear", NULL},
    {"LinearGeLU", "khub/linear", NULL},
    {"LinearGeluTanh", "khub/linear", NULL},
    {"LinearSiLU", "khub/linear", NULL},
    {"LinearReLU", "khub/linear", NULL},
    {"LinearAdd", "khub/linear", NULL},
    {"RMSNormLinear", "khub/linear", NULL},
};

static json_t *make_row(size_t i)
{
    if (!rows[i].operator) return json_pack("{s:s}", "cpu", rows[i].on_cpu);
    return json_pack("{s:s, s:{s:s, s:s, s:[s,s]}}", "cpu", rows[i].on_cpu, "cuda", "kernel",
                     "kernels-community/activation@v1", "function", rows[i].operator, "args", "out", "x");
}

int khub_mapping_builtin(khub_mapping **out, khub_error *err)
{
    static const khub__mapping_place place = {"default mapping", NULL, 1};
    int rc = khub__given("khub_mapping_builtin", out != NULL, err);
    if (rc != KHUB_OK) return rc;
    *out = NULL;
    json_t *root = json_object();
    for (size_t i = 0; root && i < sizeof(rows) / sizeof(*rows); i++)
        if (json_object_set_new(root, rows[i].layer, make_row(i)) != 0) {
            json_decref(root);
            root = NULL;
        }
    return root ? khub__mapping_from(out, root, &place, err)
                : khub__fail_memory(err, "making the default mapping");
}

int khub__mapping_default(khub_mapping **out, khub_error *err)
{
    static const char variable[] = "DISABLE_KERNEL_MAPPING";
    const char *set = getenv(variable);
    if (!set || strcmp(set, "1") != 0) return khub_mapping_builtin(out, err);
    int rc = khub__mapping_begin(out, "default mapping", err);
    if (rc != KHUB_OK) return rc;
    (*out)->built_in = 1;
    (*out)->forbidden_by = variable;
    return KHUB_OK;
}
