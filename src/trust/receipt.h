/* What was proven about a build and needn't be proven again while nothing changes: receipt.COMMIT.BUILD.txt
 * in the repository's folder of the cache, a line for each fact. A receipt isn't parsed but compared: it
 * counts when it is, byte for byte, what would be written about the files as they are now. */
#ifndef TRUST_RECEIPT_H
#define TRUST_RECEIPT_H

#include "cache/store.h"
#include "trust/held.h"

#include <khub/signature.h>

/* A file or a directory of the build, as it was when it was looked at. */
typedef struct khub__receipt_entry {
    const char *path; /* inside the build; "": the build's directory */
    const char *name; /* of a file: the hash that it should have and has */
    khub__identity identity;
} khub__receipt_entry;

typedef struct khub__receipt_facts {
    const khub__receipt_entry *files, *directories; /* files by path */
    size_t file_count, directory_count;             /* no directories: the next one lists them again */
    int digest;                                     /* 1: metadata.json's digest holds */
    const char *judged_by; /* whom a signature was accepted by; NULL: there is none, or none counts */
    const khub_signature *signature; /* with judged_by */
} khub__receipt_facts;

/* One that was read; {0}: none. */
typedef struct khub__receipt {
    char *text;
    const char *files, *directories, *signature, *company; /* where these lines start in it */
} khub__receipt;

/* What others than this user and root may have written, is of something else, or can't be read is none.
 * KHUB_E_NOMEM. */
int khub__receipt_read(khub__receipt *out, const khub__store *store, const char *commit, const char *build,
                       khub_error *err);
void khub__receipt_free(khub__receipt *receipt);

/* 1: these are all the files, and as they were. */
int khub__receipt_has_files(const khub__receipt *receipt, const khub__receipt_entry *files, size_t count);

/* 1: this file, of this name and identity, was proven. */
int khub__receipt_has(const khub__receipt *receipt, const khub__receipt_entry *file);

/* 1: all directories below `directory` are as they were, so that nothing was added or replaced. */
int khub__receipt_has_directories(const khub__receipt *receipt, const char *directory);

int khub__receipt_digest(const khub__receipt *receipt); /* 1: the digest was found to hold */

/* 1: a signature was accepted by the same: *out (khub_signature_free) is what was found. 0: none was;
 * KHUB_E_NOMEM. */
int khub__receipt_signature(khub_signature *out, const khub__receipt *receipt, const char *judged_by,
                            khub_error *err);

/* Writes one whole, but for facts that no line can hold, and puts it in the place of *receipt.
 * khub__disk_put's errors, with none in its place; who can't have one proves again next time. */
int khub__receipt_write(khub__receipt *receipt, const khub__store *store, const char *commit,
                        const char *build, const khub__receipt_facts *facts, khub_error *err);

/* The lines at its end that say with what the build was loaded before (kernel/rehearsal.h); "": it wasn't. */
const char *khub__receipt_company(const khub__receipt *receipt);

/* Writes it again with these lines, which start with "loaded ", in their place. khub__disk_put's errors. */
int khub__receipt_keep_company(const khub__receipt *receipt, const khub__store *store, const char *commit,
                               const char *build, const char *lines, khub_error *err);

#endif
