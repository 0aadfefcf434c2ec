#include "base/access_list.h"

#include <errno.h>
#include <stddef.h>
#include <sys/types.h>
#include <sys/xattr.h>

/* A list that says no more than the mode isn't kept as an attribute. */
int khub__has_access_list(const char *path, int fd)
{
    static const char list[] = "system.posix_acl_access";
    ssize_t bytes = fd >= 0 ? fgetxattr(fd, list, NULL, 0) : getxattr(path, list, NULL, 0);
    return bytes >= 0 || (errno != ENODATA && errno != ENOTSUP);
}
