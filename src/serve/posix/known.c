#include "serve/known.h"

#include "base/memory.h"

#include <pthread.h>
#include <string.h>

/* 160 MB at most; then everything is forgotten, and hashed again when it is asked for. */
enum { KNOWN_MAX = 1 << 20 };

typedef struct known {
    serve_identity identity;
    serve_names names; /* oid "": the place is free */
} known;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of what follows */
static known *table;                                     /* open addressing */
static size_t places, used;

static size_t hash(const serve_identity *identity)
{
    uint64_t h = identity->inode * UINT64_C(0x9E3779B97F4A7C15) ^ (uint64_t)identity->changed_ns;
    h ^= h >> 29;
    return (size_t)((h * UINT64_C(0xBF58476D1CE4E5B9)) >> 17);
}

/* The place of that file, or the free one where it would stand. `places` isn't 0. */
static known *find(const serve_identity *identity, int lfs)
{
    size_t at = hash(identity) & (places - 1);
    while (table[at].names.oid[0] && (!serve_identity_equal(&table[at].identity, identity) ||
                                      (table[at].names.sha256[0] != 0) != (lfs != 0)))
        at = (at + 1) & (places - 1);
    return &table[at];
}

static int grow(void)
{
    known *old = table;
    size_t old_places = places, more = places ? places * 2 : 256;
    known *bigger = khub__calloc(more, sizeof(*bigger));
    if (!bigger) return -1;
    table = bigger;
    places = more;
    for (size_t i = 0; i < old_places; i++)
        if (old[i].names.oid[0]) *find(&old[i].identity, old[i].names.sha256[0] != 0) = old[i];
    khub__free(old);
    return 0;
}

static void forget(void)
{
    khub__free(table);
    table = NULL;
    places = used = 0;
}

int serve_known_get(serve_names *out, const serve_identity *identity, int lfs)
{
    int found = 0;
    pthread_mutex_lock(&lock);
    if (places) {
        const known *at = find(identity, lfs);
        found = at->names.oid[0] != 0;
        if (found) *out = at->names;
    }
    pthread_mutex_unlock(&lock);
    return found;
}

void serve_known_put(const serve_names *names, const serve_identity *identity)
{
    pthread_mutex_lock(&lock);
    if (used >= KNOWN_MAX / 2) forget();
    if (used * 2 < places || grow() == 0) {
        known *at = find(identity, names->sha256[0] != 0);
        used += !at->names.oid[0];
        at->identity = *identity;
        at->names = *names;
    }
    pthread_mutex_unlock(&lock);
}

void serve_known_free(void)
{
    pthread_mutex_lock(&lock);
    forget();
    pthread_mutex_unlock(&lock);
}
