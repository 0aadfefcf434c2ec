/* What can be asked of a kernel once it is loaded. */
#include "kernel/kernel.h"

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/text.h"

static void free_infos(khub_kernel *kernel)
{
    for (size_t i = 0; kernel->infos && i < kernel->library->function_count; i++) {
        khub__free((void *)(uintptr_t)kernel->infos[i].schema);
        khub__free((void *)(uintptr_t)kernel->infos[i].doc);
    }
    khub__free(kernel->infos);
}

static void free_facts(khub_kernel *kernel)
{
    khub_trust_free(kernel->trust);
    khub__free(kernel->commit);
    khub__free(kernel->build);
    khub__free(kernel->variant);
}

void khub_kernel_close(khub_kernel *kernel)
{
    if (!kernel) return;
    free_infos(kernel);
    if (kernel->own_layers) khub__layers_free(kernel->own_layers);
    khub__free(kernel->own_layers);
    khub__free(kernel->layers_text.text);
    if (!kernel->is_kept) free_facts(kernel);
    khub__free(kernel->name);
    khub__free(kernel);
}

const char *khub_kernel_name(const khub_kernel *kernel)
{
    return kernel->name;
}

const char *khub_kernel_variant(const khub_kernel *kernel)
{
    return kernel->variant;
}

const char *khub_kernel_build(const khub_kernel *kernel)
{
    return kernel->build;
}

const char *khub_kernel_commit(const khub_kernel *kernel)
{
    return kernel->commit;
}

const char *khub_kernel_library(const khub_kernel *kernel)
{
    return kernel->library->path;
}

int64_t khub_kernel_version(const khub_kernel *kernel)
{
    return kernel->version;
}

const khub_trust *khub_kernel_trust(const khub_kernel *kernel)
{
    return kernel->trust;
}

/* "KERNEL: has no WHAT "name"; it has: a, b, c" */
static int fail_absent(khub_error *err, const khub_kernel *kernel, const char *what, const char *name,
                       const char *(*at)(const khub_kernel *, size_t))
{
    khub__text list = {0};
    const char *there;
    for (size_t i = 0; (there = at(kernel, i)) != NULL; i++)
        khub__text_addf(&list, "%s%s", i ? ", " : "", there);
    char *text = khub__text_take(&list);
    int rc = !text   ? khub__fail_memory(err, "listing what a kernel has")
             : *text ? khub__fail(err, KHUB_E_NOTFOUND, "%s: has no %s \"%s\"; it has: %s", kernel->name,
                                  what, name, text)
                     : khub__fail(err, KHUB_E_NOTFOUND, "%s: has no %s at all, so no \"%s\" (%s)",
                                  kernel->name, what, name, kernel->library->path);
    khub__free(text);
    return rc;
}

static const char *function_at(const khub_kernel *kernel, size_t i)
{
    return i < kernel->library->function_count ? kernel->library->functions[i].name : NULL;
}

int khub_kernel_function(khub_function *out, const khub_kernel *kernel, const char *name, khub_error *err)
{
    int missing = khub__given("khub_kernel_function", out && kernel && name, err);
    if (out) *out = (khub_function){0};
    if (missing != KHUB_OK) return missing;
    const khub__library_function *function = khub__library_find(kernel->library, name);
    if (!kernel->library->function_count)
        return khub__fail(
            err, KHUB_E_NOTFOUND,
            "%s: has no function \"%s\", nor any other: the library exports none, as __tvm_ffi_NAME "
            "(docs/writing.md; %s)",
            kernel->name, name, kernel->library->path);
    if (!function) return fail_absent(err, kernel, "function", name, function_at);
    *out = function->function;
    return KHUB_OK;
}

/* What a function without arguments that returns text says; the caller's. NULL: it fails, or there is no
 * memory. */
static char *text_of(khub_call_fn call, const khub_kernel *kernel, const char *name)
{
    if (!call) return NULL;
    khub_function f = {call, NULL};
    khub_value value;
    khub_error err = {0};
    size_t length;
    khub__log(KHUB_LOG_DEBUG, "call", kernel->library->path, "what describes %s", name);
    int rc = khub_function_call(&f, NULL, 0, &value, &err);
    khub__log(KHUB_LOG_DEBUG, "called", kernel->library->path, "%s",
              rc == KHUB_OK ? "described" : err.message);
    const char *text = rc == KHUB_OK ? khub_value_text(&value, &length) : NULL;
    char *copy = text ? khub__strndup(text, length) : NULL;
    khub_value_release(&value);
    return copy;
}

/* tvm-ffi's metadata is {"type_schema": TEXT, …}, where TEXT is JSON again; what isn't of that form stays
 * whole. */
