/* A repository of the Hub at one commit: which files it has, and bringing some of them into the cache. */
#ifndef FETCH_REMOTE_H
#define FETCH_REMOTE_H

#include "fetch/resolve.h"
#include "trust/policy.h"

/* How one request talks to the Hub: the caller's options, and one client for all repositories that it leads
 * to. */
typedef struct khub__session {
    khub_hub_options options;
    khub__client *client;
    khub__rules rules;                                             /* what is trusted */
    int (*pin)(void *user, khub__wanted *wanted, khub_error *err); /* NULL: none; else puts a commit in the
                                                                      place of where a redirect leads */
    void *pin_user;                                                /* handed to it */
    int only_looks; /* 1: what is damaged in the cache isn't fetched again */
} khub__session;

/* `options` may be NULL. Nothing is asked. */
int khub__session_open(khub__session *out, const khub_hub_options *options, khub_error *err);
void khub__session_close(khub__session *session);

typedef struct khub__remote {
    khub__session *session; /* the opener's */
    khub__store store;
    khub__wanted wanted;
    khub__resolved at;
    khub__tree tree; /* all files at the commit, in the cache or not */
    char *path;      /* of the snapshot, whether it is there or not */
    char *foreign;   /* why the list in the cache isn't believed, where there is no other; NULL: it is */
} khub__remote;

/* Resolves and learns the tree: from the cache, when nobody else may have written it, else from the Hub;
 * offline, from a snapshot that another tool
 * made. */
int khub__remote_open(khub__remote *out, khub__session *session, const khub__wanted *wanted, khub_error *err);
/* The same without following a redirect. *on: where kernel-status.toml leads, as far as it is pinned; its
 * repo.id is "" when it leads nowhere. */
int khub__remote_open_here(khub__remote *out, khub__wanted *on, khub__session *session,
                           const khub__wanted *wanted, khub_error *err);
void khub__remote_close(khub__remote *remote); /* frees what it holds and zeroes it */

/* Which files of the tree are meant. */
typedef int khub__pick_fn(void *user, const char *path);

/* Those files, in no order: first the ones that the snapshot lacked when they were picked (in their right
 * size), which only the network brings. */
typedef struct khub__picked {
    const khub__tree_file **files; /* borrowed from the remote's tree */
    size_t count, missing;
} khub__picked;

int khub__remote_pick(khub__picked *out, const khub__remote *remote, khub__pick_fn *pick, void *user,
                      khub_error *err);
void khub__picked_free(khub__picked *picked); /* frees what it holds and zeroes it */

/* Makes the files that are picked be in the snapshot, also those that someone takes out meanwhile. Nothing is
 * asked when none is missing. */
int khub__remote_bring(khub__remote *remote, khub__picked *picked, khub_error *err);

/* Fetches files anew that are in the snapshot and aren't what their names say. */
int khub__remote_mend(khub__remote *remote, const khub__tree_file **files, size_t count, khub_error *err);

/* For a file that is read as a whole, before it is fetched: KHUB_E_FORMAT when the list of files says that it
 * is longer than `most` bytes. */
int khub__remote_check_size(const khub__remote *remote, const char *path, uint64_t most, khub_error *err);

/* Reads a file of the tree, of at most `most` bytes, fetching it when it isn't there: the bytes are those
 * that its name in the list of files says. What isn't is fetched again, once, with a warning.
 * KHUB_E_UNTRUSTED, with both hashes: that can't be done, or didn't help. Whether the list itself is believed
 * is another question (khub__remote_check_believed). KHUB_E_NOTFOUND, KHUB_E_FORMAT, and what fetching says.
 */
int khub__remote_read(khub__bytes *out, khub__remote *remote, const char *path, size_t most, khub_error *err);

/* For a file whose word is taken for more than itself (where to go, what else to fetch). KHUB_E_UNTRUSTED:
 * the list of files isn't believed, or has no name for it, and others may write to it. KHUB_E_NOMEM, … */
int khub__remote_check_believed(const khub__remote *remote, const char *path, khub_error *err);

/* Picks and brings. */
int khub__remote_fetch(khub__remote *remote, khub__pick_fn *pick, void *user, khub_error *err);

#endif
