/* The mapping that khub ships with. */
#include "base/error.h"
#include "base/json.h"
#include "layer/mapping.h"

#include <stdlib.h>

/* Names as Transformers has them, where there are such. Beside the built-in kernels nothing of its own
 * default mapping can be called from C: its repositories hold torch extensions, or Python (docs/layers.md).
 */
static const struct {
    const char *layer, *kernel; /* on the CPU */
} rows[] = {
    {"RMSNorm", "khub/norm"},          {"AddRMSNorm", "khub/norm"},       {"LayerNorm", "khub/norm"},
    {"AddLayerNorm", "khub/norm"},     {"GeLU", "khub/activation"},       {"GeluTanh", "khub/activation"},
    {"SiLU", "khub/activation"},       {"QuickGELU", "khub/activation"},  {"ReLU", "khub/activation"},
    {"SiluAndMul", "khub/activation"}, {"GeluAndMul", "khub/activation"}, {"Softmax", "khub/softmax"},
    {"rotary_pos_emb", "khub/rotary"}, {"Attention", "khub/attention"},   {"Linear", "khub/linear"},
    {"LinearGeLU", "khub/linear"},     {"LinearGeluTanh", "khub/linear"}, {"LinearSiLU", "khub/linear"},
    {"LinearReLU", "khub/linear"},     {"RMSNormLinear", "khub/linear"},
};

int khub_mapping_builtin(khub_mapping **out, khub_error *err)
{
    static const khub__mapping_place place = {"default mapping", NULL, 1};
    int rc = khub__given("khub_mapping_builtin", out != NULL, err);
    if (rc != KHUB_OK) return rc;
    *out = NULL;
    json_t *root = json_object();
    for (size_t i = 0; root && i < sizeof(rows) / sizeof(*rows); i++)
        if (json_object_set_new(root, rows[i].layer, json_pack("{s:s}", "cpu", rows[i].kernel)) != 0) {
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
