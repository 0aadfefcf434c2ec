/* libamdhip64.so.6 for tests. */
#include "behave.h"

int hipRuntimeGetVersion(int *version);
int hipGetDeviceCount(int *count);
int hipGetDevicePropertiesR0600(void *properties, int device);
int hipDeviceTotalMem(size_t *bytes, int device);
int hipDeviceGetAttribute(int *value, int attribute, int device);
const char *hipGetErrorString(int code);

int hipRuntimeGetVersion(int *version)
{
    *version = 60443484; /* HIP 6.4 */
    return 0;
}

int hipGetDeviceCount(int *count)
{
    leave_trace("hipGetDeviceCount");
    misbehave();
    *count = behaves("none") ? 0 : 2;
    return behaves("none") ? 100 : 0;
}

/* The name first; the architecture at 1160, as in ROCm 6; 1472 bytes in all. */
int hipGetDevicePropertiesR0600(void *properties, int device)
{
    char *bytes = properties;
    memset(bytes, 0, 1472);
    strcpy(bytes, device ? "AMD Radeon Graphics gfx1036" : "AMD Instinct MI300X");
    strcpy(bytes + 1160, device ? "gfx1036" : "gfx942:sramecc+:xnack-");
    return 0;
}

int hipDeviceTotalMem(size_t *bytes, int device)
{
    *bytes = (size_t)(device ? 1 : 192) << 30;
    return 0;
}

int hipDeviceGetAttribute(int *value, int attribute, int device)
{
    *value = attribute == 16 && device == 1;
    return attribute == 16 ? 0 : 1;
}

const char *hipGetErrorString(int code)
{
    return code == 100 ? "no ROCm-capable device is detected" : "unknown error";
}
