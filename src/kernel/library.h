/* One kernel library in this process. Once in, it stays: results, thread-local destructors and atexit
 * functions may live in it (user reports, F6). */
#ifndef KERNEL_LIBRARY_H
#define KERNEL_LIBRARY_H

#include "trust/proven.h"

#include <khub/function.h>

/* A function it exports as __tvm_ffi_NAME, with those that describe it, or an operator that it registers with
 * Torch. Texts are there for good. */
typedef struct khub__library_function {
    const char *name;
    khub_function function;
    const char *signature; /* an operator's schema; NULL: a function's, which is asked for it */
    const char *refusal;   /* why the operator can't be called; NULL: it can */
    khub_call_fn schema;   /* __tvm_ffi__metadata_NAME; NULL: none */
    khub_call_fn doc;      /* __tvm_ffi__doc_NAME; NULL: none */
} khub__library_function;

typedef struct khub__library {
    const char *path;
    const khub__library_function *functions; /* by name in byte order */
    size_t function_count;
} khub__library;

/* Opens the library at `path`, symbolic links as they are: a library finds its siblings by the directory it
 * was opened in. All its symbols are bound now, and none of them are seen by others. The same path again
 * gives the same library. Any thread. Everything is looked at before its code runs. KHUB_E_LOAD in plain
 * words, also when the file was replaced since it was opened; KHUB_E_NOTFOUND, KHUB_E_IO, KHUB_E_UNSUPPORTED,
 * KHUB_E_NOMEM.
 * `operators` (NULL: functions are exported as tvm-ffi does): the namespace that the library registers its
 * operators in, with the Torch that is in the process (torch/torch.h). KHUB_E_LOAD: another library has it,
 * or nothing was registered there. With `proven` (NULL: whatever is at the path) exactly the bytes that are
 * held are loaded, also for what the library needs from its own directory; KHUB_E_UNTRUSTED: it isn't among
 * them, or somebody writes to one of them just now (khub__proven_still). The same library by its path is then
 * one of the same content. */
int khub__library_open(const khub__library **out, const char *path, const char *operators,
                       const khub__proven *proven, khub_error *err);

/* NULL: there is no such function. */
const khub__library_function *khub__library_find(const khub__library *library, const char *name);

#endif
