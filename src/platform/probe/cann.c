/* AscendCL, the runtime of CANN (acl/acl.h, acl/acl_rt.h). */
#include "platform/probe/probe.h"

#include <stdio.h>

enum { ACL_SUCCESS = 0, ACL_REPEAT_INITIALIZE = 100002, ACL_NO_DEVICE = 107003 /* invalid device id */ };
enum { PACKAGE_CANN = 0 };

/* aclCANNPackageVersion: "8.3.RC1", its parts, and room for later ones. Since CANN 8.0. */
typedef struct package_version {
    char version[128], parts[4][64], reserved[128];
    char later[1024];
} package_version;

typedef struct runtime {
    int (*init)(const char *config);
    int (*count)(uint32_t *count);
    const char *(*soc)(void);
    int (*version)(int package, package_version *version); /* these may be NULL */
    const char *(*words)(void);
} runtime;

static int bind(runtime *r, void *library, probe_answer *answer)
{
    memset(r, 0, sizeof(*r));
    void *version = probe_find(library, "aclsysGetCANNVersion"),
         *words = probe_find(library, "aclGetRecentErrMsg");
    memcpy(&r->version, &version, sizeof(version));
    memcpy(&r->words, &words, sizeof(words));
    return probe_symbol(&r->init, library, "aclInit", answer) ||
           probe_symbol(&r->count, library, "aclrtGetDeviceCount", answer) ||
           probe_symbol(&r->soc, library, "aclrtGetSocName", answer);
}

static void fail(probe_answer *answer, const runtime *r, const char *function, int code)
{
    const char *words = r->words ? r->words() : NULL;
    answer->no_device = code == ACL_NO_DEVICE;
    if (answer->no_device)
        probe_say(answer, "absent", "the runtime sees no device (%s says %d)", function, code);
    else
        probe_say(answer, "broken", "%s says %d: %s", function, code, words ? words : "no words for it");
}

/* It reads the version from files below ASCEND_HOME_PATH, which may not be set. */
static void put_version(const runtime *r, probe_answer *answer)
{
    static package_version v;
    int major, minor;
    if (!r->version || r->version(PACKAGE_CANN, &v) != ACL_SUCCESS) return;
    v.version[sizeof(v.version) - 1] = 0;
    if (sscanf(v.version, "%3d.%3d", &major, &minor) == 2 && major >= 0 && minor >= 0)
        snprintf(answer->version, sizeof(answer->version), "%d.%d", major, minor);
}

void probe_cann(probe_answer *answer, void *library)
{
    runtime r;
    uint32_t count = 0;
    if (bind(&r, library, answer)) return;
    probe_doing("aclInit");
    int rc = r.init(NULL);
    if (rc != ACL_SUCCESS && rc != ACL_REPEAT_INITIALIZE) {
        fail(answer, &r, "aclInit", rc);
        return;
    }
    probe_doing("asking for devices");
    rc = r.count(&count);
    if (rc != ACL_SUCCESS || count == 0) {
        fail(answer, &r, "aclrtGetDeviceCount", rc ? rc : ACL_NO_DEVICE);
        return;
    }
    put_version(&r, answer);
    const char *soc = r.soc(); /* one kind in a machine: "Ascend910B3" */
    for (uint32_t i = 0; i < count; i++) {
        probe_device *device = probe_next(answer);
        if (!device) break;
        snprintf(device->name, sizeof(device->name), "%.255s", soc ? soc : "");
        snprintf(device->arch, sizeof(device->arch), "%.127s", soc ? soc : "");
    }
    answer->presence = "found";
}
