/* The Hub's API. A client is used by one thread at a time; it keeps its connections. */
#ifndef HUB_CLIENT_H
#define HUB_CLIENT_H

#include "hub/repo.h"
#include "hub/settings.h"
#include "hub/tree.h"

typedef struct khub__client khub__client;

/* Nothing is opened or asked yet. Takes over what `settings` holds, also when it fails. `progress` may be
 * NULL. The same endpoint and token again may get the connections of a client that was closed. KHUB_E_NOMEM.
 */
int khub__client_open(khub__client **out, khub__hub_settings *settings, khub_progress_fn progress, void *user,
                      khub_error *err);
void khub__client_close(khub__client *client); /* NULL is a no-op */

/* 1: the settings forbid the network; every call below is KHUB_E_OFFLINE. */
int khub__client_offline(const khub__client *client);

/* 1: from now on each question is asked once, for at most 2.5 s, without waiting for better times: for a
 * caller who has another answer at hand. 0: as usual. */
void khub__client_hurry(khub__client *client, int hurries);

/* What is asked from now on names this fact about the machine in its user agent, too: "backend", "cu128".
 * khub__hub_settings_tell has the rules. KHUB_E_NOMEM. */
int khub__client_describe(khub__client *client, const char *name, const char *value, khub_error *err);

/* Requests sent by this process so far, redirects apart. For tests and -v. */
uint64_t khub__client_requests(void);

/* Every call below: KHUB_E_NOTFOUND, KHUB_E_DENIED, KHUB_E_NETWORK (also when libcurl isn't there, or has no
 * TLS for an https endpoint), KHUB_E_FORMAT (the answer isn't what the API promises), KHUB_E_OFFLINE (the
 * settings say so), KHUB_E_CANCELED, KHUB_E_NOMEM. Messages name the address without its query, and what to
 * do. */

/* A branch or tag and the commit it stands at. */
typedef struct khub__ref {
    char name[KHUB__REVISION_MAX + 1];
    char commit[KHUB__COMMIT_MAX + 1];
} khub__ref;

typedef struct khub__refs {
    khub__ref *branches, *tags;
    size_t branch_count, tag_count;
    khub__repo moved_to; /* id "" unless the repository was renamed: the answer came from another address */
} khub__refs;

/* GET /api/KIND/ID/refs */
int khub__client_refs(khub__refs *out, khub__client *client, const khub__repo *repo, khub_error *err);
void khub__refs_free(khub__refs *refs);

/* GET /api/KIND/ID/revision/REV: the commit. */
int khub__client_commit(char commit[KHUB__COMMIT_MAX + 1], khub__client *client, const khub__repo *repo,
                        const char *revision, khub_error *err);

/* GET /api/KIND/ID/tree/COMMIT?recursive=true, all pages. *moved_to (may be NULL): as khub__refs has it. */
int khub__client_tree(khub__tree *out, khub__repo *moved_to, khub__client *client, const khub__repo *repo,
                      const char *commit, khub_error *err);

/* GET /api/organizations/ORG/overview: *trusted is its trustedKernelPublisher. A 404 (the owner is a person)
 * is 0. */
int khub__client_publisher(int *trusted, khub__client *client, const char *org, khub_error *err);

enum { KHUB__SINK_BUSY = 1, KHUB__SINK_AGAIN = 2 };

/* Where the bytes of one file go. Called from one thread at a time, in this order: begin, write…, then finish
 * or abandon. A begin that fails is the end. KHUB__SINK_BUSY of begin: someone else is bringing this file;
 * the client goes on with others and asks again every 50 ms, and holds nothing that the other could be
 * waiting for. It says so too while it reads what is there of an interrupted fetch, a piece at a time, so
 * that a cancel isn't late. KHUB__SINK_AGAIN of finish, a few times at most: what was there of an interrupted
 * fetch isn't of this file, or somebody removed what came, and all is gone; the next write is byte 0, then
 * finish again. A begin that finds all bytes there is followed by finish, without a write. */
typedef struct khub__sink {
    /* The name of the content is known. *have becomes the number of bytes that are there of an interrupted
     * fetch. */
    int (*begin)(void *self, const char *etag, uint64_t size, uint64_t *have, khub_error *err);
    int (*write)(void *self, const void *data, size_t bytes, khub_error *err); /* in order, without gaps */
    int (*restart)(void *self,
                   khub_error *err); /* what was there is worth nothing; the next write is byte 0 */
    int (*finish)(void *self,
                  khub_error *err); /* all bytes were written: checks them and puts them in place */
    void (*abandon)(void *self,
                    int keep); /* keep: the bytes so far are good, another fetch may go on from them */
} khub__sink;

/* One file to fetch. */
typedef struct khub__fetch {
    const char *path; /* inside the repository */
    uint64_t size;    /* as the tree says; UINT64_MAX: unknown */
    const char *etag; /* as the tree says: the name of the content; NULL: take the answer's */
    const khub__sink *sink;
    void *self; /* of the sink */
} khub__fetch;

/* GET /KINDS/ID/resolve/COMMIT/PATH for each, side by side: small files together on few connections, a large
 * one in ranges. The order in which they end isn't given. The first failure ends all. `what` is for the
 * progress. */
int khub__client_fetch(khub__client *client, const khub__repo *repo, const char *commit,
                       const khub__fetch *files, size_t count, const char *what, khub_error *err);

#endif
