/* libcuda.so.1 for tests: numbers as in CUDA's documentation. */
#include "behave.h"

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
    leave_trace("cuInit");
    misbehave();
    if (flags) return 1;
    if (behaves("stub")) return 34;
    if (behaves("none")) return 100;
    return behaves("mismatch") ? 803 : 0;
}

int cuDriverGetVersion(int *version)
{
    *version = behaves("old") ? 12040 : 12080;
    return 0;
}

int cuDeviceGetCount(int *count)
{
    const char *mask = getenv("CUDA_VISIBLE_DEVICES");
    *count = behaves("zero") || (mask && !strcmp(mask, "-1")) ? 0 : 2;
    return 0;
}

int cuDeviceGet(int *device, int ordinal)
{
    *device = 70 + ordinal; /* a handle isn't an ordinal */
    return 0;
}

int cuDeviceGetName(char *name, int bytes, int device)
{
    snprintf(name, (size_t)bytes, device == 70 ? "Fake \"Ampere\" \\ \xC3\xA4" : "Fake Blackwell");
    return 0;
}

int cuDeviceGetAttribute(int *value, int attribute, int device)
{
    if (attribute == 75)
        *value = device == 70 ? 8 : 12;
    else if (attribute == 76)
        *value = device == 70 ? 6 : 0;
    else
        return 1;
    return 0;
}

int cuDeviceTotalMem_v2(size_t *bytes, int device)
{
    *bytes = (size_t)(device == 70 ? 24 : 32) << 30;
    return 0;
}

int cuDeviceGetUuid_v2(unsigned char uuid[16], int device)
{
    for (int i = 0; i < 16; i++)
        uuid[i] = (unsigned char)(i ? i - 1 : device);
    return 0;
}

int cuGetErrorString(int code, const char **words)
{
    *words = code == 803 ? "system has unsupported display driver / cuda driver combination" : NULL;
    return *words ? 0 : 1;
}
