/* Metal and the runtime of Objective-C for tests: an object is a number, and a device NAME|FAMILY|BYTES.
 * objc_msgSend is called as functions of several types; arguments come in the same registers, so one with
 * three of them will do. */
#define USUAL "device Apple M3|9|18253611008\n"
#include "describe.h"

void *MTLCopyAllDevices(void);
const char *sel_registerName(const char *name);
uintptr_t objc_msgSend(uintptr_t object, const char *selector, uintptr_t argument);

void *MTLCopyAllDevices(void)
{
    act("MTLCopyAllDevices", 1);
    return devices() ? (void *)(uintptr_t)1000 : NULL;
}

const char *sel_registerName(const char *name)
{
    return name;
}

/* Selectors in the order of the calls. A device is 1 + its index, and so is its name. */
uintptr_t objc_msgSend(uintptr_t object, const char *selector, uintptr_t argument)
{
    static char name[256];
    int device = (int)object - 1;
    if (!strcmp(selector, "count")) return (uintptr_t)devices();
    if (!strcmp(selector, "objectAtIndex:")) return argument + 1;
    if (!strcmp(selector, "name")) return object;
    if (!strcmp(selector, "UTF8String")) {
        put_name(name, sizeof(name), device);
        return (uintptr_t)name;
    }
    if (!strcmp(selector, "supportsFamily:"))
        return argument > 1000 && argument <= 1000 + (uintptr_t)atoi(device_field(device, 1));
    if (!strcmp(selector, "recommendedMaxWorkingSetSize"))
        return (uintptr_t)strtoull(device_field(device, 2), NULL, 10);
    return 0;
}
