/* Libraries that are opened when they are first needed, through tables of function pointers. One source per
 * operating system. */
#ifndef BASE_SYMBOLS_H
#define BASE_SYMBOLS_H

#include <khub/error.h>

#include <stddef.h>

/* A function of the library, and where in a struct of pointers it goes. */
typedef struct khub__symbol {
    const char *name;
    size_t offset;
} khub__symbol;

/* Opens the first library of `names` (NULL-terminated) that is there and has all of `symbols` (ends with a
 * name NULL), and fills in the pointers of *table. It stays open for good. `missing` is the status when there
 * is none; the message has the loader's words about the first. */
int khub__symbols_open(void *table, const khub__symbol *symbols, const char *const *names, int missing,
                       khub_error *err);

#endif
