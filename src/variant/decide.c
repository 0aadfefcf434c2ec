#include "variant/decide.h"

#include "platform/platform.h"

#include <stdarg.h>
#include <stdio.h>

/* Metal builds are compiled for Metal 4, which came with this macOS; the name of a build doesn't say so. */
static const khub__version metal_macos = {26, 0, -1};

void khub__verdict_add(khub__verdict *verdict, const char *format, ...)
{
    size_t room = sizeof(verdict->reason), old = strlen(verdict->reason);
    char *added = verdict->reason + old;
    va_list args;
    va_start(args, format);
    int n = vsnprintf(added, room - old, format, args);
    va_end(args);
    for (char *c = added; *c; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7F) *c = '?';
    if (n < 0 || (size_t)n < room - old) return;
    size_t cut = room - 4; /* not inside a UTF-8 sequence */
    while (cut > 0 && ((unsigned char)verdict->reason[cut] & 0xC0) == 0x80)
        cut--;
    memcpy(verdict->reason + cut, "...", 4);
}

/* A rule: 1, or 0 and the reason. */
typedef int rule_fn(khub__verdict *out, const khub__variant_name *name, const khub_platform *platform);

static const char *known(const char *text)
{
    return text ? text : "unknown";
}

static int arch_is_equal(khub__verdict *out, const khub__variant_name *name, const khub_platform *platform)
{
    if (khub__word_is(name->arch, platform->arch)) return 1;
    khub__verdict_add(out, "built for CPU %.*s, the machine's is %s", name->arch.length, name->arch.text,
                      known(platform->arch));
    return 0;
}

static int os_is_equal(khub__verdict *out, const khub__variant_name *name, const khub_platform *platform)
{
    if (khub__word_is(name->os, platform->os)) return 1;
    khub__verdict_add(out, "built for OS %.*s, the machine's is %s", name->os.length, name->os.text,
                      known(platform->os));
    return 0;
}

/* Ends a sentence that began with what a build needs. */
static void add_has(khub__verdict *out, khub__version has, const khub_library_info *library)
{
    char text[KHUB__VERSION_TEXT];
    if (has.major >= 0)
        khub__verdict_add(out, ", the machine has %s", khub__version_text(has, text));
    else if (library && library->reason && !strcmp(library->reason, khub__torch_left_out))
        khub__verdict_add(out, ", which is %s", khub__torch_left_out);
    else if (library && library->presence == KHUB_FOUND)
        khub__verdict_add(out, ", this version of khub can't use the machine's %s", library->name);
    else if (library && library->presence == KHUB_BROKEN)
        khub__verdict_add(out, ", the machine's %s can't be used (khub platform says why)", library->name);
    else
        khub__verdict_add(out, ", the machine has none in reach");
}

static int framework_fits(khub__verdict *out, const khub__variant_name *name, const khub_platform *platform)
{
    int stable = name->framework == KHUB__TORCH_STABLE, tvm_ffi = name->framework == KHUB__TVM_FFI;
    khub__version needs = name->version, has = tvm_ffi ? platform->tvm_ffi : platform->torch;
    if (stable ? has.major >= 0 && khub__version_compare(has, needs) >= 0
               : has.major == needs.major && has.minor == needs.minor)
        return 1;
    char text[KHUB__VERSION_TEXT];
    khub__verdict_add(out, "needs %s %s%s", tvm_ffi ? "tvm-ffi" : "Torch", khub__version_text(needs, text),
                      stable ? " or later" : "");
    add_has(out, has, khub__platform_library_of(platform, tvm_ffi ? "libtvm_ffi" : "libtorch"));
    return 0;
}

static int abi_is_equal(khub__verdict *out, const khub__variant_name *name, const khub_platform *platform)
{
    static const char *const names[] = {"unknown", "cxx98", "cxx11"}; /* of -1, 0, 1 */
    if (name->cxx11_abi < 0 || name->cxx11_abi == platform->torch_cxx11_abi) return 1;
    khub__verdict_add(out, "needs a Torch with the C++ ABI %s, that of the machine's Torch is %s",
                      names[name->cxx11_abi + 1], names[platform->torch_cxx11_abi + 1]);
    return 0;
}

/* Within one kind of backend: CUDA's minor versions are compatible upwards, all others are equal or not. */
static int serves(const khub__backend *kind, khub__version has, khub__version needs)
{
    if (needs.major != has.major) return 0;
    return !strcmp(kind->name, "cuda") ? needs.minor <= has.minor : needs.minor == has.minor;
}

static int backend_version_fits(khub__verdict *out, const khub__variant_name *name, khub__version has)
{
    khub__version needs = name->backend_version;
    const char *kind = name->backend->name;
    char a[KHUB__VERSION_TEXT], b[KHUB__VERSION_TEXT];
    if (has.major < 0 || has.minor < 0) {
        khub__verdict_add(out, "built for %s %s, the machine's %s: version unknown", kind,
                          khub__version_text(needs, a), kind);
        return 0;
    }
    if (serves(name->backend, has, needs)) return 1;
    has.patch = -1;
    khub__verdict_add(out, "built for %s %s, the machine has %s", kind, khub__version_text(needs, a),
                      khub__version_text(has, b));
    if (!strcmp(kind, "cuda"))
        khub__verdict_add(out, needs.major == has.major ? ", which is older" : ", another major version");
    return 0;
}

