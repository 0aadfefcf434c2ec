/* What is used of a build whose content is proven: its libraries, held until the loader has them, and
 * layers.json. */
#ifndef TRUST_PROVEN_H
#define TRUST_PROVEN_H

#include "base/hash.h"
#include "trust/held.h"

typedef struct khub__proven_file {
    char *name; /* inside the build: "_relu.so", "lib/libhelp.so" */
    char content[KHUB__HASH_HEX_MAX + 1];
    khub__held held;
} khub__proven_file;

/* {0} is empty. */
typedef struct khub__proven {
    khub__proven_file *files;
    size_t count, capacity;
    char *layers; /* the text of layers.json; NULL: the build has none */
    size_t layers_bytes;
} khub__proven;

/* Takes *held over, which is zeroed then. `content`: the hash that its bytes have, hex digits. KHUB_E_NOMEM;
 * then *held is as it was. */
int khub__proven_add(khub__proven *proven, const char *name, const char *content, khub__held *held,
                     khub_error *err);

/* NULL: it isn't among them. */
const khub__proven_file *khub__proven_find(const khub__proven *proven, const char *name);

/* 1: none of them can have changed. */
int khub__proven_still(const khub__proven *proven);

void khub__proven_drop(khub__proven *proven); /* frees what it holds and zeroes it */

#endif
