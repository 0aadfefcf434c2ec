/* A directory that is made beside its place and put there whole, or leaves nothing behind. One source per
 * operating system. */
#ifndef PUBLISH_FOLDER_H
#define PUBLISH_FOLDER_H

#include <khub/error.h>

typedef struct khub__folder khub__folder;

/* Begins the directory PARENT/SUB/NAME in a temporary one in PARENT; what isn't there of PARENT/SUB is made.
 * Unless `replace`, something at its place is KHUB_E_INVAL. Else KHUB_E_IO, KHUB_E_NOSPACE, KHUB_E_NOMEM. */
int khub__folder_open(khub__folder **out, const char *parent, const char *sub, const char *name, int replace,
                      khub_error *err);

/* Where its files are until it is put in place. */
const char *khub__folder_path(const khub__folder *folder);

/* Puts a file at `path` in it, with the directories on the way: a copy of the regular file `from`, executable
 * as that is, or some bytes. Something that is there already is KHUB_E_IO. */
int khub__folder_copy(khub__folder *folder, const char *path, const char *from, khub_error *err);
int khub__folder_write(khub__folder *folder, const char *path, const void *data, size_t bytes,
                       khub_error *err);

/* Puts it in place, what was there before goes with `replace`; without it KHUB_E_INVAL when something came
 * there meanwhile. The folder is gone either way, and after a failure everything is as before. */
int khub__folder_commit(khub__folder *folder, khub_error *err);
void khub__folder_discard(khub__folder *folder); /* NULL is a no-op */

/* *within: the directory `path`, or the one that it would be made in, is `folder` or lies in it. */
int khub__folder_within(int *within, const char *path, const char *folder, khub_error *err);

#endif
