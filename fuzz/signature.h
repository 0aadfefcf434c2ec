/* The trusted root and the signed bytes that the seeds of the targets about signatures go with. */
#ifndef FUZZ_SIGNATURE_H
#define FUZZ_SIGNATURE_H

#include "trust/sigstore/root.h"

#include <stdio.h>
#include <stdlib.h>

#define SIGNED "{\"name\": \"relu\"}\n"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static inline void check(int holds)
{
    if (!holds) abort();
}

/* Read once, and kept. */
static inline const khub_trusted_root *the_root(void)
{
    static khub_trusted_root *root;
    khub_error err = {0};
    if (!root && khub_trusted_root_open(&root, KHUB_SOURCE "/tests/signature/root.json", &err) != KHUB_OK) {
        fprintf(stderr, "%s\n", err.message);
        abort();
    }
    return root;
}

#endif