static char *schema_of(char *metadata)
{
    json_t *root;
    if (!metadata || khub__json_parse(&root, metadata, strlen(metadata), "metadata", NULL) != KHUB_OK)
        return metadata;
    const char *inner = json_string_value(json_object_get(root, "type_schema"));
    char *schema = inner ? khub__strdup(inner) : NULL;
    json_decref(root);
    if (!schema) return metadata;
    khub__free(metadata);
    return schema;
}

static char *refused(const char *why)
{
    khub__text text = {0};
    khub__text_addf(&text, "can't be called: %s", why);
    return khub__text_take(&text);
}

const khub_function_info *khub_kernel_function_info(khub_kernel *kernel, size_t i)
{
    const khub__library *library = kernel->library;
    if (i >= library->function_count) return NULL;
    if (kernel->infos) return &kernel->infos[i];
    khub_function_info *infos = khub__calloc(library->function_count, sizeof(*infos));
    if (!infos) return NULL;
    for (size_t j = 0; j < library->function_count; j++) {
        const khub__library_function *f = &library->functions[j];
        char *schema =
            f->signature ? khub__strdup(f->signature) : schema_of(text_of(f->schema, kernel, f->name));
        char *doc = f->refusal ? refused(f->refusal) : text_of(f->doc, kernel, f->name);
        infos[j] = (khub_function_info){f->name, schema, doc};
    }
    kernel->infos = infos;
    return &infos[i];
}

/* Where the build is kept for good they become everybody's; whoever comes second takes those of the first. */
static void take_layers(khub_kernel *kernel, khub__layers *layers)
{
    const khub__layers *theirs = NULL;
    kernel->layers = layers;
    if (!kernel->kept_layers) {
        kernel->own_layers = layers;
    } else if (!atomic_compare_exchange_strong(&kernel->kept_layers->read, &theirs, layers)) {
        khub__layers_free(layers);
        khub__free(layers);
        kernel->layers = theirs;
    }
}

/* From what was proven, or where nothing was, from the build. One that isn't there has no layers. */
static int read_text(khub__layers *out, const khub__layers_text *from, const char *path, khub_error *err)
{
    if (from->text) return khub__layers_parse(out, from->text, from->bytes, path, err);
    if (from->is_proven || khub__file_kind(path) == KHUB__FILE_NONE) return KHUB_OK;
    return khub__layers_read(out, path, err);
}

static int read_layers(khub_kernel *kernel, khub_error *err)
{
    if (kernel->kept_layers) kernel->layers = atomic_load(&kernel->kept_layers->read);
    if (kernel->layers) return KHUB_OK;
    char *path = khub__path_join(kernel->build, "layers.json");
    khub__layers *layers = khub__calloc(1, sizeof(*layers));
    int rc = path && layers ? KHUB_OK : khub__fail_memory(err, "reading layers.json");
    const khub__layers_text *from = kernel->kept_layers ? &kernel->kept_layers->text : &kernel->layers_text;
    if (rc == KHUB_OK) rc = read_text(layers, from, path, err);
    khub__free(path);
    if (rc == KHUB_OK)
        take_layers(kernel, layers);
    else
        khub__free(layers);
    return rc;
}

int khub__kernel_layers(const khub__layers **out, khub_kernel *kernel, khub_error *err)
{
    int rc = kernel->layers ? KHUB_OK : read_layers(kernel, err);
    *out = kernel->layers;
    return rc;
}

static const char *layer_at(const khub_kernel *kernel, size_t i)
{
    return i < kernel->layers->count ? kernel->layers->specs[i]->layer : NULL;
}

int khub_kernel_layer(const khub_layer_spec **out, khub_kernel *kernel, const char *layer, khub_error *err)
{
    const khub__layers *layers;
    int rc = khub__given("khub_kernel_layer", out && kernel && layer, err);
    if (out) *out = NULL;
    if (rc == KHUB_OK) rc = khub__kernel_layers(&layers, kernel, err);
    if (rc != KHUB_OK) return rc;
    *out = khub__layers_find(layers, layer);
    if (*out) return KHUB_OK;
    if (khub__library_find(kernel->library, layer))
        return khub__fail(err, KHUB_E_NOTFOUND,
                          "%s: has no layer \"%s\", which is a function: a mapping says {\"kernel\": \"%s\", "
                          "\"function\": \"%s\"}",
                          kernel->name, layer, kernel->name, layer);
    if (!layers->specs)
        return khub__fail(err, KHUB_E_NOTFOUND, "%s: has no layers.json, so no layer \"%s\" (%s)",
                          kernel->name, layer, kernel->build);
    return fail_absent(err, kernel, "layer", layer, layer_at);
}
