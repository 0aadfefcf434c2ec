/* A library that Python loads as a module must use the limited API only, and not more of it than the oldest
 * Python has: then one file serves them all. */
#include "platform/version.h"
#include "publish/rules.h"
#include "publish/limited_api.h"

#include <stdlib.h>

static khub__version version_of(const char *text)
{
    khub__version version;
    khub__version_parse(&version, text);
    return version;
}

static int is_pythons(const char *name)
{
    return !strncmp(name, "Py", 2) || !strncmp(name, "_Py", 3);
}

typedef struct uses {
    khub__groups newer; /* by the version that added them */
    khub__names other;  /* in no limited API */
    const char *oldest; /* that has all of the limited API that is used; NULL: none is used */
} uses;

static void collect(uses *u, const khub__case *it)
{
    khub__version wanted = version_of(it->options->python);
    for (size_t i = 0; i < it->object->symbol_count; i++) {
        const khub__object_symbol *s = &it->object->symbols[i];
        if (!s->undefined || !is_pythons(s->name)) continue;
        const char *added = khub__limited_api_added(s->name);
        if (!added)
            khub__names_add(&u->other, s->name);
        else if (khub__version_compare(version_of(added), wanted) > 0)
            khub__groups_add(&u->newer, added, s->name);
        if (added && (!u->oldest || khub__version_compare(version_of(added), version_of(u->oldest)) > 0))
            u->oldest = added;
    }
}

void khub__check_python(const khub__case *it)
{
    uses u = {0};
    collect(&u, it);
    khub__names_sort(&u.other);
    khub__finding_of(
        it->report, "python", KHUB_CHECK_LEVEL_ERROR, "", &u.other,
        "uses what isn't in Python's limited API, so it loads into one version of Python at best");
    if (!khub__groups_sort(&u.newer)) it->report->failed = 1;
    for (size_t i = 0; i < u.newer.count && !it->report->failed; i++)
        khub__finding_of(it->report, "python", KHUB_CHECK_LEVEL_ERROR, u.newer.items[i].key,
                         &u.newer.items[i].names, "uses what Python %s added, and %s is wanted",
                         u.newer.items[i].key, it->options->python);
    if (u.oldest && !u.other.count)
        khub__finding(it->report, "python", KHUB_CHECK_LEVEL_NOTE, u.oldest, NULL,
                      "uses Python's limited API as of %s", u.oldest);
    khub__names_free(&u.other);
    khub__groups_free(&u.newer);
}
