/* Level Zero (ze_api.h). */
#include "platform/probe/probe.h"

#include <stdio.h>

enum { ZE_SUCCESS = 0, ZE_UNINITIALIZED = 0x78000001 };
enum { STYPE_DEVICE_PROPERTIES = 0x3, STYPE_DEVICE_IP_VERSION = 0x1000f };
enum { TYPE_GPU = 1, FLAG_INTEGRATED = 1, MAX_DRIVERS = 8 };

/* ze_device_ip_version_ext_t */
typedef struct ip_version {
    int32_t stype;
    void *next;
    uint32_t value;
} ip_version;

/* ze_device_properties_t */
typedef struct properties {
    int32_t stype;
    void *next;
    int32_t type;
    uint32_t vendor_id, device_id, flags, subdevice_id, core_clock_rate;
    uint64_t max_mem_alloc_size;
    uint32_t max_hardware_contexts, max_command_queue_priority, threads_per_eu, eu_simd_width,
        eus_per_subslice, subslices_per_slice, slices;
    uint64_t timer_resolution;
    uint32_t timestamp_valid_bits, kernel_timestamp_valid_bits;
    uint8_t uuid[16];
    char name[256];
    char later[1024]; /* room for members that a later version may have */
} properties;

typedef struct loader {
    int (*init)(uint32_t flags);
    int (*drivers)(uint32_t *count, void **drivers);
    int (*devices)(void *driver, uint32_t *count, void **devices);
    int (*describe)(void *device, properties *properties);
} loader;

static int bind(loader *l, void *library, probe_answer *answer)
{
    return probe_symbol(&l->init, library, "zeInit", answer) ||
           probe_symbol(&l->drivers, library, "zeDriverGet", answer) ||
           probe_symbol(&l->devices, library, "zeDeviceGet", answer) ||
           probe_symbol(&l->describe, library, "zeDeviceGetProperties", answer);
}

/* ze_result_t; it has no function for the words. */
static const char *words_of(int code)
{
    static const struct {
        int code;
        const char *words;
    } table[] = {{0x70000001, " (device lost: it hung, was reset or removed, or its driver was updated)"},
                 {0x70000006, " (the device has to be reset)"},
                 {0x70010000, " (not permitted to this user)"},
                 {0x70010001, " (in use by somebody else)"},
                 {0x70020000, " (a library that it needs is missing)"},
                 {ZE_UNINITIALIZED, " (uninitialized)"},
                 {0x78000002, " (unsupported version: loader and driver don't fit together)"}};
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
        if (table[i].code == code) return table[i].words;
    return "";
}

static void fail(probe_answer *answer, const char *function, int code)
{
    answer->no_device = code == ZE_UNINITIALIZED; /* it says this for every cause: the caller looks closer */
    probe_say(answer, "broken", "%s says 0x%x%s", function, (unsigned)code, words_of(code));
}

/* "12.60.7": Intel's GMDID, architecture in bits 22 to 31, release in 14 to 21, revision in 0 to 5. */
static void put_arch(probe_device *device, uint32_t ip)
{
    if (ip) snprintf(device->arch, sizeof(device->arch), "%u.%u.%u", ip >> 22, ip >> 14 & 0xff, ip & 0x3f);
}

/* 1 for a GPU of the supported class. */
static int describe(const loader *l, void *handle, probe_answer *answer)
{
    ip_version ip = {.stype = STYPE_DEVICE_IP_VERSION};
    static properties p;
    memset(&p, 0, sizeof(p));
    p.stype = STYPE_DEVICE_PROPERTIES;
    p.next = &ip;
    if (l->describe(handle, &p) != ZE_SUCCESS || p.type != TYPE_GPU) return 0;
    probe_device *device = probe_next(answer);
    if (!device) return 0;
    device->integrated = (p.flags & FLAG_INTEGRATED) != 0;
    snprintf(device->name, sizeof(device->name), "%.255s", p.name);
    put_arch(device, ip.value);
    return !(p.flags & FLAG_INTEGRATED);
}

static int describe_all(const loader *l, void *driver, probe_answer *answer)
{
    void *devices[PROBE_MAX_DEVICES];
    uint32_t count = PROBE_MAX_DEVICES;
    int supported = 0;
    probe_doing("zeDeviceGet");
    if (l->devices(driver, &count, devices) != ZE_SUCCESS || count > PROBE_MAX_DEVICES) return 0;
    for (uint32_t i = 0; i < count; i++)
        supported += describe(l, devices[i], answer);
    return supported;
}

void probe_xpu(probe_answer *answer, void *library)
{
    loader l;
    void *drivers[MAX_DRIVERS];
    uint32_t count = MAX_DRIVERS;
    int rc, supported = 0;
    if (bind(&l, library, answer)) return;
    probe_doing("zeInit");
    if ((rc = l.init(0)) != ZE_SUCCESS) {
        fail(answer, "zeInit", rc);
        return;
    }
    probe_doing("zeDriverGet");
    if ((rc = l.drivers(&count, drivers)) != ZE_SUCCESS || count > MAX_DRIVERS) {
        fail(answer, "zeDriverGet", rc);
        return;
    }
    for (uint32_t i = 0; i < count; i++)
        supported += describe_all(&l, drivers[i], answer);
    answer->no_device = answer->device_count == 0;
    if (supported)
        answer->presence = "found";
    else if (answer->device_count)
        probe_say(answer, "broken", "only integrated GPUs, which XPU builds don't support");
    else
        probe_say(answer, "absent", "Level Zero sees no GPU");
}
