/* What a loader has to do to a library, and what that says about it. */
#include "publish/judge.h"

#include "base/memory.h"

static void note(const khub__judging *j, const char *about, khub_check_level level, const char *words)
{
    khub__finding(j->report, about, level, NULL, NULL, "%s", words);
}

static void judge_elf(const khub__judging *j)
{
    const khub__object *o = j->object;
    if (o->text_relocations)
        note(j, "textrel", KHUB_CHECK_LEVEL_ERROR,
             "its code is written to when it is loaded (DT_TEXTREL): hardened systems refuse that; compile "
             "with "
             "-fPIC");
    if (o->executable_stack == 1)
        note(j, "execstack", KHUB_CHECK_LEVEL_ERROR,
             "wants an executable stack, which glibc 2.41 and hardened systems refuse: link with -z "
             "noexecstack");
    if (o->executable_stack < 0)
        note(
            j, "execstack", KHUB_CHECK_LEVEL_ERROR,
            "doesn't say that its stack isn't executable (no PT_GNU_STACK), so it counts as executable: link "
            "with -z noexecstack");
    if (o->writable_code)
        note(j, "wx", KHUB_CHECK_LEVEL_WARNING,
             "has a segment that is writable and executable at the same time");
    if (o->relro == KHUB__RELRO_NONE)
        note(j, "relro", KHUB_CHECK_LEVEL_WARNING,
             "its tables of pointers stay writable (no RELRO): link with -z relro -z now");
    if (o->relro == KHUB__RELRO_PARTIAL)
        note(j, "relro", KHUB_CHECK_LEVEL_NOTE,
             "RELRO is partial: -z now would protect the calls to others too");
    if (o->constructors > 1) /* the first is the compiler's own frame_dummy */
        khub__finding(j->report, "constructors", KHUB_CHECK_LEVEL_NOTE, NULL, NULL,
                      "%zu constructor%s when it is loaded, before anything is called", o->constructors - 1,
                      o->constructors == 2 ? " runs" : "s run");
}

void khub__judge_loading(const khub__judging *j)
{
    if (j->object->format == KHUB__ELF) judge_elf(j);
    for (size_t i = 0; i < j->object->remarks.count; i++)
        note(j, "file", KHUB_CHECK_LEVEL_WARNING, j->object->remarks.items[i]);
}
