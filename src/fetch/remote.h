/* A repository of the Hub at one commit: which files it has, and bringing some of them into the cache. */
#ifndef FETCH_REMOTE_H
#define FETCH_REMOTE_H

#include "fetch/resolve.h"

/* How one request talks to the Hub: the caller's options, and one client for all repositories that it leads
 * to. */
typedef struct khub__session {
    khub_hub_options options;
    khub__client *client;
    int (*pin)(void *user, khub__wanted *wanted, khub_error *err); /* NULL: none; else puts a commit in the
                                                                      place of where a redirect leads */
    void *pin_user;                                                /* handed to it */
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
} khub__remote;

/* Resolves and learns the tree: from the cache, else from the Hub; offline, from a snapshot that another tool
 * made. */
int khub__remote_open(khub__remote *out, khub__session *session, const khub__wanted *wanted, khub_error *err);
void khub__remote_close(khub__remote *remote); /* frees what it holds and zeroes it */

/* Which files of the tree are meant. */
typedef int khub__pick_fn(void *user, const char *path);

/* Makes those files be in the snapshot. What is there in its right size isn't asked for. */
int khub__remote_bring(khub__remote *remote, khub__pick_fn *pick, void *user, khub_error *err);

/* 1 when bringing those files would need the network. */
int khub__remote_lacks(const khub__remote *remote, khub__pick_fn *pick, void *user);

#endif
