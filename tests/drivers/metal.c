/* Metal and the runtime of Objective-C for tests: objects are what "objc_msgSend" makes of them. It is called
 * as functions of several types; arguments come in the same registers, so one with three of them will do. */
#include "behave.h"

#define EXPORTED __attribute__((visibility("default")))

EXPORTED void *MTLCopyAllDevices(void);
EXPORTED const char *sel_registerName(const char *name);
EXPORTED uintptr_t objc_msgSend(const char *object, const char *selector, uintptr_t argument);

void *MTLCopyAllDevices(void)
{
    misbehave();
    return behaves("none") ? NULL : (void *)(uintptr_t) "array";
}

const char *sel_registerName(const char *name)
{
    return name;
}

/* Selectors in the order of the calls. */
uintptr_t objc_msgSend(const char *object, const char *selector, uintptr_t argument)
{
    (void)object;
    if (!strcmp(selector, "count")) return 1;
    if (!strcmp(selector, "objectAtIndex:")) return (uintptr_t) "device";
    if (!strcmp(selector, "name")) return (uintptr_t) "string";
    if (!strcmp(selector, "UTF8String")) return (uintptr_t)(behaves("amd") ? "AMD Radeon Pro" : "Apple M3");
    if (!strcmp(selector, "supportsFamily:")) return !behaves("amd") && argument >= 1001 && argument <= 1009;
    if (!strcmp(selector, "recommendedMaxWorkingSetSize")) return (uintptr_t)17 << 30;
    return 0;
}
