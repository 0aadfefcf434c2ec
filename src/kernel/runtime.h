/* libtvm_ffi in this process: once, whichever kernel comes first. */
#ifndef KERNEL_RUNTIME_H
#define KERNEL_RUNTIME_H

#include <khub/error.h>

/* Makes sure that libtvm_ffi is in the process, with its symbols for all, and that values use it: the one
 * that is there already, else the one that src/platform finds. Any thread. KHUB_E_NOTFOUND with the places
 * looked at, KHUB_E_LOAD, KHUB_E_NOMEM; the next call tries again. */
int khub__runtime_open(khub_error *err);

#endif
