/* A private directory for as long as the loader needs it. Nothing is left of it: neither when the process
 * goes on nor when it ends by _exit or a signal. One that ends in the middle of loading leaves it; the next
 * process that makes one removes it. */
#ifndef KERNEL_POSIX_ROOM_H
#define KERNEL_POSIX_ROOM_H

#include <limits.h>

typedef struct khub__room {
    char path[PATH_MAX]; /* "": there is none */
    int lock;            /* the open directory, locked: it is in use */
} khub__room;

/* Nobody else gets in, nor knows its path: a library may look beside itself when the room is gone, and what
 * another user makes then can't have its name. 0, or -1 with errno; then there is nothing to leave. */
int khub__room_make(khub__room *out);

/* What was made in it must be gone. */
void khub__room_leave(khub__room *room);

#endif
