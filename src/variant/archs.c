#include "variant/archs.h"

#include "platform/platform.h"

typedef khub__arch_fit fit_fn(const char *entry, const char *device);

/* At most three digits at *text, moved past them; -1: none, or more. */
static int take_number(const char **text)
{
    size_t digits = strspn(*text, "0123456789");
    int n = 0;
    if (digits < 1 || digits > 3) return -1;
    for (size_t i = 0; i < digits; i++)
        n = n * 10 + (*text)[i] - '0';
    *text += digits;
    return n;
}

/* "9.0" at *text, moved past it. */
static int take_capability(int *major, int *minor, const char **text)
{
    *major = take_number(text);
    if (*major < 0 || *(*text)++ != '.') return 0;
    *minor = take_number(text);
    return *minor >= 0;
}

khub__arch_fit khub__cuda_arch_fits(const char *entry, const char *device)
{
    int major, minor, has_major, has_minor;
    if (!take_capability(&has_major, &has_minor, &device) || !take_capability(&major, &minor, &entry))
        return KHUB__ARCH_UNREADABLE;
    char suffix = *entry == 'a' || *entry == 'f' ? *entry++ : 0;
    int ptx = !strcmp(entry, "+PTX");
    if (*entry && !ptx) return KHUB__ARCH_UNREADABLE;
    if (suffix == 'a') return major == has_major && minor == has_minor ? KHUB__ARCH_FITS : KHUB__ARCH_OTHER;
    if (major == has_major) return has_minor >= minor ? KHUB__ARCH_FITS : KHUB__ARCH_OTHER;
    /* PTX is compiled when it is loaded, for any later device; code of one family ("f") stays within it */
    return ptx && !suffix && has_major > major ? KHUB__ARCH_FITS : KHUB__ARCH_OTHER;
}

static int hexadecimal(char c)
{
    static const char digits[] = "0123456789abcdef";
    const char *at = c ? strchr(digits, c) : NULL;
    return at ? (int)(at - digits) : -1;
}

/* ":NAME+" or ":NAME-", any number of times. */
static int are_features(const char *text)
{
    while (*text == ':') {
        size_t n = strspn(text + 1, "abcdefghijklmnopqrstuvwxyz0123456789_");
        if (n == 0 || (text[n + 1] != '+' && text[n + 1] != '-')) return 0;
        text += n + 2;
    }
    return !*text;
}

int khub__gfx_parse(khub__gfx *out, const char *text)
{
    if (strncmp(text, "gfx", 3) != 0) return 0;
    const char *number = text + 3;
    size_t n = strcspn(number, ":");
    if (n < 3 || n > 4) return 0; /* the last two digits are minor and step, the major has one or two */
    out->major = 0;
    for (size_t i = 0; i + 2 < n; i++) {
        if (number[i] < '0' || number[i] > '9') return 0;
        out->major = out->major * 10 + (number[i] - '0');
    }
    out->minor = hexadecimal(number[n - 2]);
    out->step = hexadecimal(number[n - 1]);
    out->features = number + n;
    return out->minor >= 0 && out->step >= 0 && are_features(out->features);
}

/* Whether `features` holds the one at `wanted` (":xnack+", `length` bytes). */
static int has_feature(const char *features, const char *wanted, size_t length)
{
    while (*features == ':') {
        size_t n = 1 + strcspn(features + 1, ":");
        if (n == length && !memcmp(features, wanted, n)) return 1;
        features += n;
    }
    return 0;
}

khub__arch_fit khub__rocm_arch_fits(const char *entry, const char *device)
{
    khub__gfx needs, has;
    if (!khub__gfx_parse(&has, device) || !khub__gfx_parse(&needs, entry)) return KHUB__ARCH_UNREADABLE;
    if (needs.major != has.major || needs.minor != has.minor || needs.step != has.step)
        return KHUB__ARCH_OTHER;
    for (const char *at = needs.features; *at == ':';) {
        size_t n = 1 + strcspn(at + 1, ":");
        if (!has_feature(has.features, at, n)) return KHUB__ARCH_OTHER;
        at += n;
    }
    return KHUB__ARCH_FITS;
}

