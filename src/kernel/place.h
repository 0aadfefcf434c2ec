/* Where the name of a kernel leads: to a directory of this machine or to a repository of the Hub. */
#ifndef KERNEL_PLACE_H
#define KERNEL_PLACE_H

#include "fetch/lockfile.h"
#include "kernel/repository.h"

/* What the names of one request share. */
typedef struct khub__way {
    const khub_hub_options *hub;   /* the caller's; may be NULL */
    const khub_platform *platform; /* that builds are chosen for, to tell the Hub; NULL: not known yet */
    khub__session session;         /* opened by the first name of the Hub */
    khub__rules rules;   /* what is trusted, for a build of this machine; session.rules is the Hub's */
    khub__lockfile lock; /* commits that are fixed */
    int locked;          /* 1: a name of the Hub must be in it */
    int only_fetch;      /* 1: nothing is loaded */
    int verifies;        /* 1: every file is hashed anew, each that is wrong is told, and nothing is mended */
    int only_metadata;   /* 1: of a build no more is fetched than what describes it */
    char **done;         /* kernels that others need and that were got: each is got once */
    size_t done_count, done_capacity;
} khub__way;

/* `lock` NULL: none. Its errors are khub__lockfile_read's. */
int khub__way_open(khub__way *out, const khub_hub_options *hub, const char *lock, khub_error *err);
void khub__way_close(khub__way *way); /* frees what it holds and zeroes it */

/* Opens way->session, once. khub__session_open's errors. */
int khub__way_session(khub__way *way, khub_error *err);

typedef struct khub__place {
    khub__repository repository;
    khub__remote remote; /* of a name of the Hub; else zeroed */
} khub__place;

/* Makes the requests from now on name the platform's backend. KHUB_E_NOMEM. */
int khub__way_describe(const khub__session *session, const khub_platform *platform, khub_error *err);

/* LOCAL_KERNELS, a path, a built-in kernel, the lock, the cache, the Hub: the first that has it. *out must
 * stay where it is until it is closed. Errors: khub__repository_find's and _open's, khub_download's. */
int khub__place_open(khub__place *out, khub__way *way, const char *name, khub_error *err);
/* What is trusted for the kernels of this place. */
khub__rules *khub__place_rules(khub__place *place, khub__way *way);

/* Begins the verdict on a build of the place, called `name` by the caller: at the level that is asked for,
 * with whom it comes from where that isn't a publisher of the Hub. *out is the caller's (khub_trust_free);
 * NULL after a failure: khub_policy_read's, KHUB_E_NOMEM. */
int khub__place_begin_trust(khub_trust **out, khub__place *place, khub__way *way, const char *name,
                            khub_error *err);

void khub__place_close(khub__place *place); /* frees what it holds and zeroes it */

#endif
