/* libze_loader.so.1 for tests. */
#include "behave.h"

int zeInit(uint32_t flags);
int zeDriverGet(uint32_t *count, void **drivers);
int zeDeviceGet(void *driver, uint32_t *count, void **devices);
int zeDeviceGetProperties(void *device, void *properties);

int zeInit(uint32_t flags)
{
    leave_trace("zeInit");
    misbehave();
    (void)flags;
    return behaves("uninitialized") ? 0x78000001 : 0;
}

int zeDriverGet(uint32_t *count, void **drivers)
{
    if (*count) drivers[0] = drivers;
    *count = behaves("none") ? 0 : 1;
    return 0;
}

int zeDeviceGet(void *driver, uint32_t *count, void **devices)
{
    (void)driver;
    if (*count) devices[0] = devices;
    *count = 1;
    return 0;
}

/* ze_device_properties_t: type at 16, flags at 28, name at 112; the extension's value at 16 of what `pNext`
 * (at 8) points to. */
int zeDeviceGetProperties(void *device, void *properties)
{
    char *bytes = properties, *next;
    uint32_t gpu = 1, flags = behaves("integrated") ? 1 : 0, ip = 12u << 22 | 60u << 14 | 7u;
    (void)device;
    memcpy(&next, bytes + 8, sizeof(next));
    memcpy(bytes + 16, &gpu, 4);
    memcpy(bytes + 28, &flags, 4);
    strcpy(bytes + 112, "Fake Data Center GPU Max");
    if (next) memcpy(next + 16, &ip, 4);
    return 0;
}
