/* What this machine is. */
#include "platform/platform.h"

#include "base/error.h"
#include "base/options.h"
#include "platform/accelerators.h"
#include "platform/cpu.h"
#include "platform/libraries.h"
#include "platform/system.h"
#include "platform/threads.h"
#include "platform/torch.h"

#include <stdio.h>

enum { PROBE_TIMEOUT_MS = 5000, MAX_LIBRARIES = 2 };

static void detect_cpu(khub_platform *p, const char *root)
{
    const char *names[KHUB__MAX_FEATURES];
    char model[64];
    p->cpu_model = khub__pool_text(&p->pool, khub__cpu_model(model, sizeof(model), root));
    size_t count = khub__cpu_features(names);
    p->features = khub__pool_take(&p->pool, count, sizeof(*p->features));
    if (p->features) {
        memcpy(p->features, names, count * sizeof(*names));
        p->feature_count = count;
    }
    p->l1d_bytes = khub__cpu_cache(1, root);
    p->l2_bytes = khub__cpu_cache(2, root);
    p->l3_bytes = khub__cpu_cache(3, root);
}

/* The least of cores, affinity mask and quota, and which of them it is. */
static void detect_threads(khub_platform *p, const char *root)
{
    unsigned affinity = khub__affinity_count();
    uint64_t quota = khub__cgroup_limit(root), rounded_up = (quota + 999) / 1000;
    p->cores = khub__cores_online(root);
    p->threads = p->cores;
    if (affinity && (!p->cores || affinity < p->cores)) {
        p->threads = affinity;
        p->threads_reason = khub__pool_textf(&p->pool, "affinity mask of %u", affinity);
    }
    if (quota && (!p->threads || rounded_up < p->threads)) {
        p->threads = (unsigned)rounded_up;
        p->threads_reason = khub__pool_textf(&p->pool, "cgroup quota of %g", (double)quota / 1000);
    }
}

/* What decides nothing: the C library and the processor. */
static void detect_rest(khub_platform *p, const char *root)
{
    p->glibc = khub__system_glibc();
    detect_cpu(p, root);
    detect_threads(p, root);
}

static void detect_libraries(khub_platform *p, const khub__places *places, khub__extent extent)
{
    p->libraries = khub__pool_take(&p->pool, MAX_LIBRARIES, sizeof(*p->libraries));
    if (!p->libraries) return;
    khub__find_tvm_ffi(&p->libraries[0], places, &p->pool);
    if (extent == KHUB__EVERYTHING) khub__find_cudart(&p->libraries[1], places, &p->pool);
    p->library_count = p->libraries[1].presence == KHUB_FOUND ? 2 : 1;
    if (p->libraries[0].version) khub__version_parse(&p->tvm_ffi, p->libraries[0].version);
}

/* The first accelerator that was found, else the CPU. */
static int choose_backend(khub_platform *p, khub_error *err)
{
    khub__version version = KHUB__VERSION_UNKNOWN;
    const khub__backend *backend = khub__backend_find("cpu");
    for (size_t i = p->accelerator_count; i-- > 0;) {
        const khub_accelerator_info *a = &p->accelerators[i];
        if (a->presence != KHUB_FOUND || !a->device_count) continue;
        backend = khub__backend_find(a->backend);
        khub__version_parse(&version, a->version ? a->version : "");
    }
    return khub__platform_use(p, backend, version, err);
}

static void detect_accelerators(khub_platform *p, const khub__places *places,
                                const khub_platform_options *options)
{
    uint32_t timeout_ms = options->probe_timeout_ms ? options->probe_timeout_ms : PROBE_TIMEOUT_MS;
    if (options->no_accelerators || !p->os) return;
    p->accelerators = khub__pool_take(&p->pool, KHUB__ACCELERATORS, sizeof(*p->accelerators));
    if (!p->accelerators) return;
    khub__find_accelerators(p->accelerators, p->os, khub__platform_library_of(p, "libcudart"), places,
                            timeout_ms, options->refresh, &p->pool);
    p->accelerator_count = KHUB__ACCELERATORS;
}

/* What kernels for the backend need may be more of libtorch than is there. */
int khub__platform_find_torch(khub_platform *p, khub_error *err)
{
    khub__places places;
    khub__torch torch;
    khub__places_open(&places, "", &p->pool);
    khub__find_torch(&torch, &places, &p->pool);
    khub__torch_check_backend(&torch, p->backend, &places, &p->pool);
    khub__places_close(&places);
    return khub__platform_take_torch(p, &torch, err);
}

static int detect(khub_platform *p, const char *root, khub__extent extent,
                  const khub_platform_options *options, khub_error *err)
{
    khub__places places;
    khub__system_names(&p->os, &p->arch, &p->pool);
    p->macos = khub__system_macos();
    if (extent == KHUB__EVERYTHING) detect_rest(p, root);
    khub__places_open(&places, root, &p->pool);
    places.brief = extent == KHUB__WHAT_DECIDES;
    detect_libraries(p, &places, extent);
    detect_accelerators(p, &places, options);
    khub__places_close(&places);
    int rc = p->pool.failed ? khub__fail_memory(err, "looking at this machine") : choose_backend(p, err);
    if (rc == KHUB_OK && extent == KHUB__EVERYTHING) rc = khub__platform_find_torch(p, err);
    return rc == KHUB_OK ? khub__platform_finish(p, err) : rc;
}

int khub__platform_look_below(khub_platform **out, const char *root, khub__extent extent,
                              const khub_platform_options *given, khub_error *err)
{
    khub_platform_options options;
    *out = NULL;
    int rc = khub__options(&options, sizeof(options), given, "khub_platform_options", err);
    if (rc != KHUB_OK) return rc;
    rc = khub__platform_new(out, err);
    if (rc == KHUB_OK) rc = detect(*out, root, extent, &options, err);
    if (rc != KHUB_OK) {
        khub_platform_free(*out);
        *out = NULL;
    }
    return rc;
}

int khub__platform_look(khub_platform **out, khub__extent extent, const khub_platform_options *options,
                        khub_error *err)
{
    return khub__platform_look_below(out, "", extent, options, err);
}

int khub_platform_detect(khub_platform **out, const khub_platform_options *options, khub_error *err)
{
    int missing = khub__given("khub_platform_detect", out != NULL, err);
    return missing == KHUB_OK ? khub__platform_look(out, KHUB__EVERYTHING, options, err) : missing;
}
