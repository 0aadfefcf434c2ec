#include "platform/linux/small.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

enum { MAX_PATH = 4096 };

long khub__small_read(char *buffer, size_t size, const char *root, const char *path)
{
    char full[MAX_PATH];
    int n = snprintf(full, sizeof(full), "%s%s", root, path);
    buffer[0] = 0;
    if (n < 0 || (size_t)n >= sizeof(full)) return -1;
    int fd = open(full, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return -1;
    size_t length = 0;
    while (length < size - 1) {
        ssize_t got = read(fd, buffer + length, size - 1 - length);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) break;
        length += (size_t)got;
    }
    close(fd);
    buffer[length] = 0;
    return (long)length;
}
