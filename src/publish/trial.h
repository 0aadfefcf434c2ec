/* Loading a library where nothing can happen to this process. One source per operating system. */
#ifndef PUBLISH_TRIAL_H
#define PUBLISH_TRIAL_H

#include "publish/object.h"

typedef enum khub__trial_end {
    KHUB__TRIAL_LOADED,  /* `text` has the functions that it exports, one a line */
    KHUB__TRIAL_REFUSED, /* by status `number`; `text` says why */
    KHUB__TRIAL_EXITED,  /* it called exit(number) */
    KHUB__TRIAL_KILLED,  /* signal `number`, whose name is `text` */
    KHUB__TRIAL_HUNG     /* it didn't come back within `number` seconds */
} khub__trial_end;

typedef struct khub__trial {
    khub__trial_end end;
    int number;
    char *text; /* the caller's (khub_free); NULL: none */
} khub__trial;

/* 1 when it is a library for this system and machine. */
int khub__trial_can(const khub__object *object);

/* Loads the library at `path` in a child process, as khub_get would: after libtvm_ffi, if that is there.
 * KHUB_E_IO: there can be no child; KHUB_E_NOMEM. */
int khub__trial_load(khub__trial *out, const char *path, khub_error *err);

#endif
