/* The CUDA driver API. Numbers are those of its documentation (cuda.h). */
#include "platform/probe/probe.h"

#include <stdio.h>

enum { CUDA_SUCCESS = 0, CUDA_ERROR_STUB_LIBRARY = 34, CUDA_ERROR_NO_DEVICE = 100 };
enum { ATTRIBUTE_CAPABILITY_MAJOR = 75, ATTRIBUTE_CAPABILITY_MINOR = 76 };

typedef struct driver {
    int (*init)(unsigned flags);
    int (*version)(int *version);
    int (*count)(int *count);
    int (*get)(int *device, int ordinal);
    int (*name)(char *name, int bytes, int device);
    int (*attribute)(int *value, int attribute, int device);
    int (*memory)(size_t *bytes, int device);
    int (*words)(int code, const char **words); /* these may be NULL */
    int (*uuid)(unsigned char uuid[16], int device);
} driver;

static int bind(driver *d, void *library, probe_answer *answer)
{
    memset(d, 0, sizeof(*d));
    void *words = probe_find(library, "cuGetErrorString");
    memcpy(&d->words, &words, sizeof(words));
    void *uuid = probe_find(library, "cuDeviceGetUuid_v2"); /* since 11.4; of a MIG slice its own */
    if (!uuid) uuid = probe_find(library, "cuDeviceGetUuid");
    memcpy(&d->uuid, &uuid, sizeof(uuid));
    return probe_symbol(&d->init, library, "cuInit", answer) ||
           probe_symbol(&d->version, library, "cuDriverGetVersion", answer) ||
           probe_symbol(&d->count, library, "cuDeviceGetCount", answer) ||
           probe_symbol(&d->get, library, "cuDeviceGet", answer) ||
           probe_symbol(&d->name, library, "cuDeviceGetName", answer) ||
           probe_symbol(&d->attribute, library, "cuDeviceGetAttribute", answer) ||
           probe_symbol(&d->memory, library, "cuDeviceTotalMem_v2", answer);
}

/* What its documentation says to do about an error; "" where that says nothing. */
static const char *advice(int code)
{
    static const struct {
        int code;
        const char *words;
    } table[] = {
        {35, ": the driver is older than what asks it: update it"},
        {46, ": another process has the device for itself, or its compute mode forbids this one"},
        {214, ": the device's memory has an error that can't be corrected: reset it"},
        {304, ": the operating system refused: /dev/nvidia* may not be permitted to this user"},
        {802, ": its fabric isn't started yet: the service nvidia-fabricmanager has to run"},
        {803, ": library and kernel module are of different versions: reboot, or load the module anew"},
        {804, ": its forward compatibility package (cuda-compat) isn't for this device: take it out of the "
              "loader's path"},
        {999, ": often after the machine slept: load the kernel module nvidia_uvm anew"},
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
        if (table[i].code == code) return table[i].words;
    return "";
}

static void fail(probe_answer *answer, const driver *d, const char *function, int code)
{
    const char *words = NULL;
    if (code == CUDA_ERROR_STUB_LIBRARY) {
        probe_say(answer, "absent", "is the toolkit's stub, not a driver (%s says %d)", function, code);
        return;
    }
    if (code == CUDA_ERROR_NO_DEVICE) {
        answer->no_device = 1;
        probe_say(answer, "absent", "the driver sees no device (%s says %d)", function, code);
        return;
    }
    if (!d->words || d->words(code, &words) != CUDA_SUCCESS || !words) words = "no words for it";
    probe_say(answer, "broken", "%s says %d: %s%s", function, code, words, advice(code));
}

/* "GPU-8932f937-d72c-4106-c12f-20bd9faed9f6", as CUDA_VISIBLE_DEVICES takes it. */
static void put_uuid(const driver *d, probe_device *device, int handle)
{
    unsigned char u[16];
    if (!d->uuid || d->uuid(u, handle) != CUDA_SUCCESS) return;
    const char *kind = strstr(device->name, " MIG ") ? "MIG" : "GPU";
    snprintf(device->uuid, sizeof(device->uuid),
             "%s-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", kind, u[0], u[1],
             u[2], u[3], u[4], u[5], u[6], u[7], u[8], u[9], u[10], u[11], u[12], u[13], u[14], u[15]);
}

/* 0, or -1 after saying what failed. */
static int describe(const driver *d, int ordinal, probe_device *device, probe_answer *answer)
{
    int handle = 0, major = 0, minor = 0, rc;
    size_t bytes = 0;
    if ((rc = d->get(&handle, ordinal)) != CUDA_SUCCESS) return fail(answer, d, "cuDeviceGet", rc), -1;
    if ((rc = d->attribute(&major, ATTRIBUTE_CAPABILITY_MAJOR, handle)) != CUDA_SUCCESS ||
        (rc = d->attribute(&minor, ATTRIBUTE_CAPABILITY_MINOR, handle)) != CUDA_SUCCESS)
        return fail(answer, d, "cuDeviceGetAttribute", rc), -1;
    if (d->name(device->name, (int)sizeof(device->name) - 1, handle) != CUDA_SUCCESS) device->name[0] = 0;
    if (d->memory(&bytes, handle) == CUDA_SUCCESS) device->memory_bytes = bytes;
    put_uuid(d, device, handle);
    snprintf(device->arch, sizeof(device->arch), "%d.%d", major, minor);
    return 0;
}

void probe_cuda(probe_answer *answer, void *library)
{
    driver d;
    int rc, version = 0, count = 0;
    if (bind(&d, library, answer)) return;
    probe_doing("cuInit");
    if ((rc = d.init(0)) != CUDA_SUCCESS) {
        fail(answer, &d, "cuInit", rc);
        return;
    }
    probe_doing("asking for devices");
    if (d.version(&version) == CUDA_SUCCESS && version >= 1000) /* 12080 is 12.8 */
        snprintf(answer->version, sizeof(answer->version), "%d.%d", version / 1000, version % 1000 / 10);
    if ((rc = d.count(&count)) != CUDA_SUCCESS || count <= 0) {
        fail(answer, &d, "cuDeviceGetCount", rc ? rc : CUDA_ERROR_NO_DEVICE);
        return;
    }
    for (int i = 0; i < count; i++) {
        probe_device *device = probe_next(answer);
        if (!device) break;
        if (describe(&d, i, device, answer)) return;
    }
    answer->presence = "found";
}
