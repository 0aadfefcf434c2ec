/* The mapping that khub ships with. */
#include "base/error.h"
#include "base/json.h"
#include "layer/mapping.h"

#include <stdlib.h>

/* Names as Transformers has them, where there are such. The built-in kernels; on CUDA after those what
 * Transformers' own default mapping has and a C program can call, an operator for Torch that takes (out, x).
 * Most of that mapping is Python, or takes what no layer has (docs/layers.md). */
static const struct {
    const char *layer, *kernel;
    int on_cuda;          /* 1: it has functions for CUDA; the builds with them may not be installed */
    const char *operator; /* of kernels-community/activation@v1; NULL: none */
} rows[] = {
    {"RMSNorm", "khub/norm", 1, NULL},
    {"AddRMSNorm", "khub/norm", 1, NULL},
    {"LayerNorm", "khub/norm", 1, NULL},
    {"AddLayerNorm", "khub/norm", 1, NULL},
    {"EmbeddingLayerNorm", "khub/embedding", 0, NULL},
    {"GeLU", "khub/activation", 1, "gelu"},
    {"GeluTanh", "khub/activation", 1, "gelu_tanh"},
    {"SiLU", "khub/activation", 1, "silu"},
    {"QuickGELU", "khub/activation", 1, "gelu_quick"},
    {"ReLU", "khub/activation", 1, NULL},
    {"SiluAndMul", "khub/activation", 1, "silu_and_mul"},
    {"GeluAndMul", "khub/activation", 1, "gelu_and_mul"},
    {"Softmax", "khub/softmax", 1, NULL},
    {"rotary_pos_emb", "khub/rotary", 1, NULL},
    {"Attention", "khub/attention", 1, NULL},
    {"Linear", "khub/linear", 0, NULL},
    {"LinearGeLU", "khub/linear", 0, NULL},
    {"LinearGeluTanh", "khub/linear", 0, NULL},
    {"LinearSiLU", "khub/linear", 0, NULL},
    {"LinearReLU", "khub/linear", 0, NULL},
    {"LinearAdd", "khub/linear", 0, NULL},
    {"RMSNormLinear", "khub/linear", 0, NULL},
};

/* A kernel's name for all modes, or for inference with the operator for what it doesn't serve. */
static json_t *make_cuda(size_t i)
{
    if (!rows[i].operator) return json_string(rows[i].kernel);
    return json_pack("{s:s, s:{s:s, s:s, s:[s,s]}}", "inference", rows[i].kernel, "fallback", "kernel",
                     "kernels-community/activation@v1", "function", rows[i].operator, "args", "out", "x");
}

static json_t *make_row(size_t i)
{
    if (!rows[i].on_cuda) return json_pack("{s:s}", "cpu", rows[i].kernel);
    return json_pack("{s:s, s:o}", "cpu", rows[i].kernel, "cuda", make_cuda(i));
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
