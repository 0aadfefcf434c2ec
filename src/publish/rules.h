/* What is judged about one library: each function looks at one thing and adds what it finds to the report. */
#ifndef PUBLISH_RULES_H
#define PUBLISH_RULES_H

#include "kernel/provider.h"
#include "publish/object.h"
#include "variant/name.h"

typedef struct khub__case {
    khub_check_report *report;
    const khub__object *object;
    const khub_check_options *options; /* with the defaults filled in */
    const char *path;                  /* of the file, to look for what stands beside it */
    const khub__variant_name
        *variant; /* of the build that it is in; NULL: none, or one that isn't understood */
} khub__case;

void khub__check_target(const khub__case *it);    /* system and machine */
void khub__check_manylinux(const khub__case *it); /* Linux: versions of symbols */
void khub__check_needed(const khub__case *it);    /* libraries that it needs, and where they are looked for */
void khub__check_loading(const khub__case *it); /* what the loader has to do to it: relocations, stack, … */
void khub__check_undefined(const khub__case *it); /* symbols that others must have, by provider */

void khub__check_python(const khub__case *it); /* what it uses of Python */
void khub__check_torch(const khub__case *it);  /* what it uses of PyTorch */

void khub__check_codes(const khub__case *it); /* what its GPU code is for */

/* 1 when the build's name says that what khub__provider names ("cuda") is there where it is loaded; without a
 * name anything may be. */
int khub__is_promised(const khub__case *it, const char *provider);

/* Whose a library is that one of that kind needs; NULL: no idea. */
const khub__provider *khub__needed_provider(const khub__object *object, const char *name);

/* What the library of a build with that id exports. */
void khub__check_functions(const khub__case *it, const char *id);

/* 1 when it exports the function as __tvm_ffi_NAME. */
int khub__exports_function(const khub__object *object, const char *name);

/* KHUB_E_INVAL with the levels there are unless `level` is one. */
int khub__manylinux_check(const char *level, khub_error *err);

/* 1 when a Linux library of that name is on every system of the manylinux levels. */
int khub__manylinux_has(const char *library);

#endif
