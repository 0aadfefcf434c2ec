/* The value itself: life, facts, narrowing to a backend. */
#include "platform/platform.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"
#include "platform/torch.h"

#include <stdlib.h>

int khub__platform_new(khub_platform **out, khub_error *err)
{
    static const khub__version unknown = KHUB__VERSION_UNKNOWN;
    khub_platform *p = *out = khub__calloc(1, sizeof(*p));
    if (!p) return khub__fail_memory(err, "describing a platform");
    p->backend_version = p->torch = p->torch_backend_version = p->tvm_ffi = p->macos = unknown;
    p->torch_cxx11_abi = -1;
    return KHUB_OK;
}

void khub_platform_free(khub_platform *platform)
{
    if (!platform) return;
    khub__pool_free(&platform->pool);
    khub__free(platform);
}

const khub_accelerator_info *khub__platform_accelerator_of(const khub_platform *p, const char *backend)
{
    for (size_t i = 0; i < p->accelerator_count; i++)
        if (!strcmp(p->accelerators[i].backend, backend)) return &p->accelerators[i];
    return NULL;
}

const khub_library_info *khub__platform_library_of(const khub_platform *p, const char *name)
{
    for (size_t i = 0; i < p->library_count; i++)
        if (!strcmp(p->libraries[i].name, name)) return &p->libraries[i];
    return NULL;
}

const char *khub__presence_name(khub_presence presence)
{
    static const char *const names[] = {"absent", "found", "broken"};
    return names[presence];
}

int khub__presence_parse(khub_presence *out, const char *name)
{
    for (int i = KHUB_ABSENT; name && i <= KHUB_BROKEN; i++) {
        if (strcmp(name, khub__presence_name((khub_presence)i)) != 0) continue;
        *out = (khub_presence)i;
        return 0;
    }
    return -1;
}

const char *khub__arch_normal(const char *os, const char *arch)
{
    if (strcmp(os, "darwin") != 0 && strcmp(os, "windows") != 0) return arch;
    if (!strcmp(arch, "arm64") || !strcmp(arch, "ARM64")) return "aarch64";
    return !strcmp(arch, "AMD64") ? "x86_64" : arch;
}

static int listed(const char *const *texts, size_t count, const char *text)
{
    for (size_t i = 0; i < count; i++)
        if (!strcmp(texts[i], text)) return 1;
    return 0;
}

/* Puts the archs of an accelerator's devices into `archs`, each once, in the order of the devices: those that
 * are integrated, or those that aren't. */
static size_t collect_archs(const char **archs, const khub_accelerator_info *from, int integrated)
{
    size_t count = 0;
    for (size_t i = 0; i < from->device_count; i++) {
        const char *arch = from->devices[i].integrated == integrated ? from->devices[i].arch : NULL;
        if (arch && !listed(archs, count, arch)) archs[count++] = arch;
    }
    return count;
}

int khub__platform_use(khub_platform *p, const khub__backend *backend, khub__version version, khub_error *err)
{
    char buffer[KHUB__VERSION_TEXT];
    const khub_accelerator_info *from = khub__platform_accelerator_of(p, backend->name);
    const char *text = khub__pool_text(&p->pool, khub__backend_text(backend, version, buffer));
    const char **archs = khub__pool_take(&p->pool, from ? from->device_count : 0, sizeof(*archs));
    if (p->pool.failed) {
        p->pool.failed = 0;
        return khub__fail_memory(err, "selecting a backend");
    }
    p->backend = backend;
    p->backend_version = version;
    p->backend_text = text;
    p->archs = archs;
    p->arch_count = from ? collect_archs(archs, from, 0) : 0;
    if (from && !p->arch_count) p->arch_count = collect_archs(archs, from, 1);
    return KHUB_OK;
}

/* Of the backend in use, the device `text` alone, a number. */
static int use_device(khub_platform *p, const char *text, khub_error *err)
{
    const khub_accelerator_info *from = khub__platform_accelerator_of(p, p->backend->name);
    size_t count = from ? from->device_count : 0, i = 0, digits = strspn(text, "0123456789");
    if (digits && digits < 10 && !text[digits])
        i = strtoul(text, NULL, 10);
    else
        i = count;
    if (i >= count)
        return khub__fail(err, KHUB_E_INVAL, "device %s:%s: this machine has %zu of them, counted from 0",
                          p->backend->name, text, count);
    const char **archs = khub__pool_take(&p->pool, 1, sizeof(*archs));
    if (!archs) {
        p->pool.failed = 0;
        return khub__fail_memory(err, "selecting a device");
    }
    archs[0] = from->devices[i].arch;
    p->archs = archs;
    p->arch_count = archs[0] != NULL;
    return KHUB_OK;
}

