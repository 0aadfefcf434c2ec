/* libamdhip64 for tests. A device is NAME|ARCHITECTURE|BYTES|1 when it is inside the CPU. How its properties
 * are laid out, and how long they are, differs from version to version: `layout OFFSET BYTES`. */
#define USUAL                                                                                                \
    "version 60443484\n"                                                                                     \
    "layout 1160 1472\n"                                                                                     \
    "device AMD Instinct MI300X|gfx942:sramecc+:xnack-|206158430208|0\n"                                     \
    "device AMD Radeon Graphics gfx1036|gfx1036|1073741824|1\n"
#include "describe.h"

#ifdef BEFORE_ROCM_6
#define PROPERTIES hipGetDeviceProperties
#else
#define PROPERTIES hipGetDevicePropertiesR0600
#endif

int hipRuntimeGetVersion(int *version);
int hipGetDeviceCount(int *count);
int PROPERTIES(void *properties, int device);
int hipDeviceTotalMem(size_t *bytes, int device);
int hipDeviceGetAttribute(int *value, int attribute, int device);
const char *hipGetErrorString(int code);

int hipRuntimeGetVersion(int *version)
{
    *version = number("version", 0);
    return act("hipRuntimeGetVersion", 0);
}

int hipGetDeviceCount(int *count)
{
    int rc = act("hipGetDeviceCount", 1);
    *count = devices();
    return rc;
}

int PROPERTIES(void *properties, int device)
{
    char *bytes = properties;
    int offset = 1160, length = 1472;
    const char *layout = line("layout", 0);
    if (layout) sscanf(layout, "%d %d", &offset, &length);
    memset(bytes, 0, (size_t)length);
    put_name(bytes, 256, device);
    if (offset < length) strcpy(bytes + offset, device_field(device, 1));
    return act("hipGetDeviceProperties", 0);
}

int hipDeviceTotalMem(size_t *bytes, int device)
{
    *bytes = (size_t)strtoull(device_field(device, 2), NULL, 10);
    return act("hipDeviceTotalMem", 0);
}

int hipDeviceGetAttribute(int *value, int attribute, int device)
{
    *value = attribute == 16 && atoi(device_field(device, 3));
    return attribute == 16 ? act("hipDeviceGetAttribute", 0) : 1;
}

const char *hipGetErrorString(int code)
{
    return code == 100   ? "no ROCm-capable device is detected"
           : code == 101 ? "invalid device ordinal"
                         : "unknown error";
}
