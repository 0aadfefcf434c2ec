/* Kernels that need other kernels: the names in metadata.json's "kernel-depends", and the way down to one. */
#ifndef KERNEL_NEEDS_H
#define KERNEL_NEEDS_H

#include "hub/repo.h"
#include "kernel/metadata.h"

enum { KHUB__NEED_NAME_MAX = KHUB__REPO_ID_MAX + KHUB__REVISION_MAX + 3 };

/* "org/name@v1". Only a name of the Hub: who publishes a kernel doesn't say which directories of this machine
 * are loaded. KHUB_E_FORMAT. */
int khub__need_name(char name[KHUB__NEED_NAME_MAX], const khub__metadata_need *need, khub_error *err);

/* The names on the way to a kernel that another one needs. */
typedef struct khub__chain {
    const char *name;
    const struct khub__chain *before; /* NULL: the one that the caller asked for */
} khub__chain;

/* KHUB_E_FORMAT when `name` is on the way already, or the way is too long: "a@v1 needs b@v1 needs a@v1: …" */
int khub__chain_check(const khub__chain *last, const char *name, khub_error *err);

#endif
