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

/* In the program itself, which runs wherever it is copied to. */
extern const char root_json[], root_json_end[];
__asm__(".pushsection .rodata\n"
        ".global root_json, root_json_end\n"
        "root_json: .incbin \"" KHUB_SOURCE "/tests/signature/root.json\"\n"
        "root_json_end: .byte 0\n"
        ".popsection\n");

/* Read once, and kept. */
static inline const khub_trusted_root *the_root(void)
{
    static khub_trusted_root *root;
    khub_error err = {0};
    size_t length = (size_t)(root_json_end - root_json);
    if (!root && khub__root_read(&root, root_json, length, "root.json", &err) != KHUB_OK) {
        fprintf(stderr, "%s\n", err.message);
        abort();
    }
    return root;
}

#endif
