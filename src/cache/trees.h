/* trees/COMMIT.json as text. */
#ifndef CACHE_TREES_H
#define CACHE_TREES_H

#include "hub/tree.h"

/* `file` is for messages. KHUB_E_FORMAT, KHUB_E_UNSUPPORTED (another format_version), KHUB_E_NOMEM. */
int khub__trees_parse(khub__tree *out, const char *text, size_t length, const char *file, khub_error *err);

/* The text that huggingface_hub would write. The caller's; NULL: no memory, or longer than 64 MiB. */
char *khub__trees_text(const khub__tree *tree);

#endif
