/* The path under which the loader is given a proven library: one that leads to the open file that was proven,
 * whatever is put in place of it on disk meanwhile, and that no library of this process was opened by before
 * (the loader takes the one it knows by a name without a look at the file). */
#ifndef KERNEL_POSIX_ENTRANCE_H
#define KERNEL_POSIX_ENTRANCE_H

#include "kernel/posix/room.h"
#include "trust/proven.h"

#include <limits.h>

typedef struct khub__entrance {
    char path[PATH_MAX]; /* for dlopen */
    const char *build;   /* the directory that the files are from; borrowed */
    const char *name;    /* of the library in it; borrowed */
    const khub__proven *proven;
    char dir[PATH_MAX]; /* of links to all proven libraries, in the room; "": there is none */
    khub__room room;
} khub__entrance;

/* For the library `name` of `build`, which is among the proven ones. `alone`: there is no other, it has no
 * search path, and was looked at (search.h): it is opened by its number under /proc. Else all of them are
 * looked at, and opened by links in a private directory, the one place where they find each other.
 * KHUB_E_LOAD, KHUB_E_UNTRUSTED: khub__search_check's. KHUB_E_IO: no such directory can be made. (The build's
 * own directory isn't taken then: a file that is put there would run before it is found out.) */
int khub__entrance_open(khub__entrance *out, const khub__proven *proven, const char *build, const char *name,
                        int alone, khub_error *err);

/* The loader has them: from now on they go by their paths in `build`, for debuggers and for whoever asks
 * dladdr. `handle` may be NULL (the loader refused). The room is left. */
void khub__entrance_close(khub__entrance *entrance, void *handle);

/* KHUB_E_LOAD: what the loader has just said (dlerror) of the library or one that it needs, with the paths
 * that they have in `build`. */
int khub__entrance_refused(const khub__entrance *entrance, khub_error *err);

#endif
