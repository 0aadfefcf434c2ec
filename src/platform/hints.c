#include "platform/hints.h"

#include "base/file.h"
#include "platform/nodes.h"
#include "platform/version.h"

#include <stdlib.h>

/* Variables that hide devices, as the drivers read them. khub takes the driver's word for what is left: a
 * value may be a number, a UUID, or nonsense. */
static const struct mask {
    const char *backend, *variable;
} masks[] = {{"cuda", "CUDA_VISIBLE_DEVICES"}, {"rocm", "ROCR_VISIBLE_DEVICES"},
             {"rocm", "HIP_VISIBLE_DEVICES"},  {"rocm", "CUDA_VISIBLE_DEVICES"},
             {"xpu", "ZE_AFFINITY_MASK"},      {"cann", "ASCEND_RT_VISIBLE_DEVICES"}};
enum { MASKS = sizeof(masks) / sizeof(*masks) };

static void add(khub_accelerator_info *a, khub__pool *pool, const char *more)
{
    if (!more) return;
    a->reason = a->reason ? khub__pool_textf(pool, "%s; %s", a->reason, more) : more;
}

/* Only CUDA documents that a variable that is set and empty hides everything; the others are asked. */
const char *khub__hint_hidden(const char *backend)
{
    const char *value = getenv("CUDA_VISIBLE_DEVICES");
    if (strcmp(backend, "cuda") != 0 || !value || *value) return NULL;
    return "hidden by CUDA_VISIBLE_DEVICES (it is set and empty)";
}

static void hint_masks(khub_accelerator_info *a, khub__pool *pool)
{
    int set = 0;
    for (size_t i = 0; i < MASKS; i++) {
        const char *value = strcmp(masks[i].backend, a->backend) == 0 ? getenv(masks[i].variable) : NULL;
        if (!value) continue;
        set++;
        add(a, pool,
            khub__pool_textf(pool, !strcmp(value, "-1") ? "hidden by %s=%s" : "%s is \"%s\" and may hide it",
                             masks[i].variable, value));
    }
    if (set > 1) add(a, pool, "each of these selects from what the one before leaves");
}

/* "toolkit files found": they prove nothing, but explain what a user sees. */
static void hint_files(khub_accelerator_info *a, const khub_library_info *cudart, const char *root,
                       khub__pool *pool)
{
    static const struct {
        const char *backend, *dir;
    } toolkits[] = {{"cuda", "/usr/local/cuda"},
                    {"rocm", "/opt/rocm"},
                    {"xpu", "/opt/intel/oneapi"},
                    {"cann", "/usr/local/Ascend/ascend-toolkit"},
                    {"neuron", "/opt/aws/neuron"}};
    if (!strcmp(a->backend, "cuda") && cudart && cudart->presence == KHUB_FOUND) {
        add(a, pool,
            khub__pool_textf(pool, "CUDA runtime %s found (%s), which needs a driver and a device",
                             cudart->version ? cudart->version : "of unknown version",
                             cudart->path ? cudart->path : ""));
        return;
    }
    for (size_t i = 0; i < sizeof(toolkits) / sizeof(*toolkits); i++) {
        if (strcmp(toolkits[i].backend, a->backend) != 0) continue;
        const char *dir = khub__pool_textf(pool, "%s%s", root, toolkits[i].dir);
        if (dir && khub__file_kind(dir) == KHUB__FILE_DIRECTORY)
            add(a, pool,
                khub__pool_textf(pool, "toolkit files found in %s, which prove nothing", toolkits[i].dir));
    }
}

