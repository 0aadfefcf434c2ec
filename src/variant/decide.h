/* Does a build fit a machine, by its name? */
#ifndef VARIANT_DECIDE_H
#define VARIANT_DECIDE_H

#include <khub/variant.h>

#include "variant/name.h"

/* The decision on one build and the reason, in words; "" when accepted without a remark. */
typedef struct khub__verdict {
    khub_decision_kind kind;
    unsigned met; /* rules, before the one that fails */
    char reason[512];
} khub__verdict;

/* Applies the rules in their order; the first that fails gives the reason, with the value of the build and
 * that of the machine. */
void khub__decide(khub__verdict *out, const khub__variant_name *name, const khub_platform *platform);

/* Appends to the reason. Text that doesn't fit is cut with "..."; control characters become "?", since some
 * of the words come from files and the reason ends on a terminal. */
void khub__verdict_add(khub__verdict *verdict, const char *format, ...) KHUB_PRINTF(2, 3);

#endif
