/* All builds of a repository with their decisions. */
#ifndef VARIANT_CHOICE_H
#define VARIANT_CHOICE_H

#include "variant/decide.h"

/* A second look at a build that fits by its name, at what stands in it: may add a remark to the verdict or
 * reject. KHUB_OK, or what ends the choosing. */
typedef int khub__look_fn(void *user, khub__verdict *verdict, const char *text,
                          const khub__variant_name *name, khub_error *err);

/* khub_choose with a second look at each build that is accepted. `look` may be NULL. */
int khub__choose(khub_choice **out, const char *const *names, size_t count, const khub_platform *platform,
                 khub__look_fn *look, void *user, khub_error *err);

/* Notes where the builds are from, for khub_choice_repository and khub_choice_commit. */
int khub__choice_from(khub_choice *choice, const char *repository, const char *commit, khub_error *err);

#endif
