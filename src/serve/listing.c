#include "serve/listing.h"

#include "base/error.h"
#include "base/hash.h"
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

int serve_listing_new(serve_listing **out, khub_error *err)
{
    *out = khub__calloc(1, sizeof(**out));
    if (!*out) return khub__fail_memory(err, "listing a repository");
    (*out)->users = 1;
    return KHUB_OK;
}

serve_listing *serve_listing_share(serve_listing *listing)
{
    __atomic_add_fetch(&listing->users, 1, __ATOMIC_RELAXED);
    return listing;
}

void serve_listing_free(serve_listing *listing)
{
    if (!listing || __atomic_sub_fetch(&listing->users, 1, __ATOMIC_ACQ_REL) > 0) return;
    for (size_t i = 0; i < listing->count; i++) {
        if (listing->forget) listing->forget(&listing->entries[i]);
        khub__free(listing->entries[i].path);
        khub__free(listing->entries[i].where);
    }
    if (listing->source) listing->source->close(listing->source);
    khub__free(listing->entries);
    khub__free(listing);
}

int serve_listing_add(serve_listing *listing, const serve_entry *entry, khub_error *err)
{
    if (listing->count == SERVE_ENTRIES_MAX)
        return khub__fail(err, KHUB_E_UNSUPPORTED, "%s: a repository of more than a million files",
                          entry->path);
    serve_entry copy = *entry;
    copy.path = khub__strdup(entry->path);
    copy.where = khub__strdup(entry->where);
    if (!copy.path || (entry->where && !copy.where) ||
        khub__grow((void **)&listing->entries, &listing->capacity, listing->count + 1, sizeof(copy),
                   SERVE_ENTRIES_MAX) != 0) {
        khub__free(copy.path);
        khub__free(copy.where);
        return khub__fail_memory(err, "listing a repository");
    }
    listing->entries[listing->count++] = copy;
    return KHUB_OK;
}

static int by_path(const void *a, const void *b)
{
    return strcmp(((const serve_entry *)a)->path, ((const serve_entry *)b)->path);
}

static void sort(serve_listing *listing)
{
    if (listing->count) qsort(listing->entries, listing->count, sizeof(*listing->entries), by_path);
}

/* The directories of `path` that `before` isn't in, added behind the files. */
static int add_parents(serve_listing *listing, const char *path, const char *before, khub_error *err)
{
    char name[4096];
    int rc = KHUB_OK;
    for (const char *slash = strchr(path, '/'); slash && rc == KHUB_OK; slash = strchr(slash + 1, '/')) {
        size_t length = (size_t)(slash - path);
        if (!strncmp(path, before, length + 1) || length >= sizeof(name)) continue;
        memcpy(name, path, length);
        name[length] = 0;
        serve_entry directory = {.path = name, .directory = 1};
        rc = serve_listing_add(listing, &directory, err);
    }
    return rc;
}

static int add_directories(serve_listing *listing, khub_error *err)
{
    int rc = KHUB_OK;
    for (size_t i = 0; i < listing->files && rc == KHUB_OK; i++)
        rc = add_parents(listing, listing->entries[i].path, i ? listing->entries[i - 1].path : "", err);
    return rc;
}

/* Hands "OID PATH\n" of the files below `directory` to the hash (NULL: to nobody). Returns the bytes. */
static uint64_t add_lines(khub__hash *hash, const serve_listing *listing, const char *directory)
{
    size_t at = 0, skip = directory[0] ? strlen(directory) + 1 : 0;
    uint64_t bytes = 0;
    for (const serve_entry *entry; (entry = serve_listing_next(listing, &at, directory, 1));) {
        if (entry->directory) continue;
        const char *const pieces[] = {entry->names.oid, " ", entry->path + skip, "\n"};
        for (size_t i = 0; i < 4; i++) {
            bytes += strlen(pieces[i]);
            if (hash) khub__hash_add(hash, pieces[i], strlen(pieces[i]));
        }
    }
    return bytes;
}

/* git's name of a text that lists the files below `directory`: the same for the same content, whoever serves
 * it. */
static int name_of(char oid[41], const serve_listing *listing, const char *directory, khub_error *err)
{
    char hex[KHUB__HASH_HEX_MAX + 1];
    khub__hash *hash;
    int rc = khub__hash_new(&hash, KHUB__HASH_GIT_BLOB, add_lines(NULL, listing, directory), err);
    if (rc != KHUB_OK) return rc;
    add_lines(hash, listing, directory);
    khub__hash_end(hash, hex);
    khub__hash_free(hash);
    memcpy(oid, hex, 41);
    return KHUB_OK;
}

int serve_listing_close(serve_listing *listing, khub_error *err)
{
    sort(listing);
    listing->files = listing->count;
    int rc = add_directories(listing, err);
    sort(listing);
    for (size_t i = 0; i < listing->count && rc == KHUB_OK; i++)
        if (listing->entries[i].directory && !listing->entries[i].names.oid[0])
            rc = name_of(listing->entries[i].names.oid, listing, listing->entries[i].path, err);
    if (rc == KHUB_OK && !listing->commit[0]) rc = name_of(listing->commit, listing, "", err);
    return rc;
}

/* Index of the first entry that isn't before `path`. */
static size_t lower_bound(const serve_listing *listing, const char *path)
{
    size_t low = 0, high = listing->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (strcmp(listing->entries[middle].path, path) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

serve_entry *serve_listing_find(const serve_listing *listing, const char *path)
{
    size_t at = lower_bound(listing, path);
    return at < listing->count && !strcmp(listing->entries[at].path, path) ? &listing->entries[at] : NULL;
}

const serve_entry *serve_listing_next(const serve_listing *listing, size_t *at, const char *directory,
                                      int recursive)
{
    char prefix[4098];
    size_t length = strlen(directory);
    if (length + 2 > sizeof(prefix)) return NULL;
    memcpy(prefix, directory, length);
    if (length) prefix[length++] = '/';
    prefix[length] = 0;
    size_t first = lower_bound(listing, prefix);
    for (size_t i = *at > first ? *at : first; i < listing->count; i++) {
        const serve_entry *entry = &listing->entries[i];
        if (strncmp(entry->path, prefix, length) != 0) return NULL;
        if (recursive || !strchr(entry->path + length, '/')) {
            *at = i + 1;
            return entry;
        }
    }
    return NULL;
}

int serve_listing_same(const serve_listing *a, const serve_listing *b)
{
    if (strcmp(a->commit, b->commit) != 0 || a->count != b->count) return 0;
    for (size_t i = 0; i < a->count; i++) {
        const serve_entry *one = &a->entries[i], *two = &b->entries[i];
        if (strcmp(one->path, two->path) != 0 || !serve_identity_equal(&one->identity, &two->identity))
            return 0;
    }
    return 1;
}
