/* The file system that a path is on. */
#ifndef KERNEL_POSIX_MOUNT_H
#define KERNEL_POSIX_MOUNT_H

#include <khub/error.h>

/* KHUB_E_LOAD with the mount point when no program may be run from where `path` is (noexec): the loader says
 * no more than "failed to map segment" then. */
int khub__mount_check(const char *path, khub_error *err);

#endif
