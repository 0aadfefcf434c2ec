/* libze_loader.so.1 for tests. A device is NAME|ARCHITECTURE.RELEASE.REVISION|1 when it is integrated. */
#define USUAL "device Fake Data Center GPU Max|12.60.7|0\n"
#include "describe.h"

int zeInit(uint32_t flags);
int zeDriverGet(uint32_t *count, void **drivers);
int zeDeviceGet(void *driver, uint32_t *count, void **handles);
int zeDeviceGetProperties(void *device, void *properties);

int zeInit(uint32_t flags)
{
    (void)flags;
    return act("zeInit", 1);
}

int zeDriverGet(uint32_t *count, void **drivers)
{
    if (*count) drivers[0] = drivers;
    *count = devices() ? 1 : 0;
    return act("zeDriverGet", 0);
}

int zeDeviceGet(void *driver, uint32_t *count, void **handles)
{
    (void)driver;
    for (uint32_t i = 0; i < *count; i++)
        handles[i] = (void *)(uintptr_t)(i + 1);
    *count = (uint32_t)devices();
    return act("zeDeviceGet", 0);
}

/* ze_device_properties_t: type at 16, flags at 28, name at 112; the extension's value at 16 of what `pNext`
 * (at 8) points to. */
int zeDeviceGetProperties(void *device, void *properties)
{
    char *bytes = properties, *next;
    int index = (int)(uintptr_t)device - 1;
    uint32_t gpu = 1, flags = (uint32_t)atoi(device_field(index, 2)), a = 0, b = 0, c = 0;
    sscanf(device_field(index, 1), "%u.%u.%u", &a, &b, &c);
    uint32_t ip = a << 22 | b << 14 | c;
    memcpy(&next, bytes + 8, sizeof(next));
    memcpy(bytes + 16, &gpu, 4);
    memcpy(bytes + 28, &flags, 4);
    put_name(bytes + 112, 256, index);
    if (next) memcpy(next + 16, &ip, 4);
    return act("zeDeviceGetProperties", 0);
}
