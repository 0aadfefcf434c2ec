/* The HIP runtime of ROCm (hip_runtime_api.h). */
#include "platform/probe/probe.h"

#include <stdio.h>

enum { ATTRIBUTE_INTEGRATED = 16 }; /* since ROCm 5 */
enum { HIP_SUCCESS = 0, HIP_ERROR_NO_DEVICE = 100, PROPERTIES_BYTES = 16384 };

typedef struct runtime {
    int (*version)(int *version);
    int (*count)(int *count);
    int (*properties)(void *properties, int device);
    int (*memory)(size_t *bytes, int device);
    const char *(*words)(int code);
    int (*attribute)(int *value, int attribute, int device); /* may be NULL */
} runtime;

static int bind(runtime *r, void *library, probe_answer *answer)
{
    /* From ROCm 6 on the old name is an old layout; both begin with the name and hold the architecture. */
    const char *properties = probe_find(library, "hipGetDevicePropertiesR0600")
                                 ? "hipGetDevicePropertiesR0600"
                                 : "hipGetDeviceProperties";
    void *attribute = probe_find(library, "hipDeviceGetAttribute");
    memcpy(&r->attribute, &attribute, sizeof(attribute));
    return probe_symbol(&r->version, library, "hipRuntimeGetVersion", answer) ||
           probe_symbol(&r->count, library, "hipGetDeviceCount", answer) ||
           probe_symbol(&r->properties, library, properties, answer) ||
           probe_symbol(&r->memory, library, "hipDeviceTotalMem", answer) ||
           probe_symbol(&r->words, library, "hipGetErrorString", answer);
}

static void fail(probe_answer *answer, const runtime *r, const char *function, int code)
{
    const char *words = code == HIP_ERROR_NO_DEVICE ? NULL : r->words(code);
    answer->no_device = code == HIP_ERROR_NO_DEVICE;
    if (answer->no_device)
        probe_say(answer, "absent", "the runtime sees no device (%s says %d)", function, code);
    else
        probe_say(answer, "broken", "%s says %d: %s", function, code, words ? words : "no words for it");
}

/* Where the architecture stands in the properties moved between versions of HIP, and more members followed;
 * the text "gfx…" behind a NUL is found in any of them. */
static const char *find_arch(const char *properties)
{
    for (const char *at = properties + 256; at < properties + PROPERTIES_BYTES - 4; at++)
        if (!at[-1] && !strncmp(at, "gfx", 3)) return at;
    return "";
}

static int describe(const runtime *r, int ordinal, probe_device *device, probe_answer *answer)
{
    static char properties[PROPERTIES_BYTES + 1];
    size_t bytes = 0;
    memset(properties, 0, sizeof(properties));
    int rc = r->properties(properties, ordinal);
    if (rc != HIP_SUCCESS) return fail(answer, r, "hipGetDeviceProperties", rc), -1;
    int integrated = 0;
    if (r->attribute && r->attribute(&integrated, ATTRIBUTE_INTEGRATED, ordinal) != HIP_SUCCESS)
        integrated = 0;
    device->integrated = integrated == 1;
    snprintf(device->name, sizeof(device->name), "%.255s", properties);
    snprintf(device->arch, sizeof(device->arch), "%.127s", find_arch(properties));
    if (r->memory(&bytes, ordinal) == HIP_SUCCESS) device->memory_bytes = bytes;
    return 0;
}

void probe_rocm(probe_answer *answer, void *library)
{
    runtime r;
    int rc, version = 0, count = 0;
    if (bind(&r, library, answer)) return;
    probe_doing("hipGetDeviceCount");
    rc = r.count(&count);
    if (rc != HIP_SUCCESS || count <= 0) {
        fail(answer, &r, "hipGetDeviceCount", rc ? rc : HIP_ERROR_NO_DEVICE);
        return;
    }
    if (r.version(&version) == HIP_SUCCESS && version >= 10000000) /* 60443484 is 6.4 */
        snprintf(answer->version, sizeof(answer->version), "%d.%d", version / 10000000,
                 version / 100000 % 100);
    for (int i = 0; i < count; i++) {
        probe_device *device = probe_next(answer);
        if (!device) break;
        probe_doing("hipGetDeviceProperties");
        if (describe(&r, i, device, answer)) return;
    }
    answer->presence = "found";
}
