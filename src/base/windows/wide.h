/* Windows' own text, UTF-16, from khub's, and back. */
#ifndef BASE_WINDOWS_WIDE_H
#define BASE_WINDOWS_WIDE_H

#include <wchar.h>

/* The C library's memory (free); NULL: no memory, or no such text (then errno says which). */
wchar_t *khub__wide(const char *text);
char *khub__narrow(const wchar_t *text);

#endif
