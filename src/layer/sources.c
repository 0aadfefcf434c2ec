#include "layer/sources.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/options.h"

enum { MAX_KERNELS = 4096 };

static int read_mapping(khub_mapping **out, const khub_kernelize_options *options, khub_error *err)
{
    if ((options->mapping != NULL) + (options->mapping_file != NULL) + (options->kernels != NULL) > 1)
        return khub__fail(err, KHUB_E_INVAL,
                          "khub_kernelize: more than one of mapping, mapping_file and kernels is given");
    if (options->kernels) return khub__mapping_copy(out, options->kernels, err);
    if (options->mapping_file) return khub_mapping_read(out, options->mapping_file, err);
    return options->mapping ? khub_mapping_parse(out, options->mapping, NULL, err)
                            : khub__mapping_default(out, err);
}

static int read_hub(khub_hub_options *out, const khub_kernelize_options *options, khub_error *err)
{
    int rc = khub__options(out, sizeof(*out), options->hub, "khub_hub_options", err);
    out->struct_size = sizeof(*out);
    return rc;
}

int khub__sources_new(khub__sources **out, khub_layers *layers, const khub_kernelize_options *options,
                      khub_error *err)
{
    *out = khub__calloc(1, sizeof(**out));
    if (!*out) return khub__fail_memory(err, "reading a mapping");
    (*out)->layers = layers;
    (*out)->platform = options->platform;
    int rc = read_hub(&(*out)->hub, options, err);
    if (rc == KHUB_OK) rc = read_mapping(&(*out)->mapping, options, err);
    if (rc == KHUB_OK) return KHUB_OK;
    khub__sources_free(*out);
    *out = NULL;
    return rc;
}

void khub__sources_free(khub__sources *sources)
{
    if (!sources) return;
    for (size_t i = 0; i < sources->count; i++)
        khub__source_give_up(sources->asked[i].source);
    khub__free(sources->asked);
    khub_mapping_free(sources->mapping);
    khub__free(sources);
}

/* A mapping of many kernels waits for a Hub that is away once, not for each of them: after that, the cache is
 * all there is. */
static int get(khub__source **out, khub__sources *sources, const char *name, khub_error *why)
{
    khub_kernel *kernel;
    khub_get_options options;
    KHUB_INIT(&options);
    options.platform = sources->platform;
    options.hub = &sources->hub;
    int rc = khub_get(&kernel, name, &options, why);
    if (rc == KHUB_E_NETWORK) sources->hub.offline = 1;
    if (rc == KHUB_OK && !(*out = khub__source_of(sources->layers, kernel)))
        rc = khub__fail_memory(why, "opening the kernels of a mapping");
    return rc;
}

int khub__sources_get(const khub__asked **out, khub__sources *sources, const char *name, khub_error *err)
{
    for (size_t i = 0; i < sources->count; i++) {
        *out = &sources->asked[i];
        if (!strcmp(sources->asked[i].name, name)) return KHUB_OK;
    }
    if (khub__grow((void **)&sources->asked, &sources->capacity, sources->count + 1, sizeof(khub__asked),
                   MAX_KERNELS))
        return khub__fail_memory(err, "opening the kernels of a mapping");
    khub__asked *source = &sources->asked[sources->count];
    memset(source, 0, sizeof(*source));
    source->name = name;
    int rc = get(&source->source, sources, name, &source->why);
    if (rc == KHUB_E_NOMEM) return khub__fail_memory(err, "opening the kernels of a mapping");
    if (rc == KHUB_E_CANCELED) return khub__fail(err, rc, "%s", source->why.message);
    sources->count++;
    *out = source;
    return KHUB_OK;
}
