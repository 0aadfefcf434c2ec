/* Metal, through the runtime of Objective-C (objc/message.h, Metal/MTLDevice.h): a message is sent by calling
 * objc_msgSend as a function of the method's own type. */
#include "platform/probe/probe.h"

#include <stdio.h>

/* MTLGPUFamily: Apple1 is 1001. Kernels need what M1 has, Apple7. */
enum { FAMILY_APPLE = 1000, FAMILY_M1 = 7, FAMILY_LATEST = 32 };

typedef void *id;
typedef struct metal {
    id (*devices)(void); /* an NSArray, ours */
    id (*selector)(const char *name);
    void (*send)(void);
} metal;

static int bind(metal *m, void *library, probe_answer *answer)
{
    return probe_symbol(&m->devices, library, "MTLCopyAllDevices", answer) ||
           probe_symbol(&m->selector, library, "sel_registerName", answer) ||
           probe_symbol(&m->send, library, "objc_msgSend", answer);
}

static id get(const metal *m, id object, const char *name)
{
    return ((id(*)(id, id))m->send)(object, m->selector(name));
}

static uint64_t get_number(const metal *m, id object, const char *name)
{
    return ((uint64_t(*)(id, id))m->send)(object, m->selector(name));
}

static id get_at(const metal *m, id array, uint64_t i)
{
    return ((id(*)(id, id, uint64_t))m->send)(array, m->selector("objectAtIndex:"), i);
}

static int is_of_family(const metal *m, id device, int64_t family)
{
    signed char yes =
        ((signed char (*)(id, id, int64_t))m->send)(device, m->selector("supportsFamily:"), family);
    return yes != 0;
}

/* The highest one of Apple's GPU families; 0: another vendor's GPU. */
static int family_of(const metal *m, id device)
{
    int family = FAMILY_LATEST;
    while (family > 0 && !is_of_family(m, device, FAMILY_APPLE + family))
        family--;
    return family;
}

/* 1 for a GPU that kernels are built for. */
static int describe(const metal *m, id handle, probe_device *device)
{
    id name = get(m, handle, "name");
    const char *text = name ? (const char *)get(m, name, "UTF8String") : NULL;
    int family = family_of(m, handle);
    snprintf(device->name, sizeof(device->name), "%.255s", text ? text : "");
    if (family) snprintf(device->arch, sizeof(device->arch), "apple%d", family);
    device->memory_bytes = get_number(m, handle, "recommendedMaxWorkingSetSize");
    return family >= FAMILY_M1;
}

void probe_metal(probe_answer *answer, void *library)
{
    metal m;
    int supported = 0;
    if (bind(&m, library, answer)) return;
    probe_doing("MTLCopyAllDevices");
    id devices = m.devices();
    uint64_t count = devices ? get_number(&m, devices, "count") : 0;
    for (uint64_t i = 0; i < count; i++) {
        probe_device *device = probe_next(answer);
        if (device) supported += describe(&m, get_at(&m, devices, i), device);
    }
    answer->no_device = count == 0;
    if (supported)
        answer->presence = "found";
    else if (count)
        probe_say(answer, "broken", "only GPUs that aren't Apple's: kernels are built for M1 and later");
    else
        probe_say(answer, "absent", "Metal sees no device");
}
