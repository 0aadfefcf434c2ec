#include "model/config.h"

#include "base/error.h"
#include "base/json.h"

#include <inttypes.h>
#include <stddef.h>

enum { MAX_CONFIG = 1 << 20 };

/* The whole numbers of config.json with the largest values that make sense: far above any model there is, and
 * small enough that the product of any two fits an int64. */
static const struct size_field {
    const char *key;
    size_t offset;
    int64_t max;
} size_fields[] = {
    {"hidden_size", offsetof(khub__config, hidden), 1 << 16},
    {"num_hidden_layers", offsetof(khub__config, layers), 1 << 10},
    {"num_attention_heads", offsetof(khub__config, heads), 1 << 10},
    {"intermediate_size", offsetof(khub__config, intermediate), 1 << 18},
    {"vocab_size", offsetof(khub__config, vocabulary), 1 << 24},
    {"max_position_embeddings", offsetof(khub__config, positions), 1 << 20},
    {"type_vocab_size", offsetof(khub__config, token_types), 1 << 10},
};

static int read_sizes(khub__config *out, const json_t *root, const khub__json_source *source)
{
    for (size_t i = 0; i < sizeof(size_fields) / sizeof(*size_fields); i++) {
        const struct size_field *f = &size_fields[i];
        int64_t value = 0;
        int rc = khub__json_integer(&value, root, f->key, source);
        if (rc != KHUB_OK) return rc;
        if (!json_object_get(root, f->key))
            return khub__fail(source->err, KHUB_E_FORMAT, "%s: \"%s\" is missing", source->file, f->key);
        if (value < 1 || value > f->max)
            return khub__fail(source->err, KHUB_E_FORMAT,
                              "%s: \"%s\" is %" PRId64 ", 1 to %" PRId64 " make sense", source->file, f->key,
                              value, f->max);
        memcpy((char *)out + f->offset, &value, sizeof(value));
    }
    if (out->hidden % out->heads != 0)
        return khub__fail(source->err, KHUB_E_FORMAT,
                          "%s: \"hidden_size\" %" PRId64
                          " isn't a multiple of \"num_attention_heads\" %" PRId64,
                          source->file, out->hidden, out->heads);
    return KHUB_OK;
}

/* A text that must be one of those this version can do; absent: `fallback`. */
static int read_word(const char **out, const json_t *root, const char *key, const char *fallback,
                     const khub__json_source *source)
{
    *out = fallback;
    int rc = khub__json_string(out, root, key, source);
    if (rc == KHUB_OK && !*out)
        return khub__fail(source->err, KHUB_E_FORMAT, "%s: \"%s\" is missing", source->file, key);
    return rc;
}

static int check_architecture(const json_t *root, const khub__json_source *source)
{
    const char *type, *positions;
    int rc = read_word(&type, root, "model_type", NULL, source);
    if (rc != KHUB_OK) return rc;
    if (strcmp(type, "bert") != 0)
        return khub__fail(source->err, KHUB_E_UNSUPPORTED,
                          "%s: the architecture \"%s\" isn't supported, only \"bert\" is", source->file,
                          type);
    rc = read_word(&positions, root, "position_embedding_type", "absolute", source);
    if (rc != KHUB_OK) return rc;
    if (strcmp(positions, "absolute") != 0)
        return khub__fail(source->err, KHUB_E_UNSUPPORTED,
                          "%s: \"position_embedding_type\" \"%s\" isn't supported, only \"absolute\" is",
                          source->file, positions);
    int decoder = 0;
    rc = khub__json_bool(&decoder, root, "is_decoder", source);
    if (rc == KHUB_OK && decoder)
        return khub__fail(source->err, KHUB_E_UNSUPPORTED, "%s: a decoder (\"is_decoder\") isn't supported",
                          source->file);
    return rc;
}

static int read_activation(khub__config *out, const json_t *root, const khub__json_source *source)
{
    static const struct {
        const char *name, *layer;
    } table[] = {{"gelu", "GeLU"},           {"gelu_new", "GeluTanh"}, {"gelu_pytorch_tanh", "GeluTanh"},
                 {"relu", "ReLU"},           {"silu", "SiLU"},         {"swish", "SiLU"},
                 {"quick_gelu", "QuickGELU"}};
    const char *name;
    int rc = read_word(&name, root, "hidden_act", "gelu", source);
    if (rc != KHUB_OK) return rc;
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
        if (!strcmp(table[i].name, name)) out->activation = table[i].layer;
    if (out->activation) return KHUB_OK;
    return khub__fail(source->err, KHUB_E_UNSUPPORTED,
                      "%s: the activation \"%s\" (\"hidden_act\") isn't supported", source->file, name);
}

static int read_eps(khub__config *out, const json_t *root, const khub__json_source *source)
{
    out->eps = 1e-12; /* BertConfig's default */
    int rc = khub__json_number(&out->eps, root, "layer_norm_eps", source);
    if (rc == KHUB_OK && !(out->eps >= 0 && out->eps < 1))
        return khub__fail(source->err, KHUB_E_FORMAT, "%s: \"layer_norm_eps\" is %g, 0 to 1 make sense",
                          source->file, out->eps);
    return rc;
}

int khub__config_read(khub__config *out, const char *path, khub_error *err)
{
    memset(out, 0, sizeof(*out));
    json_t *root;
    khub__json_source source = {path, err};
    int rc = khub__json_read(&root, path, MAX_CONFIG, err);
    if (rc != KHUB_OK) return rc;
    rc = check_architecture(root, &source);
    if (rc == KHUB_OK) rc = read_sizes(out, root, &source);
    if (rc == KHUB_OK) rc = read_activation(out, root, &source);
    if (rc == KHUB_OK) rc = read_eps(out, root, &source);
    json_decref(root);
    return rc;
}
