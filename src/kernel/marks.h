/* What a build of this machine was when it was got, so that it needn't be looked at again while it is that.
 */
#ifndef KERNEL_MARKS_H
#define KERNEL_MARKS_H

#include <khub/error.h>

#include <stdint.h>

/* The identities of all that getting ROOT/build/VARIANT looks at: the directories of the repository, each
 * build's metadata.json, and every file of this build. Never changed once taken; any thread may compare. */
typedef struct khub__marks khub__marks;

/* `since_ns`: when the getting began (khub__file_clock_ns). *out NULL: it isn't laid out so, has too many
 * files, or was changed so lately that a change during the getting might not show. KHUB_E_NOMEM. */
int khub__marks_take(khub__marks **out, const char *build, int64_t since_ns, khub_error *err);

/* 1: all of it is what it was. */
int khub__marks_hold(const khub__marks *marks);

void khub__marks_free(khub__marks *marks); /* NULL is a no-op */

#endif
