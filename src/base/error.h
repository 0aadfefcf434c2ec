/* How a function of khub fails: `return khub__fail(err, KHUB_E_IO, "%s: %s", path, strerror(errno));` */
#ifndef BASE_ERROR_H
#define BASE_ERROR_H

#include <khub/error.h>

/* Writes the message unless *err (may be NULL) has one already, and returns `code`. */
int khub__fail(khub_error *err, int code, const char *format, ...) KHUB_PRINTF(3, 4);

/* KHUB_E_NOMEM while doing `what` ("reading model.safetensors"). */
int khub__fail_memory(khub_error *err, const char *what);

/* KHUB_E_NOTFOUND, KHUB_E_NOSPACE or KHUB_E_IO by errno: "PATH: can't WHAT: words of the system". */
int khub__fail_errno(khub_error *err, const char *path, const char *what);

/* KHUB_E_INVAL unless `all` holds: which pointers a public function can't do without. */
int khub__given(const char *function, int all, khub_error *err);

#ifdef __clang_analyzer__ /* it reads one source at a time, and must know when these return KHUB_OK */
#define khub__fail(err, code, ...)        ((khub__fail)(err, code, __VA_ARGS__), (code))
#define khub__fail_memory(err, what)      ((khub__fail_memory)(err, what), KHUB_E_NOMEM)
#define khub__fail_errno(err, path, what) ((khub__fail_errno)(err, path, what), KHUB_E_IO)
#define khub__given(function, all, err)   ((all) ? KHUB_OK : ((khub__given)(function, 0, err), KHUB_E_INVAL))
#endif

#endif
