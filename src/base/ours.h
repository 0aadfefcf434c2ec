/* Files that nobody but this user and root can change. One source per operating system. */
#ifndef BASE_OURS_H
#define BASE_OURS_H

#include <khub/error.h>

/* 1: a file or directory (no link) of this owner, group and mode (as stat has them) is this user's or root's,
 * and nobody else may write to it. A group of this user's own is nobody else: his primary one, not root's
 * (0), of his name, with no other member, and the primary one of nobody else in /etc/passwd. Which file it
 * is, `fd` or (-1) `path`, links followed, is asked only where the group may write: an access list may let
 * others, too. */
int khub__is_ours(uint32_t owner, uint32_t group, uint32_t mode, const char *path, int fd);

/* 1: no account in the file `passwd` (as /etc/passwd) but `user` has the group as its primary one, where it
 * isn't listed as a member. 0: one has, or the file can't be read. Accounts of a directory service aren't
 * seen. */
int khub__is_primary_group_of_one(const char *passwd, const char *user, uint32_t group);

/* KHUB_OK when what `path` leads to (a file or a directory), and each directory and link on the way from the
 * root, belongs to this user or to root, and others may not write to it (a group of
 * this user's own isn't others, see above); on the way they may where they can't
 * replace what isn't theirs (the sticky bit, /tmp). *real (may be NULL) is the path without links, the
 * caller's; NULL after a failure, but for KHUB_E_NOTFOUND of the last part of the path. KHUB_E_UNTRUSTED
 * names what, who and what to do; KHUB_E_NOTFOUND: it isn't there, and all that is there of the way is ours;
 * KHUB_E_IO, KHUB_E_NOMEM. */
int khub__path_is_ours(char **real, const char *path, khub_error *err);

/* Makes the directory and those above it, for this user alone. One that is there stays as it is. KHUB_E_IO,
 * KHUB_E_NOSPACE, KHUB_E_NOMEM. */
int khub__make_our_directory(const char *path, khub_error *err);

#endif
