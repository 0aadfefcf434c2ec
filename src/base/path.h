/* Paths as text. Whether something is there is base/file.h's business. */
#ifndef BASE_PATH_H
#define BASE_PATH_H

#include <khub/export.h>

/* "DIR/NAME", or NAME alone when it is absolute or DIR is empty. NULL: no memory. Freed with khub_free. */
char *khub__path_join(const char *dir, const char *name);

/* All before the last "/" ("." when there is none, "/" for the root). NULL: no memory. */
char *khub__path_parent(const char *path);

/* What follows the last "/"; points into `path`. */
const char *khub__path_name(const char *path);

/* 1 for what a user writes to mean a file of this machine: starts with "/", "./" or "../", or is "." or "..".
 */
int khub__path_is_local(const char *text);

#endif
