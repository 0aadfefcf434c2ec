#include "serve/repository.h"

#include "base/error.h"
#include "base/memory.h"
#include "serve/place.h"
#include "serve/work.h"

#include <pthread.h>
#include <string.h>
#include <time.h>

enum { REPOSITORIES_MAX = 100000, LISTINGS_MAX = 200000, OLD_LISTINGS_MAX = 32 };

typedef struct repository {
    serve_kind kind;
    char id[SERVE_ID_MAX + 1];
    pthread_mutex_t looking; /* held while its place on disk is read */
    pthread_mutex_t lock;    /* of what follows */
    serve_refs *refs;        /* NULL: not looked at, or gone */
    const serve_layout *layout;
    char where[SERVE_PLACE_MAX];
    serve_listing **listings; /* used last first; of the refs' commits and of a few more */
    size_t listing_count, listing_capacity;
    int64_t looked_ns, fresh_ns; /* when, and for how long that is good */
} repository;

static pthread_mutex_t lock =
    PTHREAD_MUTEX_INITIALIZER; /* of what follows; the repositories live to the end */
static repository **repositories;
static size_t count, capacity;

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static repository *known(serve_kind kind, const char *id)
{
    repository *found = NULL;
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < count && !found; i++)
        if (repositories[i]->kind == kind && !strcmp(repositories[i]->id, id)) found = repositories[i];
    pthread_mutex_unlock(&lock);
    return found;
}

/* With the lock held. Puts the repository into the table, unless another thread just did: then that one. */
static repository *put(repository *made)
{
    for (size_t i = 0; i < count; i++)
        if (repositories[i]->kind == made->kind && !strcmp(repositories[i]->id, made->id))
            return repositories[i];
    if (khub__grow((void **)&repositories, &capacity, count + 1, sizeof(*repositories), REPOSITORIES_MAX) !=
        0)
        return NULL;
    return repositories[count++] = made;
}

static repository *know(serve_kind kind, const char *id, khub_error *err)
{
    repository *made = khub__calloc(1, sizeof(*made)), *found = NULL;
    if (made) {
        made->kind = kind;
        memcpy(made->id, id, strlen(id) + 1);
        pthread_mutex_init(&made->looking, NULL);
        pthread_mutex_init(&made->lock, NULL);
        pthread_mutex_lock(&lock);
        found = put(made);
        pthread_mutex_unlock(&lock);
        if (found != made) khub__free(made);
    }
    if (!found) khub__fail_memory(err, "serving a repository");
    return found;
}

/* ---- looking at it ---- */

/* Moves the listing at `i` to the front. */
static serve_listing *use(repository *repo, size_t i)
{
    serve_listing *listing = repo->listings[i];
    memmove(&repo->listings[1], &repo->listings[0], i * sizeof(*repo->listings));
    return repo->listings[0] = listing;
}

/* Index of a commit's listing, or the number of listings. */
static size_t index_of(const repository *repo, const char *commit)
{
    size_t i = 0;
    while (i < repo->listing_count && strcmp(repo->listings[i]->commit, commit) != 0)
        i++;
    return i;
}

/* With repo->lock held. The listing is the repository's; NULL: none. */
static serve_listing *listing_of(repository *repo, const char *commit)
{
    size_t i = index_of(repo, commit);
    return i < repo->listing_count ? use(repo, i) : NULL;
}

/* Takes over the listing. It takes the place of an older one of the same commit, but not of one that says the
 * same: that one has answers ready. */
static int keep(void *self, serve_listing *listing, khub_error *err)
{
    repository *repo = self;
    int rc = KHUB_OK;
    pthread_mutex_lock(&repo->lock);
    size_t i = index_of(repo, listing->commit);
    if (i == repo->listing_count) {
        rc = khub__grow((void **)&repo->listings, &repo->listing_capacity, i + 1, sizeof(*repo->listings),
                        LISTINGS_MAX);
        if (rc == 0) repo->listings[repo->listing_count++] = NULL;
    }
    if (rc == 0) {
        serve_listing *old = repo->listings[i];
        int same = old && serve_listing_same(old, listing);
        repo->listings[i] = same ? old : listing;
        use(repo, i);
        serve_listing_free(same ? listing : old);
    }
    pthread_mutex_unlock(&repo->lock);
    if (rc == 0) return KHUB_OK;
    serve_listing_free(listing);
    return khub__fail_memory(err, "listing a repository");
}

/* With repo->lock held. Forgets the listings that were used longest ago. */
static void trim(repository *repo, size_t max)
{
    while (repo->listing_count > max)
        serve_listing_free(repo->listings[--repo->listing_count]);
}

/* A commit stays what it is, but its repository may be taken away. */
static const int64_t commit_fresh_ns = 10 * INT64_C(1000000000);

static int is_fresh(const repository *repo, int64_t at_least_ns)
{
    int64_t limit = repo->fresh_ns > at_least_ns ? repo->fresh_ns : at_least_ns;
    return repo->refs && now_ns() - repo->looked_ns < limit;
}

/* With repo->lock held. What a look found becomes what there is; refs NULL: it is gone. */
static void adopt(repository *repo, serve_refs *refs, int64_t started_ns)
{
    serve_refs_free(repo->refs);
    repo->refs = refs;
    repo->looked_ns = now_ns();
    int64_t took = repo->looked_ns - started_ns;
    repo->fresh_ns = took * 20 > 100000000 ? took * 20 : 100000000;
    trim(repo, refs ? refs->count + OLD_LISTINGS_MAX : 0);
}

