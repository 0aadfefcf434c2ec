/* Access lists (ACLs) of files, beside owner, group and mode. One source per operating system. */
#ifndef BASE_ACCESS_LIST_H
#define BASE_ACCESS_LIST_H

/* 1: the file has a list of further users and groups who may get at it, or that can't be found out. The
 * group's bits of its mode are then the most that any of them may, not the group's own. `fd`: the open file;
 * -1: the one at `path`, links followed. */
int khub__has_access_list(const char *path, int fd);

#endif