static int is_torch(const khub__variant_name *name)
{
    return name->framework == KHUB__TORCH || name->framework == KHUB__TORCH_STABLE;
}

/* Torch brings the runtime that its kernels call, or is bound to one: where its version is known, that counts
 * instead of the driver's (torch_has_backend). */
static int torch_decides(const khub__variant_name *name, const khub_platform *platform)
{
    return is_torch(name) && platform->torch_backend == platform->backend &&
           platform->torch_backend_version.major >= 0;
}

/* CUDA's drivers run what was built for older versions, and for later ones of the same major. */
static int driver_is_new_enough(khub__verdict *out, const khub__variant_name *name,
                                const khub_platform *platform)
{
    khub__version driver = platform->backend_version, needs = name->backend_version;
    if (strcmp(name->backend->name, "cuda") != 0 || driver.major < 0 || driver.major >= needs.major) return 1;
    char a[KHUB__VERSION_TEXT], b[KHUB__VERSION_TEXT];
    khub__verdict_add(out, "built for cuda %s, the machine's driver is for %s, which is older",
                      khub__version_text(needs, a), khub__version_text(driver, b));
    return 0;
}

static int backend_fits(khub__verdict *out, const khub__variant_name *name, const khub_platform *platform)
{
    if (name->backend == platform->backend) {
        if (!name->backend->versioned) return 1;
        if (torch_decides(name, platform)) return driver_is_new_enough(out, name, platform);
        return backend_version_fits(out, name, platform->backend_version);
    }
    char text[KHUB__VERSION_TEXT];
    khub__verdict_add(out, "built for backend %s, the machine's is %s",
                      khub__backend_text(name->backend, name->backend_version, text),
                      known(platform->backend_text));
    if (!strcmp(name->backend->name, "cpu"))
        khub__verdict_add(out, " (ask for the backend cpu to use it: --backend cpu)");
    return 0;
}

/* A kernel for a GPU is called through the part of Torch that is for that GPU, too. */
static int torch_has_backend(khub__verdict *out, const khub__variant_name *name,
                             const khub_platform *platform)
{
    const khub__backend *has = platform->torch_backend;
    khub__version needs = name->backend_version, version = platform->torch_backend_version;
    if (!is_torch(name) || !has || !strcmp(name->backend->name, "cpu")) return 1;
    if (has == name->backend && (version.major < 0 || serves(has, version, needs))) return 1;
    char a[KHUB__VERSION_TEXT], b[KHUB__VERSION_TEXT];
    khub__verdict_add(out, "needs a Torch for %s, the machine's is for %s",
                      khub__backend_text(name->backend, needs, a), khub__backend_text(has, version, b));
    return 0;
}

static int macos_is_new_enough(khub__verdict *out, const khub__variant_name *name,
                               const khub_platform *platform)
{
    if (strcmp(name->backend->name, "metal") != 0) return 1;
    khub__version has = platform->macos;
    if (has.major >= 0 && khub__version_compare(has, metal_macos) >= 0) return 1;
    char needs[KHUB__VERSION_TEXT], text[KHUB__VERSION_TEXT];
    khub__verdict_add(out, "needs macOS %s or later, the machine's version is %s",
                      khub__version_text(metal_macos, needs), khub__version_text(has, text));
    return 0;
}

static rule_fn *const rules[] = {arch_is_equal, os_is_equal,       framework_fits,     abi_is_equal,
                                 backend_fits,  torch_has_backend, macos_is_new_enough};
enum { RULES = sizeof(rules) / sizeof(*rules) };

/* Python builds name the backend alone; CANN devices are "npu" there. */
static void decide_noarch(khub__verdict *out, const khub__variant_name *name, const khub_platform *platform)
{
    const char *backend = platform->backend ? platform->backend->name : NULL;
    if (backend && !strcmp(backend, "cann")) backend = "npu";
    if (khub__word_is(name->noarch, backend) || khub__word_is(name->noarch, "universal")) {
        out->kind = KHUB_NEEDS_PYTHON;
        out->met = RULES;
        khub__verdict_add(out, "Python only: there is no library in it");
        return;
    }
    out->kind = KHUB_REJECTED;
    khub__verdict_add(out, "built for backend %.*s (Python only), the machine's is %s", name->noarch.length,
                      name->noarch.text, known(backend));
}

void khub__decide(khub__verdict *out, const khub__variant_name *name, const khub_platform *platform)
{
    *out = (khub__verdict){.kind = KHUB_ACCEPTED};
    if (name->framework == KHUB__NOARCH) {
        decide_noarch(out, name, platform);
        return;
    }
    while (out->met < RULES && rules[out->met](out, name, platform))
        out->met++;
    if (out->met < RULES) out->kind = KHUB_REJECTED;
}
