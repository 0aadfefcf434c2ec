/* The standard function of each layer. */
#include <khub/standard.h>

#include "base/error.h"
#include "ops/functions.h"

/* Only an activation's row has a self. */
static const struct {
    khub__activation self;
    khub_call_fn call;
} table[] = {
    {{"RMSNorm", NULL}, khub__std_rms_norm},
    {{"AddRMSNorm", NULL}, khub__std_add_rms_norm},
    {{"LayerNorm", NULL}, khub__std_layer_norm},
    {{"AddLayerNorm", NULL}, khub__std_add_layer_norm},
    {{"GeLU", khub__gelu}, khub__std_activation},
    {{"GeluTanh", khub__gelu_tanh}, khub__std_activation},
    {{"SiLU", khub__silu}, khub__std_activation},
    {{"QuickGELU", khub__quick_gelu}, khub__std_activation},
    {{"ReLU", khub__relu}, khub__std_activation},
    {{"SiluAndMul", khub__silu}, khub__std_gated},
    {{"GeluAndMul", khub__gelu}, khub__std_gated},
    {{"Softmax", NULL}, khub__std_softmax},
    {{"rotary_pos_emb", NULL}, khub__std_rotary},
    {{"Attention", NULL}, khub__std_attention},
    {{"Linear", NULL}, khub__std_linear},
    {{"LinearGeLU", khub__gelu}, khub__std_linear},
    {{"LinearGeluTanh", khub__gelu_tanh}, khub__std_linear},
    {{"LinearSiLU", khub__silu}, khub__std_linear},
    {{"LinearReLU", khub__relu}, khub__std_linear},
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
