/* What is asked of a metadata.json that is published, beyond what one needs to be read here: the Python
 * package refuses a build for it, or a machine's GPU isn't found in it. */
#ifndef PUBLISH_STRICT_H
#define PUBLISH_STRICT_H

#include <khub/error.h>

#include <jansson.h>

/* `metadata` is one that khub__metadata_parse reads; `file` stands for it in messages. KHUB_E_FORMAT: field
 * and fact. */
int khub__strict_check(const json_t *metadata, const char *file, khub_error *err);

/* 1 for the address of a git repository: SCHEME://HOST… or USER@HOST:PATH. */
int khub__is_git_address(const char *text);

#endif
