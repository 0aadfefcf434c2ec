/* Versions as the files of a package state them. Each function returns the pool's text, or NULL: nothing
 * there that is a version. */
#ifndef PLATFORM_STATED_H
#define PLATFORM_STATED_H

#include "platform/pool.h"

/* What follows "NAME." in a file's name: "libcudart.so.12.8.90" states 12.8.90. */
const char *khub__stated_name(const char *path, const char *name, khub__pool *pool);

/* What stands between quotes on a line of DIR/FILE behind `key`:  __version__ = '2.10.0+cpu'. */
const char *khub__stated_quoted(const char *dir, const char *file, const char *key, khub__pool *pool);

/* The numbers that the header DIR/FILE defines as PREFIX_MAJOR, PREFIX_MINOR and PREFIX_PATCH. */
const char *khub__stated_defines(const char *dir, const char *file, const char *prefix, khub__pool *pool);

/* The first word of DIR/FILE, which has little else in it. */
const char *khub__stated_word(const char *dir, const char *file, khub__pool *pool);

/* The ancestor of a path, `up` folders above the file's own. */
const char *khub__above(const char *path, int up, khub__pool *pool);

#endif
