#include "base/error.h"

#ifdef __clang_analyzer__ /* the functions themselves */
#undef khub__fail
#undef khub__fail_memory
#undef khub__fail_errno
#undef khub__given
#endif

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

static const char *const names[] = {
    "KHUB_OK",          "KHUB_E_INVAL",   "KHUB_E_NOMEM",        "KHUB_E_IO",      "KHUB_E_NOTFOUND",
    "KHUB_E_FORMAT",    "KHUB_E_NOBUILD", "KHUB_E_NEEDS_PYTHON", "KHUB_E_LOAD",    "KHUB_E_KERNEL",
    "KHUB_E_UNTRUSTED", "KHUB_E_OFFLINE", "KHUB_E_NETWORK",      "KHUB_E_NOSPACE", "KHUB_E_UNSUPPORTED",
    "KHUB_E_CANCELED",  "KHUB_E_DENIED",
};

const char *khub_status_name(int status)
{
    int i = status > 0 || status < -(int)(sizeof(names) / sizeof(*names)) ? -1 : -status;
    return i >= 0 && (size_t)i < sizeof(names) / sizeof(*names) ? names[i] : "KHUB_E_?";
}

void khub_error_clear(khub_error *err)
{
    if (!err) return;
    err->code = KHUB_OK;
    err->message[0] = 0;
}

int khub__fail(khub_error *err, int code, const char *format, ...)
{
    if (!err || err->code != KHUB_OK) return code;
    va_list args;
    va_start(args, format);
    int n = vsnprintf(err->message, sizeof(err->message), format, args);
    va_end(args);
    err->code = code;
    if (n < (int)sizeof(err->message)) return code;
    size_t cut = sizeof(err->message) - 4; /* not inside a UTF-8 sequence */
    while (cut > 0 && ((unsigned char)err->message[cut] & 0xC0) == 0x80)
        cut--;
    memcpy(err->message + cut, "...", 4);
    return code;
}

int khub__fail_memory(khub_error *err, const char *what)
{
    return khub__fail(err, KHUB_E_NOMEM, "out of memory while %s", what);
}

#ifndef EDQUOT /* a system without quotas */
#define EDQUOT ENOSPC
#endif

int khub__fail_errno(khub_error *err, const char *path, const char *what)
{
    int e = errno;
    int code = e == ENOENT || e == ENOTDIR                ? KHUB_E_NOTFOUND
               : e == ENOSPC || e == EDQUOT || e == EFBIG ? KHUB_E_NOSPACE
               : e == ENOMEM                              ? KHUB_E_NOMEM
                                                          : KHUB_E_IO;
    return khub__fail(err, code, "%s: can't %s: %s", path, what, strerror(e));
}

int khub__given(const char *function, int all, khub_error *err)
{
    return all ? KHUB_OK
               : khub__fail(err, KHUB_E_INVAL, "%s: an argument that must be given is NULL", function);
}
