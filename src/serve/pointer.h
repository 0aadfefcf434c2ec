/* git-lfs pointer files: the text that stands in git for a large file. */
#ifndef SERVE_POINTER_H
#define SERVE_POINTER_H

#include <khub/error.h>

/* Bytes of the pointer to a file of that size. */
int serve_pointer_size(uint64_t size);

/* git's name of the pointer. */
int serve_pointer_oid(char oid[41], const char *sha256, uint64_t size, khub_error *err);

/* Reads a pointer. 0, or -1 and nothing changed: the text is none. */
int serve_pointer_read(char sha256[65], uint64_t *size, const char *text, size_t length);

#endif
