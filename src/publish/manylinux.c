/* manylinux levels: the newest versions of symbols that the systems of a level have. The levels are PEP 600's
 * (manylinux_2_N: glibc 2.N), what libstdc++, libgcc and zlib have there is from the policy of auditwheel,
 * the tool of the Python Packaging Authority that judges wheels (manylinux-policy.json). A version that
 * the policy lists has everything older beside it, so the newest one tells it all; tests/oracle/test_check.py
 * holds each version against the policy. */
#include "publish/rules.h"

#include "base/error.h"
#include "base/text.h"

#include <stdlib.h>

enum { X86_64, AARCH64, MACHINES };

typedef struct level {
    const char *name, *alias;
    const char *glibc[MACHINES], *glibcxx, *cxxabi, *gcc[MACHINES], *zlib; /* "": none */
} level;

static const level levels[] = {
    {"manylinux_2_5", "manylinux1", {"2.5", ""}, "3.4.8", "1.3.1", {"4.2.0", ""}, ""},
    {"manylinux_2_12", "manylinux2010", {"2.12", ""}, "3.4.13", "1.3.3", {"4.3.0", ""}, "1.2.2.4"},
    {"manylinux_2_17", "manylinux2014", {"2.17", "2.18"}, "3.4.19", "1.3.7", {"4.8.0", "4.7.0"}, "1.2.5.2"},
    {"manylinux_2_24", NULL, {"2.24", "2.24"}, "3.4.22", "1.3.10", {"4.8.0", "4.7.0"}, "1.2.5.2"},
    {"manylinux_2_27", NULL, {"2.27", "2.27"}, "3.4.24", "1.3.11", {"7.0.0", "7.0.0"}, "1.2.9"},
    {"manylinux_2_28", NULL, {"2.28", "2.28"}, "3.4.24", "1.3.11", {"7.0.0", "7.0.0"}, "1.2.9"},
    {"manylinux_2_31", NULL, {"2.31", "2.31"}, "3.4.28", "1.3.12", {"7.0.0", "7.0.0"}, "1.2.9"},
    {"manylinux_2_34", NULL, {"2.34", "2.34"}, "3.4.29", "1.3.13", {"7.0.0", "11.0"}, "1.2.9"},
    {"manylinux_2_35", NULL, {"2.35", "2.35"}, "3.4.30", "1.3.13", {"12.0.0", "11.0"}, "1.2.9"},
    {"manylinux_2_36", NULL, {"2.36", "2.36"}, "3.4.30", "1.3.13", {"12.0.0", "11.0"}, "1.2.9"},
    {"manylinux_2_37", NULL, {"2.37", "2.37"}, "3.4.30", "1.3.13", {"12.0.0", "11.0"}, "1.2.12"},
    {"manylinux_2_38", NULL, {"2.38", "2.38"}, "3.4.30", "1.3.13", {"12.0.0", "11.0"}, "1.2.12"},
    {"manylinux_2_39", NULL, {"2.39", "2.39"}, "3.4.33", "1.3.15", {"14.0.0", "14.0.0"}, "1.2.12"},
};
enum { LEVELS = sizeof(levels) / sizeof(*levels) };

/* Versions that are no numbers, and the first level that has them. */
static const struct {
    const char *version, *level;
    int machine; /* -1: any */
} named[] = {
    {"CXXABI_TM_1", "manylinux_2_17", -1},
    {"CXXABI_FLOAT128", "manylinux_2_24", X86_64},
    {"GLIBC_ABI_DT_RELR", "manylinux_2_36", -1},
};

static const char *const libraries[] = {
    "libc.so.6",     "libm.so.6",      "libdl.so.2",           "libpthread.so.0",       "librt.so.1",
    "libutil.so.1",  "libresolv.so.2", "libnsl.so.1",          "libgcc_s.so.1",         "libstdc++.so.6",
    "libz.so.1",     "libGL.so.1",     "libX11.so.6",          "libXext.so.6",          "libXrender.so.1",
    "libICE.so.6",   "libSM.so.6",     "libglib-2.0.so.0",     "libgobject-2.0.so.0",   "libgthread-2.0.so.0",
    "libexpat.so.1", "libatomic.so.1", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1",
};

int khub__manylinux_has(const char *library)
{
    for (size_t i = 0; i < sizeof(libraries) / sizeof(*libraries); i++)
        if (!strcmp(libraries[i], library)) return 1;
    return 0;
}

/* Index; -1: there is no such level. */
static int find_level(const char *name)
{
    for (int i = 0; i < LEVELS; i++)
        if (!strcmp(levels[i].name, name) || (levels[i].alias && !strcmp(levels[i].alias, name))) return i;
    return -1;
}

int khub__manylinux_check(const char *name, khub_error *err)
{
    if (find_level(name) >= 0) return KHUB_OK;
    khub__text list = {0};
    for (int i = 0; i < LEVELS; i++)
        khub__text_addf(&list, "%s%s", i ? ", " : "", levels[i].name);
    int rc = list.failed
                 ? khub__fail_memory(err, "reading options")
                 : khub__fail(err, KHUB_E_INVAL, "%s: is no manylinux level; there are %s", name, list.data);
    khub__text_free(&list);
    return rc;
}

