/* Facts that can't be true together. */
#include "platform/platform.h"

#include "base/error.h"

static int is(const char *text, const char *other)
{
    return text && !strcmp(text, other);
}

static int backend_is(const khub_platform *p, const char *name)
{
    return p->backend && is(p->backend->name, name);
}

/* Systems that a backend exists on. */
static int check_system(const khub_platform *p, const char *name, khub_error *err)
{
    if (!p->os || !p->backend) return KHUB_OK;
    int on_darwin = is(p->os, "darwin");
    if (backend_is(p, "metal") && !on_darwin)
        return khub__fail(err, KHUB_E_FORMAT,
                          "%s: \"backend\" is metal, but \"os\" is %s: Metal needs darwin", name, p->os);
    if (on_darwin && !backend_is(p, "metal") && !backend_is(p, "cpu"))
        return khub__fail(err, KHUB_E_FORMAT,
                          "%s: \"backend\" is %s, but \"os\" is darwin, which has cpu and metal only", name,
                          p->backend->name);
    return KHUB_OK;
}

static int check_macos(const khub_platform *p, const char *name, khub_error *err)
{
    if (p->macos.major < 0 || !p->os || is(p->os, "darwin")) return KHUB_OK;
    char text[KHUB__VERSION_TEXT];
    return khub__fail(err, KHUB_E_FORMAT, "%s: \"macos\" is %s, but \"os\" is %s", name,
                      khub__version_text(p->macos, text), p->os);
}

static int check_torch(const khub_platform *p, const char *name, khub_error *err)
{
    if (p->torch.major >= 0) return KHUB_OK;
    if (p->torch_backend)
        return khub__fail(err, KHUB_E_FORMAT, "%s: \"torch_backend\" is %s, but \"torch\" is unknown", name,
                          p->torch_backend->name);
    if (p->torch_cxx11_abi < 0) return KHUB_OK;
    return khub__fail(err, KHUB_E_FORMAT, "%s: \"torch_cxx11_abi\" is %s, but \"torch\" is unknown", name,
                      p->torch_cxx11_abi ? "true" : "false");
}

/* "9.0" is how CUDA names an architecture, "gfx942" is ROCm's way. */
static int check_archs(const khub_platform *p, const char *name, khub_error *err)
{
    if (!p->arch_count) return KHUB_OK;
    if (!p->backend)
        return khub__fail(err, KHUB_E_FORMAT, "%s: \"archs\" lists %s, but \"backend\" is unknown", name,
                          p->archs[0]);
    if (backend_is(p, "cpu"))
        return khub__fail(err, KHUB_E_FORMAT,
                          "%s: \"archs\" lists %s, but \"backend\" is cpu, which has no devices", name,
                          p->archs[0]);
    for (size_t i = 0; i < p->arch_count; i++) {
        int amd = !strncmp(p->archs[i], "gfx", 3);
        if (amd == backend_is(p, "rocm") || (!amd && !backend_is(p, "cuda") && !backend_is(p, "rocm")))
            continue;
        return khub__fail(err, KHUB_E_FORMAT, "%s: \"archs\" lists %s, but \"backend\" is %s", name,
                          p->archs[i], p->backend_text);
    }
    return KHUB_OK;
}

/* The list of accelerators, when there is one, has to tell the same story. */
static int check_accelerators(const khub_platform *p, const char *name, khub_error *err)
{
    if (!p->accelerator_count || !p->backend || backend_is(p, "cpu")) return KHUB_OK;
    const khub_accelerator_info *a = khub__platform_accelerator_of(p, p->backend->name);
    if (!a || a->presence != KHUB_FOUND)
        return khub__fail(err, KHUB_E_FORMAT, "%s: \"backend\" is %s, but \"accelerators\" has it %s", name,
                          p->backend_text, a ? khub__presence_name(a->presence) : "not listed");
    khub__version version;
    khub__version_parse(&version, a->version ? a->version : "");
    if (version.major == p->backend_version.major && version.minor == p->backend_version.minor)
        return KHUB_OK;
    return khub__fail(err, KHUB_E_FORMAT,
                      "%s: \"backend\" is %s, but \"accelerators\" has %s with version %s", name,
                      p->backend_text, a->backend, a->version ? a->version : "null");
}

static int check_threads(const khub_platform *p, const char *name, khub_error *err)
{
    if (!p->cores || p->threads <= p->cores) return KHUB_OK;
    return khub__fail(err, KHUB_E_FORMAT, "%s: \"threads\" is %u, but \"cores\" is %u", name, p->threads,
                      p->cores);
}

int khub__platform_check(const khub_platform *p, const char *name, khub_error *err)
{
    static int (*const checks[])(const khub_platform *, const char *, khub_error *) = {
        check_system, check_macos, check_torch, check_archs, check_accelerators, check_threads};
    for (size_t i = 0; i < sizeof(checks) / sizeof(*checks); i++) {
        int rc = checks[i](p, name, err);
        if (rc != KHUB_OK) return rc;
    }
    return KHUB_OK;
}