/* AMD's devices are behind /dev/kfd, which only a group may open on most systems. */
static void hint_kfd(khub_accelerator_info *a, const char *root, khub__pool *pool)
{
    const char *kfd = khub__pool_textf(pool, "%s/dev/kfd", root);
    if (!kfd) return;
    if (khub__file_kind(kfd) == KHUB__FILE_NONE) {
        add(a, pool, "/dev/kfd isn't there: the amdgpu kernel driver isn't loaded");
    } else if (!khub__file_may_use(kfd)) {
        a->presence = KHUB_BROKEN;
        add(a, pool, "/dev/kfd isn't permitted to this user: join its group, usually \"render\"");
    }
}

/* Level Zero has one error for every cause; what is in /dev and in reach of the loader tells them apart. */
static void hint_level_zero(khub_accelerator_info *a, const char *root, khub__pool *pool)
{
    const char *node = khub__first_node(root, "/dev/dri", "renderD", pool);
    if (!node) {
        a->presence = KHUB_ABSENT;
        add(a, pool, "no device: /dev/dri has no render node");
    } else if (!khub__file_may_use(node)) {
        add(a, pool,
            khub__pool_textf(pool, "%s isn't permitted to this user: join its group, usually \"render\"",
                             node));
    } else {
        add(a, pool,
            khub__pool_textf(pool,
                             "%s is there and permitted: Intel's driver (libze_intel_gpu.so.1) is missing, "
                             "or older than the loader, or the GPU isn't Intel's",
                             node));
    }
}

static void hint_davinci(khub_accelerator_info *a, const char *root, khub__pool *pool)
{
    const char *node = khub__first_node(root, "/dev", "davinci", pool);
    if (!node)
        add(a, pool,
            "/dev has no davinci0 or the like: the driver isn't loaded, or the container wasn't given it");
    else if (!khub__file_may_use(node))
        add(a, pool,
            khub__pool_textf(pool, "%s isn't permitted to this user: join its group, usually \"HwHiAiUser\"",
                             node));
}

/* The kernel's driver needs no runtime to know its devices. */
static void hint_topology(khub_accelerator_info *a, const char *root, khub__pool *pool)
{
    const char *list = khub__kfd_list(root, pool);
    if (list) add(a, pool, khub__pool_textf(pool, "the kernel's driver lists %s", list));
}

/* What is worth knowing of devices that work. */
static void hint_found(khub_accelerator_info *a, khub__pool *pool)
{
    const char *override = getenv("HSA_OVERRIDE_GFX_VERSION");
    if (!strcmp(a->backend, "rocm") && override)
        add(a, pool,
            khub__pool_textf(pool, "HSA_OVERRIDE_GFX_VERSION is %s: archs are what it makes of them",
                             override));
    for (size_t i = 0; !strcmp(a->backend, "cuda") && i < a->device_count; i++)
        if (a->devices[i].arch && atoi(a->devices[i].arch) < 7)
            add(a, pool,
                khub__pool_textf(pool, "kernels of the Hub are built for capability 7.0 and later, %s has %s",
                                 a->devices[i].name ? a->devices[i].name : "a device", a->devices[i].arch));
    if (a->version || !khub__backend_find(a->backend)->versioned) return;
    add(a, pool, "the version that builds are named after isn't known");
    if (!strcmp(a->backend, "cann") && !getenv("ASCEND_HOME_PATH"))
        add(a, pool, "ASCEND_HOME_PATH isn't set: CANN's set_env.sh does it");
}

void khub__hint(khub_accelerator_info *a, int no_device, const khub_library_info *cudart, const char *root,
                khub__pool *pool)
{
    if (a->presence == KHUB_FOUND) {
        hint_found(a, pool);
        return;
    }
    if (no_device && !strcmp(a->backend, "rocm")) hint_kfd(a, root, pool);
    if (no_device && !strcmp(a->backend, "xpu")) hint_level_zero(a, root, pool);
    if (no_device && !strcmp(a->backend, "cann")) hint_davinci(a, root, pool);
    if (!strcmp(a->backend, "rocm")) hint_topology(a, root, pool);
    if (no_device) hint_masks(a, pool);
    hint_files(a, cudart, root, pool);
}
