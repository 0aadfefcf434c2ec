#include "model/sentence.h"

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/path.h"

#include <inttypes.h>

enum { MAX_FILE = 1 << 20, MAX_MODULES = 3 };

/* The class of a module without its package: "Pooling" of "sentence_transformers.models.Pooling". */
static const char *class_of(const char *type)
{
    const char *dot = strrchr(type, '.');
    return dot ? dot + 1 : type;
}

/* A path from modules.json stays inside the model's directory. */
static int is_inside(const char *path)
{
    if (path[0] == '/') return 0;
    for (const char *p = path; p; p = strchr(p, '/')) {
        if (*p == '/') p++;
        if (!strncmp(p, "..", 2) && (!p[2] || p[2] == '/')) return 0;
    }
    return 1;
}

/* DIR/PATH; DIR itself for an empty path. NULL with *err. */
static char *join(const char *dir, const char *path, khub_error *err)
{
    char *joined = path[0] ? khub__path_join(dir, path) : khub__strdup(dir);
    if (!joined) khub__fail_memory(err, "reading a model");
    return joined;
}

/* "pooling_mode_mean_tokens" and its like: which one is on. */
static int read_mode(const char **mode, const json_t *root, const khub__json_source *source)
{
    static const char prefix[] = "pooling_mode_";
    const char *key;
    const json_t *value;
    int rc = khub__json_string(mode, root, "pooling_mode", source);
    if (rc != KHUB_OK) return rc;
    json_object_foreach ((json_t *)(uintptr_t)root, key, value) {
        if (strncmp(key, prefix, sizeof(prefix) - 1) != 0) continue;
        int on = 0;
        rc = khub__json_bool(&on, root, key, source);
        if (rc != KHUB_OK) return rc;
        if (on && *mode)
            return khub__fail(source->err, KHUB_E_UNSUPPORTED,
                              "%s: two ways of pooling at once (\"%s\" and \"%s\") aren't supported",
                              source->file, *mode, key + sizeof(prefix) - 1);
        if (on) *mode = key + sizeof(prefix) - 1;
    }
    if (!*mode)
        return khub__fail(source->err, KHUB_E_FORMAT, "%s: no \"pooling_mode_...\" is true", source->file);
    return KHUB_OK;
}

static int take_mode(khub__sentence *out, const char *mode, const khub__json_source *source)
{
    static const struct {
        const char *name;
        khub__pooling pooling;
    } table[] = {{"mean_tokens", KHUB__POOL_MEAN},
                 {"mean", KHUB__POOL_MEAN},
                 {"cls_token", KHUB__POOL_CLS},
                 {"cls", KHUB__POOL_CLS}};
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
        if (strcmp(table[i].name, mode) != 0) continue;
        out->pooling = table[i].pooling;
        return KHUB_OK;
    }
    return khub__fail(source->err, KHUB_E_UNSUPPORTED,
                      "%s: pooling by \"%s\" isn't supported, only mean and cls are", source->file, mode);
}

static int read_pooling(khub__sentence *out, const char *path, khub_error *err)
{
    json_t *root;
    khub__json_source source = {path, err};
    int rc = khub__json_read(&root, path, MAX_FILE, err);
    if (rc != KHUB_OK) return rc;
    const char *mode = NULL;
    rc = read_mode(&mode, root, &source);
    if (rc == KHUB_OK) rc = take_mode(out, mode, &source);
    if (rc == KHUB_OK) rc = khub__json_integer(&out->width, root, "word_embedding_dimension", &source);
    if (rc == KHUB_OK && out->width < 0)
        rc = khub__fail(err, KHUB_E_FORMAT, "%s: \"word_embedding_dimension\" is %" PRId64, path, out->width);
    json_decref(root);
    return rc;
}

static int take_encoder(khub__sentence *out, const char *directory, const char *path, khub_error *err)
{
    out->encoder = join(directory, path, err);
    return out->encoder ? KHUB_OK : KHUB_E_NOMEM;
}

static int take_pooling(khub__sentence *out, const char *directory, const char *path, khub_error *err)
{
    char *folder = join(directory, path, err), *file = folder ? join(folder, "config.json", err) : NULL;
    int rc = file ? read_pooling(out, file, err) : KHUB_E_NOMEM;
    khub__free(file);
    khub__free(folder);
    return rc;
}

static int take_normalize(khub__sentence *out, const char *directory, const char *path, khub_error *err)
{
    (void)directory, (void)path, (void)err;
    out->normalize = 1;
    return KHUB_OK;
}

/* The modules in the only order this version runs them in. */
static const struct {
    const char *class;
    int (*take)(khub__sentence *out, const char *directory, const char *path, khub_error *err);
} steps[MAX_MODULES] = {
    {"Transformer", take_encoder}, {"Pooling", take_pooling}, {"Normalize", take_normalize}};

