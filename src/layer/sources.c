#include "layer/sources.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/options.h"
#include "kernel/machine.h"

enum { MAX_KERNELS = 65536 };

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
    const char *device = options->device || options->gpu ? options->device : "cpu";
    if (rc == KHUB_OK) rc = khub__on_take(&(*out)->on, device, options->gpu, err);
    if (rc == KHUB_OK && !options->mapping) rc = khub__mapping_default(&(*out)->own_mapping, err);
    (*out)->mapping = options->mapping ? options->mapping : (*out)->own_mapping;
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
    for (size_t i = 0; i < KHUB__DEVICES; i++)
        khub__index_free(&sources->of_device[i].by_name);
    khub_mapping_free(sources->own_mapping);
    khub__free(sources);
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

/* What the platform says of a device. It may have another one in mind than slots are on: then of its
 * capability nothing is known. What isn't on the CPU gets builds for its own backend alone. */
static int know(khub__sources *sources, khub__device device, khub_error *err)
{
    struct khub__of_device *of = &sources->of_device[device];
    const khub_platform *platform = sources->with.platform;
    int rc = of->known || platform ? KHUB_OK : khub__this_machine(&platform, 0, err);
    if (of->known || rc != KHUB_OK) return rc;
    const char *has = khub_platform_backend(platform), *prefix = backends[device].prefix;
    int is_its_own = has && strncmp(has, prefix, strlen(prefix)) == 0;
    if (has && (!is_its_own || device != KHUB__DEVICE_CPU)) of->backend = backends[device].name;
    of->capability = KHUB__CAPABILITY_UNKNOWN;
    if (sources->on.device == device) of->capability = sources->on.capability;
    if (of->capability == KHUB__CAPABILITY_UNKNOWN && is_its_own)
        of->capability = khub__capability_of(khub_platform_device_arch(platform, 0));
    of->known = 1;
    return KHUB_OK;
}

int khub__sources_on(khub__on *on, khub__sources *sources, const khub_slot *slot, khub_error *err)
{
    *on = slot->on.device == KHUB__DEVICES ? sources->on : slot->on;
    if (on->capability != KHUB__CAPABILITY_UNKNOWN || !khub__has_capabilities(on->device)) return KHUB_OK;
    int rc = know(sources, on->device, err);
    if (rc == KHUB_OK) on->capability = sources->of_device[on->device].capability;
    return rc;
}

int khub__sources_ask(khub__asked **out, khub__sources *sources, const char *name, khub__device device,
                      khub_error *err)
{
    struct khub__of_device *of = &sources->of_device[device];
    int64_t at = khub__index_find(&of->by_name, name);
    *out = at >= 0 ? sources->asked[at] : NULL;
    if (*out) return KHUB_OK;
    int rc = know(sources, device, err);
    if (rc != KHUB_OK) return rc;
    khub__asked *asked = khub__calloc(1, sizeof(*asked));
    if (!asked ||
        khub__grow((void **)&sources->asked, &sources->capacity, sources->count + 1, sizeof(khub__asked *),
                   MAX_KERNELS) ||
        khub__index_add(&of->by_name, name, (uint32_t)sources->count)) {
        khub__free(asked);
        return khub__fail_memory(err, "getting kernels");
    }
    asked->get.name = name;
    asked->get.backend = of->backend;
    *out = sources->asked[sources->count++] = asked;
    return KHUB_OK;
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
    int rc = list ? get_all(sources, list, err) : khub__fail_memory(err, "getting kernels");
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
