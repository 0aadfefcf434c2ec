/* libascendcl.so for tests: CANN's runtime. All devices of a machine are of one kind: `soc NAME`. */
#define USUAL "version 8.3.RC1\nsoc Ascend910B3\ndevice \ndevice \n"
#include "describe.h"

int aclInit(const char *config);
int aclrtGetDeviceCount(uint32_t *count);
const char *aclrtGetSocName(void);
int aclsysGetCANNVersion(int package, void *version);
const char *aclGetRecentErrMsg(void);

int aclInit(const char *config)
{
    (void)config;
    int rc = act("aclInit", 1);
    return rc == 100 ? 0 : rc; /* "none" is told when devices are counted */
}

int aclrtGetDeviceCount(uint32_t *count)
{
    int rc = act("aclrtGetDeviceCount", 0);
    *count = (uint32_t)devices();
    return rc || *count ? rc : 107003;
}

const char *aclrtGetSocName(void)
{
    static char name[256];
    const char *soc = line("soc", 0);
    snprintf(name, sizeof(name), "%s", soc ? soc : "");
    return soc ? name : NULL;
}

/* The version in 128 bytes, then four parts of 64, then 128 that are reserved. */
int aclsysGetCANNVersion(int package, void *version)
{
    const char *text = line("version", 0);
    memset(version, 0, 128 + 4 * 64 + 128);
    if (text && !strcmp(text, "endless"))
        memset(version, '9', 128);
    else if (text)
        snprintf(version, 128, "%s", text);
    return package == 0 && text ? act("aclsysGetCANNVersion", 0) : 100003;
}

const char *aclGetRecentErrMsg(void)
{
    return "driver isn't ready";
}
