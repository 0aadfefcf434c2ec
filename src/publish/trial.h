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

/* What is loaded: the build `variant` of the kernel `name`, as khub_get gets it, with all that has to be
 * proven before; without a name (NULL) the library at `path`, as it is. */
typedef struct khub__trial_of {
    const char *path, *name, *variant;
    const khub_hub_options *hub; /* may be NULL */
} khub__trial_of;

/* Loads it in a child process, which asks nothing of the network. KHUB_E_IO: there can be no child;
 * KHUB_E_NOMEM. */
int khub__trial_load(khub__trial *out, const khub__trial_of *what, khub_error *err);

#endif
