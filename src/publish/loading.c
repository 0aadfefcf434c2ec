/* What a loader has to do to a library, and what that says about it. */
#include "publish/rules.h"

#include "platform/version.h"

#include <stdio.h>

static void add(const khub__case *it, const char *about, khub_check_level level, const char *words)
{
    khub__finding(it->report, about, level, NULL, NULL, "%s", words);
}

static void judge_elf(const khub__case *it)
{
    const khub__object *o = it->object;
    if (o->text_relocations)
        add(it, "textrel", KHUB_CHECK_LEVEL_ERROR,
            "its code is written to when it is loaded (DT_TEXTREL): hardened systems refuse that; compile "
            "with -fPIC");
    if (o->executable_stack == 1)
        add(it, "execstack", KHUB_CHECK_LEVEL_ERROR,
            "wants an executable stack, which glibc 2.41 and hardened systems refuse: link with -z "
            "noexecstack");
    if (o->executable_stack < 0)
        add(it, "execstack", KHUB_CHECK_LEVEL_ERROR,
            "doesn't say that its stack isn't executable (no PT_GNU_STACK), so it counts as executable: link "
            "with "
            "-z noexecstack");
    if (o->relro == KHUB__RELRO_NONE)
        add(it, "relro", KHUB_CHECK_LEVEL_WARNING,
            "its tables of pointers stay writable (no RELRO): link with -z relro -z now");
    if (o->relro == KHUB__RELRO_PARTIAL)
        add(it, "relro", KHUB_CHECK_LEVEL_NOTE,
            "RELRO is partial: -z now would protect the calls to others too");
}

static int is_newer(uint32_t macos, const char *wanted)
{
    khub__version needs = {(int)(macos >> 16), (int)(macos >> 8 & 0xFF), (int)(macos & 0xFF)}, has;
    khub__version_parse(&has, wanted);
    return khub__version_compare(needs, has) > 0;
}

static void judge_macos(const khub__case *it)
{
    const khub__object *o = it->object;
    char version[40];
    snprintf(version, sizeof(version), "%u.%u", (unsigned)(o->macos >> 16), (unsigned)(o->macos >> 8 & 0xFF));
    if (!o->macos)
        add(it, "macos", KHUB_CHECK_LEVEL_ERROR, "doesn't say which macOS it needs (no LC_BUILD_VERSION)");
    else if (is_newer(o->macos, it->options->macos))
        khub__finding(it->report, "macos", KHUB_CHECK_LEVEL_ERROR, version, NULL,
                      "needs macOS %s, and %s is wanted", version, it->options->macos);
    else
        khub__finding(it->report, "macos", KHUB_CHECK_LEVEL_NOTE, version, NULL,
                      "loads on macOS %s and later", version);
    if (!o->is_signed && !strcmp(o->arch, "aarch64"))
        add(it, "codesign", KHUB_CHECK_LEVEL_ERROR,
            "isn't signed, so Apple silicon refuses it: codesign --sign - is enough");
    if (o->executable_stack) add(it, "execstack", KHUB_CHECK_LEVEL_ERROR, "wants an executable stack");
    if (o->own_name && *o->own_name == '/')
        khub__finding(
            it->report, "name", KHUB_CHECK_LEVEL_WARNING, o->own_name, NULL,
            "calls itself %s, a place of the machine it was built on: use -install_name @rpath/NAME",
            o->own_name);
}

static void judge_pe(const khub__case *it)
{
    if (it->object->executable_stack)
        add(it, "execstack", KHUB_CHECK_LEVEL_ERROR, "isn't marked as safe from running data (/NXCOMPAT)");
    if (it->object->is_fixed)
        add(it, "relocation", KHUB_CHECK_LEVEL_WARNING, "can't be loaded at a random address (/DYNAMICBASE)");
}

void khub__check_loading(const khub__case *it)
{
    static void (*const by_format[])(const khub__case *) = {judge_elf, judge_macos, judge_pe};
    const khub__object *o = it->object;
    by_format[o->format](it);
    if (o->writable_code)
        add(it, "wx", KHUB_CHECK_LEVEL_WARNING,
            "has a segment that is writable and executable at the same time");
    size_t own = o->format == KHUB__ELF && o->constructors; /* the compiler's frame_dummy */
    if (o->constructors > own)
        khub__finding(it->report, "constructors", KHUB_CHECK_LEVEL_NOTE, NULL, NULL,
                      "%zu constructor%s when it is loaded, before anything is called", o->constructors - own,
                      o->constructors - own == 1 ? " runs" : "s run");
    for (size_t i = 0; i < o->remarks.count; i++)
        add(it, "file", KHUB_CHECK_LEVEL_WARNING, o->remarks.items[i]);
}