/* Numbers between dots: below, equal or above 0. */
static int compare(const char *a, const char *b)
{
    while (*a || *b) {
        char *end_a, *end_b;
        unsigned long x = strtoul(a, &end_a, 10), y = strtoul(b, &end_b, 10);
        if (x != y) return x < y ? -1 : 1;
        a = *end_a == '.' ? end_a + 1 : "";
        b = *end_b == '.' ? end_b + 1 : "";
    }
    return 0;
}

static int is_number(const char *version)
{
    return *version >= '0' && *version <= '9' && !version[strspn(version, "0123456789.")];
}

/* What a level has of the name space in front of "_"; NULL: no level speaks of it. */
static const char *newest(const level *l, int machine, const char *space, size_t length)
{
    const struct {
        const char *space, *version;
    } table[] = {{"GLIBC", l->glibc[machine]},
                 {"GLIBCXX", l->glibcxx},
                 {"CXXABI", l->cxxabi},
                 {"GCC", l->gcc[machine]},
                 {"ZLIB", l->zlib}};
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
        if (strlen(table[i].space) == length && !memcmp(table[i].space, space, length))
            return table[i].version;
    return NULL;
}

enum { NOT_JUDGED = -1, NOWHERE = LEVELS };

static int level_of_named(const char *version, int machine)
{
    for (size_t i = 0; i < sizeof(named) / sizeof(*named); i++)
        if (!strcmp(named[i].version, version) && (named[i].machine < 0 || named[i].machine == machine))
            return find_level(named[i].level);
    return NOWHERE;
}

/* The first level that has a version such as "GLIBC_2.14". */
static int level_of(const char *version, int machine)
{
    size_t space = strcspn(version, "_");
    if (!version[space] || !newest(&levels[0], machine, version, space)) return NOT_JUDGED;
    const char *number = version + space + 1;
    if (!is_number(number)) return level_of_named(version, machine);
    for (int i = 0; i < LEVELS; i++) {
        const char *has = newest(&levels[i], machine, version, space);
        if (*has && compare(number, has) <= 0) return i;
    }
    return NOWHERE;
}

/* The undefined symbols by the versions that some level speaks of. */
static void collect(khub__groups *all, const khub__object *object, int machine)
{
    for (size_t i = 0; i < object->symbol_count; i++) {
        const khub__object_symbol *s = &object->symbols[i];
        if (s->undefined && s->version && level_of(s->version, machine) != NOT_JUDGED)
            khub__groups_add(all, s->version, s->name);
    }
}

/* One version, which is newer than what is wanted. */
static void report_version(const khub__case *it, const khub__group *g, int found)
{
    const char *wanted = it->options->manylinux;
    if (!strcmp(g->key, "GLIBC_PRIVATE"))
        khub__finding_of(it->report, "manylinux", KHUB_CHECK_LEVEL_ERROR, g->key, &g->names,
                         "uses glibc's private interface, which changes with each release");
    else if (found == NOWHERE)
        khub__finding_of(it->report, "manylinux", KHUB_CHECK_LEVEL_ERROR, g->key, &g->names,
                         "%s is newer than %s, and than %s, the last that khub knows", g->key, wanted,
                         levels[LEVELS - 1].name);
    else
        khub__finding_of(it->report, "manylinux", KHUB_CHECK_LEVEL_ERROR, g->key, &g->names,
                         "%s comes with %s, and %s is wanted", g->key, levels[found].name, wanted);
}

/* What the library comes to, and the version that it comes from. */
static void report_least(const khub__case *it, const khub__groups *all, int machine)
{
    int least = machine == X86_64 ? 0 : find_level("manylinux_2_17");
    const khub__group *by = NULL;
    for (size_t i = 0; i < all->count; i++)
        if (level_of(all->items[i].key, machine) > least) {
            by = &all->items[i];
            least = level_of(by->key, machine);
        }
    if (least == NOWHERE) return; /* that is told as an error */
    khub__finding(it->report, "manylinux", KHUB_CHECK_LEVEL_NOTE, levels[least].name, NULL,
                  "loads on systems from %s on%s%s%s%s%s", levels[least].name, by ? ", by " : "",
                  by ? by->key : "", by ? " (" : "", by ? by->names.items[0] : "", by ? ")" : "");
}

void khub__check_manylinux(const khub__case *it)
{
    int machine = !strcmp(it->object->arch, "x86_64") ? X86_64 : AARCH64;
    int wanted = find_level(it->options->manylinux);
    if (it->object->format != KHUB__ELF || it->object->has_no_symbols ||
        (machine == AARCH64 && strcmp(it->object->arch, "aarch64") != 0))
        return;
    khub__groups all = {0};
    collect(&all, it->object, machine);
    if (khub__groups_sort(&all)) {
        for (size_t i = 0; i < all.count; i++) {
            int found = level_of(all.items[i].key, machine);
            if (found > wanted) report_version(it, &all.items[i], found);
        }
        report_least(it, &all, machine);
    } else {
        it->report->failed = 1;
    }
    khub__groups_free(&all);
}
