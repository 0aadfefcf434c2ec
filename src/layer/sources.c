#include "layer/sources.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/options.h"
#include "kernel/machine.h"

enum { MAX_KERNELS = 65536 };

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
    (*out)->with.platform = options->platform;
    int rc = read_hub(&(*out)->with.hub, options, err);
    if (rc == KHUB_OK) rc = khub__on_parse(&(*out)->on, options->device ? options->device : "cpu", err);
    if (rc == KHUB_OK) rc = read_mapping(&(*out)->mapping, options, err);
    if (rc == KHUB_OK) return KHUB_OK;
    khub__sources_free(*out);
    *out = NULL;
    return rc;
}

void khub__sources_free(khub__sources *sources)
{
    if (!sources) return;
    for (size_t i = 0; i < sources->count; i++) {
        khub_kernel_close(sources->asked[i]->get.kernel);
        khub__source_give_up(sources->asked[i]->source);
        khub__free(sources->asked[i]);
    }
    khub__free(sources->asked);
    khub__index_free(&sources->by_name);
    khub_mapping_free(sources->mapping);
    khub__free(sources);
}

khub__asked *khub__sources_ask(khub__sources *sources, const char *name)
{
    int64_t at = khub__index_find(&sources->by_name, name);
    if (at >= 0) return sources->asked[at];
    if (khub__grow((void **)&sources->asked, &sources->capacity, sources->count + 1, sizeof(khub__asked *),
                   MAX_KERNELS))
        return NULL;
    khub__asked *asked = khub__calloc(1, sizeof(*asked));
    if (!asked || khub__index_add(&sources->by_name, name, (uint32_t)sources->count)) {
        khub__free(asked);
        return NULL;
    }
    asked->get.name = name;
    return sources->asked[sources->count++] = asked;
}

/* A backend by how its names begin ("cu128", "cuda"), and its plain name. */
static const struct {
    const char *prefix, *name;
} backends[KHUB__DEVICES] = {
    [KHUB__DEVICE_CPU] = {"cpu", "cpu"},          [KHUB__DEVICE_CUDA] = {"cu", "cuda"},
    [KHUB__DEVICE_ROCM] = {"rocm", "rocm"},       [KHUB__DEVICE_MPS] = {"metal", "metal"},
    [KHUB__DEVICE_XPU] = {"xpu", "xpu"},          [KHUB__DEVICE_NPU] = {"cann", "cann"},
    [KHUB__DEVICE_NEURON] = {"neuron", "neuron"}, [KHUB__DEVICE_TPU] = {"tpu", "tpu"},
};

/* The platform may have another device in mind than the slots are on. */
static int choose_backend(khub__sources *sources, khub_error *err)
{
    khub__gets *with = &sources->with;
    const khub_platform *platform = with->platform;
    int rc = platform ? KHUB_OK : khub__this_machine(&platform, err);
    const char *has = rc == KHUB_OK ? khub_platform_backend(platform) : NULL;
    const char *prefix = backends[sources->on.device].prefix;
    if (has && strncmp(has, prefix, strlen(prefix)) != 0) with->backend = backends[sources->on.device].name;
    return rc;
}

static int is_of_hub(const khub__get *get)
{
    return khub_name_kind_of(get->name) == KHUB_NAME_HUB && strncmp(get->name, "khub/", 5) != 0;
}

/* Those of this machine first, since they cost nothing to wait for. */
static int get_all(khub__sources *sources, khub__get **list, khub_error *err)
{
    size_t here = 0, all = 0;
    for (int of_hub = 0; of_hub <= 1; of_hub++) {
        for (size_t i = sources->done; i < sources->count; i++)
            if (is_of_hub(&sources->asked[i]->get) == of_hub) list[all++] = &sources->asked[i]->get;
        if (!of_hub) here = all;
    }
    int rc = khub__gets_here(&sources->with, list, here, err);
    return rc == KHUB_OK ? khub__gets_together(&sources->with, list + here, all - here, err) : rc;
}

int khub__sources_get(khub__sources *sources, khub_error *err)
{
    if (sources->done == sources->count) return KHUB_OK;
    khub__get **list = khub__malloc((sources->count - sources->done) * sizeof(*list));
    int rc = list ? choose_backend(sources, err) : khub__fail_memory(err, "getting kernels");
    if (rc == KHUB_OK) rc = get_all(sources, list, err);
    khub__free(list);
    for (; rc == KHUB_OK && sources->done < sources->count; sources->done++) {
        khub__asked *asked = sources->asked[sources->done];
        if (!asked->get.kernel) continue;
        asked->source = khub__source_of(sources->layers, asked->get.kernel);
        asked->get.kernel = NULL;
        if (!asked->source) rc = khub__fail_memory(err, "getting kernels");
    }
    return rc;
}
