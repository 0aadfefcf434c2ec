#include "base/access_list.h"

#include <errno.h>
#include <sys/acl.h>
#include <sys/types.h>

int khub__has_access_list(const char *path, int fd)
{
    acl_t list = fd >= 0 ? acl_get_fd_np(fd, ACL_TYPE_EXTENDED) : acl_get_file(path, ACL_TYPE_EXTENDED);
    if (!list) return errno != ENOENT; /* there is none */
    acl_free(list);
    return 1;
}
