#include "base/windows/wide.h"

#include <errno.h>
#include <stdlib.h>
#include <windows.h>

wchar_t *khub__wide(const char *text)
{
    int n = MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, text, -1, NULL, 0);
    wchar_t *wide = n > 0 ? malloc((size_t)n * sizeof(*wide)) : NULL;
    if (wide) MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, text, -1, wide, n);
    if (!wide) errno = n > 0 ? ENOMEM : EINVAL;
    return wide;
}

char *khub__narrow(const wchar_t *text)
{
    int n = WideCharToMultiByte(CP_UTF8, 0, text, -1, NULL, 0, NULL, NULL);
    char *narrow = n > 0 ? malloc((size_t)n) : NULL;
    if (narrow) WideCharToMultiByte(CP_UTF8, 0, text, -1, narrow, n, NULL, NULL);
    if (!narrow) errno = n > 0 ? ENOMEM : EINVAL;
    return narrow;
}