static const struct {
    const char *backend;
    fit_fn *fits;
} kinds[] = {{"cuda", khub__cuda_arch_fits}, {"rocm", khub__rocm_arch_fits}};

static fit_fn *kind_of(const khub__backend *backend)
{
    for (size_t i = 0; backend && i < sizeof(kinds) / sizeof(*kinds); i++)
        if (!strcmp(kinds[i].backend, backend->name)) return kinds[i].fits;
    return NULL;
}

int khub__archs_matter(const khub__backend *backend)
{
    return kind_of(backend) != NULL;
}

/* Adds the entries for which the fit is, or isn't, "unreadable". */
static void add_list(khub__verdict *out, const char *const *entries, size_t count, fit_fn *fits,
                     const char *device, int unreadable)
{
    const char *before = "";
    for (size_t i = 0; i < count; i++) {
        if ((fits(entries[i], device) == KHUB__ARCH_UNREADABLE) != unreadable) continue;
        khub__verdict_add(out, "%s%s", before, entries[i]);
        before = ", ";
    }
}

static int runs_on(const char *const *entries, size_t count, fit_fn *fits, const char *device)
{
    for (size_t i = 0; i < count; i++)
        if (fits(entries[i], device) == KHUB__ARCH_FITS) return 1;
    return 0;
}

/* The machine's devices that it runs on, or that it doesn't; returns how many. */
static size_t add_devices(khub__verdict *out, const khub_platform *platform, const char *const *entries,
                          size_t count, fit_fn *fits, int run)
{
    size_t added = 0;
    for (size_t i = 0; i < platform->arch_count; i++)
        if (runs_on(entries, count, fits, platform->archs[i]) == run)
            khub__verdict_add(out, "%s%s", added++ ? ", " : "", platform->archs[i]);
    return added;
}

/* "holds no code for the machine's GPU, 6.1 (it does for 8.6: ask for one of these, as cuda:0)" */
static void reject(khub__verdict *out, const khub_platform *platform, const char *const *entries,
                   size_t count, size_t unreadable, fit_fn *fits)
{
    *out = (khub__verdict){.kind = KHUB_REJECTED, .met = out->met};
    khub__verdict_add(out, "holds no code for the machine's GPU, ");
    if (add_devices(out, platform, entries, count, fits, 0) < platform->arch_count) {
        khub__verdict_add(out, " (it does for ");
        add_devices(out, platform, entries, count, fits, 1);
        khub__verdict_add(out, ": ask for a device, such as %s:0)", platform->backend->name);
    }
    if (unreadable < count) khub__verdict_add(out, "; built for ");
    add_list(out, entries, count, fits, platform->archs[0], 0);
}

void khub__archs_decide(khub__verdict *verdict, const khub__variant_name *name, const khub_platform *platform,
                        const char *const *entries, size_t count)
{
    fit_fn *fits = kind_of(name->backend);
    if (!fits) return;
    if (count == 0) {
        khub__verdict_add(verdict, "metadata.json doesn't say for which GPUs it was built");
        return;
    }
    if (platform->arch_count == 0 || fits(platform->archs[0], platform->archs[0]) == KHUB__ARCH_UNREADABLE) {
        khub__verdict_add(verdict, "the machine's GPU architecture is unknown; built for ");
        for (size_t i = 0; i < count; i++)
            khub__verdict_add(verdict, "%s%s", i ? ", " : "", entries[i]);
        return;
    }
    size_t running = 0, unreadable = 0;
    for (size_t i = 0; i < platform->arch_count; i++)
        running += (size_t)runs_on(entries, count, fits, platform->archs[i]);
    for (size_t i = 0; i < count; i++)
        unreadable += fits(entries[i], platform->archs[0]) == KHUB__ARCH_UNREADABLE;
    if (running < platform->arch_count) reject(verdict, platform, entries, count, unreadable, fits);
    if (unreadable == 0) return;
    khub__verdict_add(verdict,
                      "%signored, since this version can't read it: ", verdict->reason[0] ? "; " : "");
    add_list(verdict, entries, count, fits, platform->archs[0], 1);
}
