/* What a library is for, against the name of the build that it is in. */
#include "publish/rules.h"

static const char *system_of(const khub__object *object)
{
    static const char *const systems[] = {"linux", "darwin", "windows"};
    return systems[object->format];
}

void khub__check_target(const khub__case *it)
{
    const khub__object *o = it->object;
    const khub__variant_name *v = it->variant;
    khub__finding(it->report, "target", KHUB_CHECK_LEVEL_NOTE, o->arch, NULL, "is for %s on %s", system_of(o),
                  o->arch);
    if (!v || !v->os.length) return;
    if (!khub__word_is(v->os, system_of(o)) || !khub__word_is(v->arch, o->arch))
        khub__finding(it->report, "target", KHUB_CHECK_LEVEL_ERROR, o->arch, NULL,
                      "is for %s on %s, the build's name says %.*s on %.*s", system_of(o), o->arch,
                      v->os.length, v->os.text, v->arch.length, v->arch.text);
}

void khub__check_codes(const khub__case *it)
{
    khub__names labels = {0};
    for (size_t i = 0; i < it->object->code_count; i++)
        khub__names_add(&labels, it->object->codes[i].label);
    khub__finding_of(it->report, "archs", KHUB_CHECK_LEVEL_NOTE, NULL, &labels, "holds GPU code");
    khub__names_free(&labels);
}
