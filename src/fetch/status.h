/* kernel-status.toml: where a repository's publisher sends those who ask for it. */
#ifndef FETCH_STATUS_H
#define FETCH_STATUS_H

#include "hub/repo.h"

enum { KHUB__STATUS_MAX_BYTES = 64 << 10 };

typedef struct khub__status {
    char destination[KHUB__REPO_ID_MAX + 1]; /* "org/name"; "": no redirect */
    char revision[KHUB__REVISION_MAX + 1];   /* for who asked for a revision; a version stays the version */
} khub__status;

/* Reads `kind`, `destination` and `revision`, strings before the first table; of TOML, comments, basic and
 * literal strings, and lines of other keys, which are passed over. A kind that isn't known is a notice in the
 * log and no redirect. `file` stands for the text in messages. KHUB_E_FORMAT: the line and the fact. */
int khub__status_parse(khub__status *out, const char *text, size_t length, const char *file, khub_error *err);

#endif