static int look_with(serve_look *out, const serve_layout *layout, const char *where, serve_kind kind,
                     khub_error *err)
{
    if (!layout) return KHUB_OK;
    int rc = serve_refs_new(&out->refs, err);
    if (rc == KHUB_OK) rc = layout->look(out, where, kind, err);
    if (rc == KHUB_OK) {
        serve_refs_sort(out->refs);
        return rc;
    }
    serve_refs_free(out->refs);
    return rc;
}

/* Reads the repository from disk; repo->looking is held, so that repo->refs stay. */
static serve_how look(repository *repo, khub_error *err)
{
    serve_look out = {.before = repo->refs, .keep = keep, .self = repo};
    int64_t started = now_ns();
    char where[SERVE_PLACE_MAX];
    const serve_layout *layout = serve_place(where, repo->kind, repo->id);
    int rc = look_with(&out, layout, where, repo->kind, err);
    if (rc != KHUB_OK) return rc == KHUB_E_NOTFOUND || rc == KHUB_E_CANCELED ? SERVE_BUSY : SERVE_BROKEN;
    pthread_mutex_lock(&repo->lock);
    repo->layout = layout;
    memcpy(repo->where, where, sizeof(where));
    adopt(repo, out.refs, started);
    pthread_mutex_unlock(&repo->lock);
    return layout ? SERVE_FOUND : SERVE_NO_REPOSITORY;
}

/* ---- finding what an address means ---- */

/* From what is known, with repo->lock held. */
static serve_how find_known(serve_found *out, repository *repo, const serve_address *address)
{
    const char *commit = repo->refs ? serve_refs_commit(repo->refs, address->revision) : NULL;
    serve_listing *listing = commit ? listing_of(repo, commit) : NULL;
    int immutable = listing && !repo->layout->grows && !strcmp(commit, address->revision);
    if (!is_fresh(repo, immutable ? commit_fresh_ns : 0)) return SERVE_LATER;
    if (address->what != SERVE_REFS && !commit) return SERVE_NO_REVISION;
    if (address->what != SERVE_REFS && !listing) return repo->layout->list ? SERVE_LATER : SERVE_NO_REVISION;
    out->refs = serve_refs_share(repo->refs);
    out->listing = address->what == SERVE_REFS ? NULL : serve_listing_share(listing);
    return SERVE_FOUND;
}

static serve_how try(serve_found *out, repository *repo, const serve_address *address)
{
    pthread_mutex_lock(&repo->lock);
    serve_how how = find_known(out, repo, address);
    pthread_mutex_unlock(&repo->lock);
    return how;
}

/* Makes the listing of the commit that the address means; repo->looking is held. */
static serve_how list(repository *repo, const serve_address *address, khub_error *err)
{
    char commit[41] = "";
    pthread_mutex_lock(&repo->lock);
    const char *meant = repo->refs ? serve_refs_commit(repo->refs, address->revision) : NULL;
    if (meant) memcpy(commit, meant, sizeof(commit));
    pthread_mutex_unlock(&repo->lock);
    serve_listing *listing;
    if (!meant) return SERVE_NO_REVISION;
    int rc = repo->layout->list(&listing, repo->where, commit, err);
    if (rc != KHUB_OK)
        return rc == KHUB_E_NOTFOUND ? SERVE_NO_REVISION : rc == KHUB_E_CANCELED ? SERVE_BUSY : SERVE_BROKEN;
    keep(repo, listing, err);
    return SERVE_FOUND;
}

static serve_how find_on_disk(serve_found *out, repository *repo, const serve_address *address,
                              khub_error *err)
{
    if (pthread_mutex_trylock(&repo->looking) != 0) return SERVE_LATER;
    serve_how how = try(out, repo, address); /* another thread may just have looked */
    if (how == SERVE_LATER) {
        pthread_mutex_lock(&repo->lock);
        int fresh = is_fresh(repo, 0);
        pthread_mutex_unlock(&repo->lock);
        how = fresh ? SERVE_FOUND : look(repo, err);
        if (how == SERVE_FOUND) how = try(out, repo, address);
        if (how == SERVE_LATER) {
            how = list(repo, address, err);
            if (how == SERVE_FOUND) how = try(out, repo, address);
        }
    }
    pthread_mutex_unlock(&repo->looking);
    serve_work_wake(); /* those that found it being looked at */
    return how == SERVE_LATER ? SERVE_BUSY : how;
}

serve_how serve_find(serve_found *out, const serve_address *address, int may_wait, khub_error *err)
{
    memset(out, 0, sizeof(*out));
    repository *repo = known(address->kind, address->id);
    serve_how how = repo ? try(out, repo, address) : SERVE_LATER;
    if (how != SERVE_LATER || !may_wait) return how;
    char where[SERVE_PLACE_MAX];
    if (!repo && !serve_place(where, address->kind, address->id)) return SERVE_NO_REPOSITORY;
    if (!repo) repo = know(address->kind, address->id, err);
    return repo ? find_on_disk(out, repo, address, err) : SERVE_BROKEN;
}

void serve_found_free(serve_found *found)
{
    serve_refs_free(found->refs);
    serve_listing_free(found->listing);
    memset(found, 0, sizeof(*found));
}

void serve_repositories_free(void)
{
    for (size_t i = 0; i < count; i++) {
        adopt(repositories[i], NULL, now_ns());
        khub__free(repositories[i]->listings);
        pthread_mutex_destroy(&repositories[i]->looking);
        pthread_mutex_destroy(&repositories[i]->lock);
        khub__free(repositories[i]);
    }
    khub__free(repositories);
    repositories = NULL;
    count = capacity = 0;
}
