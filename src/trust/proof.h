/* One build before it is loaded: whether its files are what they should be. */
#ifndef TRUST_PROOF_H
#define TRUST_PROOF_H

#include "base/file.h"
#include "trust/digest.h"
#include "trust/proven.h"
#include "trust/receipt.h"
#include "trust/trust.h"

typedef struct khub__proof {
    /* The caller's, borrowed. */
    khub_trust *trust;                   /* takes the decisions */
    const char *about;                   /* whose words they are: "ORG/NAME", or a directory */
    const char *build;                   /* the directory */
    const khub__store *store;            /* NULL: a directory of this machine that the caller named */
    const char *commit, *variant;        /* with `store` */
    const khub__tree_file *const *files; /* that the commit has in it, by path, with `store` */
    size_t file_count;
    const char *foreign; /* why the list of files isn't believed; NULL: it is */
    int refuse_unknown;  /* 1: a file of which nothing says what it should be is refused; 0: noted */
    int whole; /* 1: every file is hashed, whatever a receipt says, and each that is wrong is a decision */
    /* Found. */
    khub__receipt receipt;
    int read_believed;               /* how many of the files that were read are as the receipt has them */
    int is_signed;                   /* 1: metadata.json is proven by an accepted signature */
    char *judged_by;                 /* by whom it was judged; NULL: there is none */
    const khub__tree_file **damaged; /* files that aren't what the commit says */
    size_t damaged_count;
    khub_error damage; /* the first of them, in words */
} khub__proof;

/* Reads the receipt. With nothing to prove by (a snapshot of another tool, without a list of files), what is
 * there is believed only where nobody else may write. KHUB_E_NOMEM. */
int khub__proof_open(khub__proof *proof, khub_error *err);
void khub__proof_close(khub__proof *proof); /* frees what was found */

/* What the commit says of this file of the build; NULL: it has none. */
const khub__tree_file *khub__proof_listed(const khub__proof *proof, const char *path);

/* Reads a file of the build, of at most `most` bytes, that is what the commit says. KHUB_E_UNTRUSTED with
 * damaged_count: it isn't; khub__file_read's. */
int khub__proof_read(khub__bytes *out, khub__proof *proof, const char *path, size_t most, khub_error *err);

/* Judges all files, `claim` (NULL: metadata.json has no digest) too, and holds the libraries among them in
 * *out (may be NULL: nothing is to be loaded), with the text of layers.json. `copy`: in memory; else where
 * that is enough, by a lease. What was proven is kept as a receipt. KHUB_E_UNTRUSTED: damaged_count says
 * whether it is damage that fetching again may mend, which isn't a decision yet; nor is that somebody writes
 * to a file just now, which `copy` gets over; all else is. KHUB_E_IO, KHUB_E_UNSUPPORTED, KHUB_E_NOMEM. */
int khub__proof_content(khub__proven *out, khub__proof *proof, const khub__digest_claim *claim, int copy,
                        khub_error *err);

/* The damage can't be mended: it becomes a decision. KHUB_E_UNTRUSTED. */
int khub__proof_refuse_damage(khub__proof *proof, khub_error *err);

/* Forgets the damage, for another try. */
void khub__proof_again(khub__proof *proof);

/* ---- for what judges it: one file (item.h), all of them (content.c) ---- */

/* "ORG/NAME: build/VARIANT/PATH"; for a directory of this machine its path. */
enum { KHUB__PROOF_NAME = 600 };
void khub__proof_name_file(char out[KHUB__PROOF_NAME], const khub__proof *proof, const char *path);

/* The path of one of `files` inside the build. */
const char *khub__proof_inner(const khub__proof *proof, const khub__tree_file *file);

/* Notes that a file (`listed` NULL: the commit hasn't) isn't what it should be. KHUB_E_NOMEM. */
int khub__proof_damage(khub__proof *proof, const khub__tree_file *listed, const char *path, const char *words,
                       khub_error *err);

/* What fetching again can't mend: a decision about `about`. KHUB_E_UNTRUSTED; KHUB_OK where it goes on to
 * tell all that is wrong (`whole`). */
int khub__proof_refuse(const khub__proof *proof, const char *about, khub_error *err, const char *format, ...)
    KHUB_PRINTF(4, 5);

/* 1: it has the size that the commit says, or none is known. 0, with words. */
enum { KHUB__SIZE_WORDS = 200 };
int khub__proof_is_size(char words[KHUB__SIZE_WORDS], const khub__tree_file *listed, const khub__held *held);

#endif