static const char *words(khub_platform *p, khub__version version)
{
    char buffer[KHUB__VERSION_TEXT];
    return version.major < 0 ? NULL : khub__pool_text(&p->pool, khub__version_text(version, buffer));
}

int khub__platform_finish(khub_platform *p, khub_error *err)
{
    char buffer[KHUB__VERSION_TEXT];
    if (p->backend)
        p->backend_text =
            khub__pool_text(&p->pool, khub__backend_text(p->backend, p->backend_version, buffer));
    p->torch_text = words(p, p->torch);
    p->tvm_ffi_text = words(p, p->tvm_ffi);
    p->macos_text = words(p, p->macos);
    return p->pool.failed ? khub__fail_memory(err, "describing a platform") : KHUB_OK;
}

/* 1 when `text` names an accelerator that was found: "cuda" or "cu128". */
static int is_called(const khub_accelerator_info *accelerator, const char *text,
                     const khub__backend **backend, khub__version *version)
{
    char named[KHUB__VERSION_TEXT];
    *backend = khub__backend_find(accelerator->backend);
    if (accelerator->presence != KHUB_FOUND || !*backend) return 0;
    khub__version_parse(version, accelerator->version ? accelerator->version : "");
    return !strcmp(text, (*backend)->name) || !strcmp(text, khub__backend_text(*backend, *version, named));
}

/* "cpu, cu128 and …": what select takes. */
static int fail_select(const khub_platform *p, const char *asked, khub_error *err)
{
    khub__text list = {0};
    khub__text_add(&list, "cpu");
    if (p->backend && strcmp(p->backend->name, "cpu") != 0) khub__text_addf(&list, ", %s", p->backend_text);
    for (size_t i = 0; i < p->accelerator_count; i++) {
        const khub_accelerator_info *a = &p->accelerators[i];
        if (a->presence != KHUB_FOUND || (p->backend && !strcmp(p->backend->name, a->backend))) continue;
        khub__text_addf(&list, ", %s", a->backend);
    }
    char *backends = khub__text_take(&list);
    if (!backends) return khub__fail_memory(err, "selecting a backend");
    int rc = khub__fail(err, KHUB_E_INVAL, "backend %s: this machine hasn't got it; its backends are: %s",
                        asked, backends);
    khub__free(backends);
    return rc;
}

const char khub__torch_left_out[] = "left out, as was asked for";

/* The list with room for one more library. NULL: no memory. */
static khub_library_info *copy_libraries(khub_platform *p)
{
    khub_library_info *copy = khub__pool_take(&p->pool, p->library_count + 1, sizeof(*copy));
    if (copy && p->library_count) memcpy(copy, p->libraries, p->library_count * sizeof(*copy));
    return copy;
}

int khub__platform_take_torch(khub_platform *p, const khub__torch *torch, khub_error *err)
{
    const char *text = words(p, torch->version);
    khub_library_info *libraries = copy_libraries(p), *own = libraries;
    if (p->pool.failed) {
        p->pool.failed = 0;
        return khub__fail_memory(err, "looking at libtorch");
    }
    while (own < libraries + p->library_count && strcmp(own->name, torch->info.name) != 0)
        own++;
    p->library_count += own == libraries + p->library_count;
    *own = torch->info;
    p->libraries = libraries;
    p->torch = torch->version;
    p->torch_text = text;
    p->torch_cxx11_abi = torch->cxx11_abi;
    p->torch_backend = torch->version.major >= 0 ? torch->backend : NULL;
    p->torch_backend_version = torch->backend_version;
    return KHUB_OK;
}

