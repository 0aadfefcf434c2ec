#include "layer/sources.h"

#include "base/error.h"
#include "base/memory.h"

enum { MAX_KERNELS = 4096 };

static int read_mapping(khub__mapping *out, const khub_kernelize_options *options, khub_error *err)
{
    if (options->mapping && options->mapping_file)
        return khub__fail(err, KHUB_E_INVAL, "khub_kernelize: both mapping and mapping_file are given");
    return options->mapping_file ? khub__mapping_read(out, options->mapping_file, err)
                                 : khub__mapping_parse(out, options->mapping, err);
}

int khub__sources_new(khub__sources **out, const khub_kernelize_options *options, khub_error *err)
{
    *out = khub__calloc(1, sizeof(**out));
    if (!*out) return khub__fail_memory(err, "reading a mapping");
    (*out)->platform = options->platform;
    int rc = read_mapping(&(*out)->mapping, options, err);
    if (rc == KHUB_OK) return KHUB_OK;
    khub__sources_free(*out);
    *out = NULL;
    return rc;
}

void khub__sources_free(khub__sources *sources)
{
    if (!sources) return;
    for (size_t i = 0; i < sources->count; i++)
        khub_kernel_close(sources->opened[i].kernel);
    khub__free(sources->opened);
    khub__mapping_free(&sources->mapping);
    khub__free(sources);
}

int khub__sources_get(const khub__source **out, khub__sources *sources, const char *name, khub_error *err)
{
    for (size_t i = 0; i < sources->count; i++) {
        *out = &sources->opened[i];
        if (!strcmp(sources->opened[i].name, name)) return KHUB_OK;
    }
    if (khub__grow((void **)&sources->opened, &sources->capacity, sources->count + 1, sizeof(khub__source),
                   MAX_KERNELS))
        return khub__fail_memory(err, "opening the kernels of a mapping");
    khub__source *source = &sources->opened[sources->count];
    memset(source, 0, sizeof(*source));
    source->name = name;
    khub_get_options options;
    KHUB_INIT(&options);
    options.platform = sources->platform;
    int rc = khub_get(&source->kernel, name, &options, &source->why);
    if (rc == KHUB_E_NOMEM) return khub__fail_memory(err, "opening the kernels of a mapping");
    sources->count++;
    *out = source;
    return KHUB_OK;
}
