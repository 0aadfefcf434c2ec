/* The names of signals. One source per operating system. */
#ifndef BASE_SIGNALS_H
#define BASE_SIGNALS_H

/* "SIGSEGV", for those that a library's code ends a process by; NULL: another one. Static. */
const char *khub__signal_name(int number);

#endif
