/* What a loader has to do to a library, and what that says about it. */
#include "publish/judge.h"

#include "platform/version.h"

#include <stdio.h>

static void add(const khub__judging *j, const char *about, khub_check_level level, const char *words)
{
    khub__finding(j->report, about, level, NULL, NULL, "%s", words);
}

static void judge_elf(const khub__judging *j)
{
    const khub__object *o = j->object;
    if (o->text_relocations)
        add(j, "textrel", KHUB_CHECK_LEVEL_ERROR,
            "its code is written to when it is loaded (DT_TEXTREL): hardened systems refuse that; compile "
            "with -fPIC");
    if (o->executable_stack == 1)
        add(j, "execstack", KHUB_CHECK_LEVEL_ERROR,
            "wants an executable stack, which glibc 2.41 and hardened systems refuse: link with -z "
            "noexecstack");
    if (o->executable_stack < 0)
        add(j, "execstack", KHUB_CHECK_LEVEL_ERROR,
            "doesn't say that its stack isn't executable (no PT_GNU_STACK), so it counts as executable: link "
            "with "
            "-z noexecstack");
    if (o->relro == KHUB__RELRO_NONE)
        add(j, "relro", KHUB_CHECK_LEVEL_WARNING,
            "its tables of pointers stay writable (no RELRO): link with -z relro -z now");
    if (o->relro == KHUB__RELRO_PARTIAL)
        add(j, "relro", KHUB_CHECK_LEVEL_NOTE,
            "RELRO is partial: -z now would protect the calls to others too");
}

static int is_newer(uint32_t macos, const char *wanted)
{
    khub__version needs = {(int)(macos >> 16), (int)(macos >> 8 & 0xFF), (int)(macos & 0xFF)}, has;
    khub__version_parse(&has, wanted);
    return khub__version_compare(needs, has) > 0;
}

static void judge_macos(const khub__judging *j)
{
    const khub__object *o = j->object;
    char version[40];
    snprintf(version, sizeof(version), "%u.%u", (unsigned)(o->macos >> 16), (unsigned)(o->macos >> 8 & 0xFF));
    if (!o->macos)
        add(j, "macos", KHUB_CHECK_LEVEL_ERROR, "doesn't say which macOS it needs (no LC_BUILD_VERSION)");
    else if (is_newer(o->macos, j->options->macos))
        khub__finding(j->report, "macos", KHUB_CHECK_LEVEL_ERROR, version, NULL,
                      "needs macOS %s, and %s is wanted", version, j->options->macos);
    else
        khub__finding(j->report, "macos", KHUB_CHECK_LEVEL_NOTE, version, NULL, "loads on macOS %s and later",
                      version);
    if (!o->is_signed && !strcmp(o->arch, "aarch64"))
        add(j, "codesign", KHUB_CHECK_LEVEL_ERROR,
            "isn't signed, so Apple silicon refuses it: codesign --sign - is enough");
    if (o->executable_stack) add(j, "execstack", KHUB_CHECK_LEVEL_ERROR, "wants an executable stack");
    if (o->own_name && *o->own_name == '/')
        khub__finding(
            j->report, "name", KHUB_CHECK_LEVEL_WARNING, o->own_name, NULL,
            "calls itself %s, a place of the machine it was built on: use -install_name @rpath/NAME",
            o->own_name);
}

static void judge_pe(const khub__judging *j)
{
    if (j->object->executable_stack)
        add(j, "execstack", KHUB_CHECK_LEVEL_ERROR, "isn't marked as safe from running data (/NXCOMPAT)");
    if (j->object->is_fixed)
        add(j, "relocation", KHUB_CHECK_LEVEL_WARNING, "can't be loaded at a random address (/DYNAMICBASE)");
}

void khub__judge_loading(const khub__judging *j)
{
    static void (*const by_format[])(const khub__judging *) = {judge_elf, judge_macos, judge_pe};
    const khub__object *o = j->object;
    by_format[o->format](j);
    if (o->writable_code)
        add(j, "wx", KHUB_CHECK_LEVEL_WARNING,
            "has a segment that is writable and executable at the same time");
    size_t own = o->format == KHUB__ELF && o->constructors; /* the compiler's frame_dummy */
    if (o->constructors > own)
        khub__finding(j->report, "constructors", KHUB_CHECK_LEVEL_NOTE, NULL, NULL,
                      "%zu constructor%s when it is loaded, before anything is called", o->constructors - own,
                      o->constructors - own == 1 ? " runs" : "s run");
    for (size_t i = 0; i < o->remarks.count; i++)
        add(j, "file", KHUB_CHECK_LEVEL_WARNING, o->remarks.items[i]);
}
