/* One build of a repository: which files of its directory are what. */
#ifndef KERNEL_BUILD_H
#define KERNEL_BUILD_H

#include "kernel/metadata.h"

/* The path of the native library in directory `build`: ID.so, ID.abi3.so, NAME.so, or the only other *.so.
 * The caller's (khub_free). KHUB_E_NOTFOUND: none, with the names tried; KHUB_E_FORMAT: several, listed;
 * KHUB_E_IO, KHUB_E_NOMEM. */
int khub__build_library(char **path, const char *build, const khub__metadata *metadata, khub_error *err);

#endif
