/* Signals that a library's code ends a process by. One source per operating system. */
#ifndef BASE_SIGNALS_H
#define BASE_SIGNALS_H

/* "SIGSEGV", for those that a library's code ends a process by; NULL: another one. Static. */
const char *khub__signal_name(int number);

/* "Segmentation fault". Valid until the next call. */
const char *khub__signal_words(int number);

/* They end this process from now on, whatever the program, or a library that it loaded, does about them. */
void khub__signals_end_it(void);

/* dlopen, after which the program does about them what it did before: a library may put a handler of its own
 * in the place of the program's when it is opened (libtvm_ffi does). */
void *khub__dlopen(const char *path, int flags);

#endif
