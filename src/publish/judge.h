/* What is judged about one library: each function looks at one thing and adds what it finds to the report. */
#ifndef PUBLISH_JUDGE_H
#define PUBLISH_JUDGE_H

#include "kernel/provider.h"
#include "publish/object.h"
#include "variant/name.h"

typedef struct khub__judging {
    khub_check_report *report;
    const khub__object *object;
    const khub_check_options *options; /* with the defaults filled in */
    const char *path;                  /* of the file, to look for what stands beside it */
    const khub__variant_name
        *variant; /* of the build that it is in; NULL: none, or one that isn't understood */
} khub__judging;

void khub__judge_target(const khub__judging *j);    /* system and machine */
void khub__judge_manylinux(const khub__judging *j); /* Linux: versions of symbols */
void khub__judge_needed(const khub__judging *j); /* libraries that it needs, and where they are looked for */
void khub__judge_loading(const khub__judging *j); /* what the loader has to do to it: relocations, stack, … */
void khub__judge_undefined(const khub__judging *j); /* symbols that others must have, by provider */

void khub__judge_python(const khub__judging *j); /* what it uses of Python */
void khub__judge_torch(const khub__judging *j);  /* what it uses of PyTorch */

void khub__judge_codes(const khub__judging *j); /* what its GPU code is for */

/* 1 when the build's name says that what khub__provider names ("cuda") is there where it is loaded; without a
 * name anything may be. */
int khub__is_promised(const khub__judging *j, const char *provider);

/* Whose a library is that one of that kind needs; NULL: no idea. */
const khub__provider *khub__needed_provider(const khub__object *object, const char *name);

/* What the library of a build with that id exports. */
void khub__judge_functions(const khub__judging *j, const char *id);

/* 1 when it exports the function as __tvm_ffi_NAME. */
int khub__exports_function(const khub__object *object, const char *name);

/* KHUB_E_INVAL with the levels there are unless `level` is one. */
int khub__manylinux_check(const char *level, khub_error *err);

/* 1 when a Linux library of that name is on every system of the manylinux levels. */
int khub__manylinux_has(const char *library);

#endif