int khub_platform_use_torch(khub_platform *p, const char *dir, khub_error *err)
{
    khub__torch torch;
    int rc = khub__given("khub_platform_use_torch", p != NULL, err);
    if (rc != KHUB_OK) return rc;
    khub__torch_unknown(&torch);
    torch.info.reason = khub__torch_left_out;
    if (dir) khub__torch_of(&torch, dir, p->backend, &p->pool);
    if (p->pool.failed) {
        p->pool.failed = 0;
        return khub__fail_memory(err, "looking at libtorch");
    }
    if (dir && torch.info.presence != KHUB_FOUND)
        return khub__fail(err, KHUB_E_LOAD, "libtorch: %s", torch.info.reason);
    return khub__platform_take_torch(p, &torch, err);
}

static int select_backend(khub_platform *p, const char *text, khub_error *err)
{
    static const khub__version unversioned = KHUB__VERSION_UNKNOWN;
    const khub__backend *backend;
    khub__version version = unversioned;
    if (p->backend && (!strcmp(text, p->backend->name) || !strcmp(text, p->backend_text))) return KHUB_OK;
    if (!strcmp(text, "cpu")) return khub__platform_use(p, khub__backend_find("cpu"), version, err);
    for (size_t i = 0; i < p->accelerator_count; i++)
        if (is_called(&p->accelerators[i], text, &backend, &version))
            return khub__platform_use(p, backend, version, err);
    return fail_select(p, text, err);
}

/* "cuda:1": the backend, then the device. */
static int select_device(khub_platform *p, const char *text, const char *colon, khub_error *err)
{
    khub_platform before = *p; /* the pool only grows */
    char *backend = khub__strndup(text, (size_t)(colon - text));
    int rc = backend ? select_backend(p, backend, err) : khub__fail_memory(err, "selecting a device");
    khub__free(backend);
    if (rc == KHUB_OK) rc = use_device(p, colon + 1, err);
    if (rc != KHUB_OK) {
        khub__pool pool = p->pool;
        *p = before;
        p->pool = pool;
    }
    return rc;
}

int khub_platform_select(khub_platform *p, const char *text, khub_error *err)
{
    int missing = khub__given("khub_platform_select", p && text, err);
    if (missing != KHUB_OK) return missing;
    const char *colon = strchr(text, ':');
    int rc = colon ? select_device(p, text, colon, err) : select_backend(p, text, err);
    if (rc == KHUB_OK) p->is_selected = 1;
    return rc;
}

const char *khub_platform_about(const khub_platform *p)
{
    return p->about;
}

const char *khub_platform_os(const khub_platform *p)
{
    return p->os;
}

const char *khub_platform_arch(const khub_platform *p)
{
    return p->arch;
}

const char *khub_platform_backend(const khub_platform *p)
{
    return p->backend_text;
}

const char *khub_platform_device_arch(const khub_platform *p, size_t i)
{
    return i < p->arch_count ? p->archs[i] : NULL;
}

const char *khub_platform_tvm_ffi(const khub_platform *p)
{
    return p->tvm_ffi_text;
}

const char *khub_platform_torch(const khub_platform *p)
{
    return p->torch_text;
}

const char *khub_platform_macos(const khub_platform *p)
{
    return p->macos_text;
}

const char *khub_platform_cpu_model(const khub_platform *p)
{
    return p->cpu_model;
}

const char *khub_platform_glibc(const khub_platform *p)
{
    return p->glibc;
}

unsigned khub_platform_cores(const khub_platform *p)
{
    return p->cores;
}

unsigned khub_platform_threads(const khub_platform *p)
{
    return p->threads;
}

const char *khub_platform_threads_reason(const khub_platform *p)
{
    return p->threads_reason;
}

uint64_t khub_platform_cache_bytes(const khub_platform *p, int level)
{
    return level == 1 ? p->l1d_bytes : level == 2 ? p->l2_bytes : level == 3 ? p->l3_bytes : 0;
}

const char *khub_platform_feature(const khub_platform *p, size_t i)
{
    return i < p->feature_count ? p->features[i] : NULL;
}

int khub_platform_has(const khub_platform *p, const char *feature)
{
    return listed(p->features, p->feature_count, feature);
}

const khub_library_info *khub_platform_library(const khub_platform *p, size_t i)
{
    return i < p->library_count ? &p->libraries[i] : NULL;
}

const khub_accelerator_info *khub_platform_accelerator(const khub_platform *p, size_t i)
{
    return i < p->accelerator_count ? &p->accelerators[i] : NULL;
}