static int take_module(khub__sentence *out, const char *directory, const json_t *module, size_t i,
                       const khub__json_source *source)
{
    const char *type = "", *path = "";
    if (!json_is_object(module))
        return khub__fail(source->err, KHUB_E_FORMAT, "%s: module %zu is %s, an object is expected",
                          source->file, i, khub__json_type_name(module));
    int rc = khub__json_string(&type, module, "type", source);
    if (rc == KHUB_OK) rc = khub__json_string(&path, module, "path", source);
    if (rc != KHUB_OK) return rc;
    if (i >= MAX_MODULES || strcmp(class_of(type), steps[i].class) != 0)
        return khub__fail(source->err, KHUB_E_UNSUPPORTED,
                          "%s: module %zu is \"%s\"; Transformer, Pooling and perhaps Normalize, in this "
                          "order, are supported",
                          source->file, i, type);
    if (!is_inside(path))
        return khub__fail(source->err, KHUB_E_FORMAT,
                          "%s: module %zu: the path \"%s\" leads out of the model's directory", source->file,
                          i, path);
    return steps[i].take(out, directory, path, source->err);
}

static int read_modules(khub__sentence *out, const char *directory, const char *path, khub_error *err)
{
    json_t *root;
    khub__json_source source = {path, err};
    int rc = khub__json_read_array(&root, path, MAX_FILE, err);
    if (rc != KHUB_OK) return rc;
    if (json_array_size(root) < 2)
        rc = khub__fail(err, KHUB_E_UNSUPPORTED,
                        "%s: lists %zu modules; a Transformer and a Pooling are needed", path,
                        json_array_size(root));
    for (size_t i = 0; rc == KHUB_OK && i < json_array_size(root); i++)
        rc = take_module(out, directory, json_array_get(root, i), i, &source);
    json_decref(root);
    return rc;
}

/* sentence_bert_config.json beside the encoder; it may be absent. */
static int read_limits(khub__sentence *out, khub_error *err)
{
    char *path = join(out->encoder, "sentence_bert_config.json", err);
    if (!path) return KHUB_E_NOMEM;
    khub__json_source source = {path, err};
    json_t *root = NULL;
    int rc = KHUB_OK, lower = 0;
    if (khub__file_kind(path) != KHUB__FILE_NONE) rc = khub__json_read(&root, path, MAX_FILE, err);
    if (root) {
        rc = khub__json_integer(&out->max_tokens, root, "max_seq_length", &source);
        if (rc == KHUB_OK) rc = khub__json_bool(&lower, root, "do_lower_case", &source);
        if (rc == KHUB_OK && lower)
            rc = khub__fail(err, KHUB_E_UNSUPPORTED,
                            "%s: \"do_lower_case\" true isn't supported; the tokenizer does it", path);
        if (rc == KHUB_OK && out->max_tokens < 0)
            rc = khub__fail(err, KHUB_E_FORMAT, "%s: \"max_seq_length\" is %" PRId64, path, out->max_tokens);
        json_decref(root);
    }
    khub__free(path);
    return rc;
}

static int check_directory(const char *directory, khub_error *err)
{
    enum khub__file_kind kind = khub__file_kind(directory);
    if (kind == KHUB__FILE_DIRECTORY) return KHUB_OK;
    if (kind == KHUB__FILE_NONE || kind == KHUB__FILE_BROKEN)
        return khub__fail(err, KHUB_E_NOTFOUND, "%s: there is no such directory", directory);
    return khub__fail(err, KHUB_E_NOTFOUND, "%s: is a file; the directory of a model is needed", directory);
}

/* An encoder without anything around it. */
static int read_bare(khub__sentence *out, const char *directory, khub_error *err)
{
    char *config = join(directory, "config.json", err);
    if (!config) return KHUB_E_NOMEM;
    int is_model = khub__file_kind(config) != KHUB__FILE_NONE;
    khub__free(config);
    if (!is_model)
        return khub__fail(err, KHUB_E_NOTFOUND,
                          "%s: is no model: it holds neither modules.json nor config.json", directory);
    khub__log(KHUB_LOG_NOTICE, "model", directory,
              "has no modules.json: tokens are averaged, vectors aren't normalized");
    return take_encoder(out, directory, "", err);
}

int khub__sentence_read(khub__sentence *out, const char *directory, khub_error *err)
{
    memset(out, 0, sizeof(*out));
    int rc = check_directory(directory, err);
    if (rc != KHUB_OK) return rc;
    char *path = join(directory, "modules.json", err);
    if (!path) return KHUB_E_NOMEM;
    int has_modules = khub__file_kind(path) != KHUB__FILE_NONE;
    rc = has_modules ? read_modules(out, directory, path, err) : read_bare(out, directory, err);
    khub__free(path);
    if (rc == KHUB_OK) rc = read_limits(out, err);
    if (rc != KHUB_OK) khub__sentence_free(out);
    return rc;
}

void khub__sentence_free(khub__sentence *sentence)
{
    khub__free(sentence->encoder);
    memset(sentence, 0, sizeof(*sentence));
}
