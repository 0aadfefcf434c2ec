/* libascendcl.so for tests: CANN's runtime. */
#include "behave.h"

int aclInit(const char *config);
int aclrtGetDeviceCount(uint32_t *count);
const char *aclrtGetSocName(void);
int aclsysGetCANNVersion(int package, void *version);
const char *aclGetRecentErrMsg(void);

int aclInit(const char *config)
{
    leave_trace("aclInit");
    misbehave();
    (void)config;
    return behaves("again") ? 100002 : behaves("broken") ? 507008 : 0;
}

int aclrtGetDeviceCount(uint32_t *count)
{
    *count = behaves("none") ? 0 : 2;
    return behaves("none") ? 107003 : 0;
}

const char *aclrtGetSocName(void)
{
    return "Ascend910B3";
}

/* "8.3.RC1" in 128 bytes, then four parts of 64, then 128 that are reserved. */
int aclsysGetCANNVersion(int package, void *version)
{
    if (package != 0 || behaves("unset")) return 100003; /* ASCEND_HOME_PATH isn't set */
    memset(version, 0, 128 + 4 * 64 + 128);
    strcpy(version, behaves("words") ? "next" : "8.3.RC1");
    return 0;
}

const char *aclGetRecentErrMsg(void)
{
    return "driver isn't ready";
}
