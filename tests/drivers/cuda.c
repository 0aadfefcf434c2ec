/* libcuda.so.1 for tests: numbers as in CUDA's documentation. A device is NAME|CAPABILITY|BYTES|UUID's first
 * byte. */
#define USUAL                                                                                                \
    "version 12080\n"                                                                                        \
    "device Fake \"Ampere\" \\ \xC3\xA4|8.6|25769803776|70\n"                                                \
    "device Fake Blackwell|12.0|34359738368|71\n"
#include "describe.h"

enum { HANDLE = 70 }; /* a handle isn't an ordinal */

int cuInit(unsigned flags);
int cuDriverGetVersion(int *version);
int cuDeviceGetCount(int *count);
int cuDeviceGet(int *device, int ordinal);
int cuDeviceGetName(char *name, int bytes, int device);
int cuDeviceGetAttribute(int *value, int attribute, int device);
int cuDeviceTotalMem_v2(size_t *bytes, int device);
int cuDeviceGetUuid_v2(unsigned char uuid[16], int device);
int cuGetErrorString(int code, const char **words);

int cuInit(unsigned flags)
{
    int rc = act("cuInit", 1);
    return flags ? 1 : rc;
}

int cuDriverGetVersion(int *version)
{
    *version = number("version", 0);
    return act("cuDriverGetVersion", 0);
}

int cuDeviceGetCount(int *count)
{
    const char *mask = getenv("CUDA_VISIBLE_DEVICES");
    *count = mask && !strcmp(mask, "-1") ? 0 : devices();
    return act("cuDeviceGetCount", 0);
}

int cuDeviceGet(int *device, int ordinal)
{
    *device = HANDLE + ordinal;
    return act("cuDeviceGet", 0);
}

int cuDeviceGetName(char *name, int bytes, int device)
{
    put_name(name, (size_t)bytes, device - HANDLE);
    return act("cuDeviceGetName", 0);
}

int cuDeviceGetAttribute(int *value, int attribute, int device)
{
    const char *capability = device_field(device - HANDLE, 1), *dot = strchr(capability, '.');
    if (attribute == 75)
        *value = atoi(capability);
    else if (attribute == 76)
        *value = dot ? atoi(dot + 1) : 0;
    else
        return 1;
    return act("cuDeviceGetAttribute", 0);
}

int cuDeviceTotalMem_v2(size_t *bytes, int device)
{
    *bytes = (size_t)strtoull(device_field(device - HANDLE, 2), NULL, 10);
    return act("cuDeviceTotalMem_v2", 0);
}

int cuDeviceGetUuid_v2(unsigned char uuid[16], int device)
{
    for (int i = 0; i < 16; i++)
        uuid[i] = (unsigned char)(i ? i - 1 : atoi(device_field(device - HANDLE, 3)));
    return act("cuDeviceGetUuid_v2", 0);
}

int cuGetErrorString(int code, const char **words)
{
    *words = code == 803   ? "system has unsupported display driver / cuda driver combination"
             : code == 999 ? "unknown error"
                           : NULL;
    return *words ? 0 : 1;
}
