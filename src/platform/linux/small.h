/* Small files of /proc and /sys, read without taking memory. */
#ifndef PLATFORM_LINUX_SMALL_H
#define PLATFORM_LINUX_SMALL_H

#include <khub/export.h>

/* Reads up to size - 1 bytes of ROOT/PATH into `buffer` and ends them with NUL. Their number, or -1. */
long khub__small_read(char *buffer, size_t size, const char *root, const char *path);

#endif
