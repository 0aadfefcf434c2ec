#include "fetch/lockfile.h"

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/text.h"

#include <stdio.h>
#include <stdlib.h>

enum { LOCK_MAX_BYTES = 16 << 20, MAX_KERNELS = 100000 };

/* Where the reader is. */
typedef struct reader {
    khub__json_source source; /* "kernels.lock: entry 3" */
    khub__wanted wanted;
    const char *commit;
    const json_t *builds; /* "variants"; NULL: none */
} reader;

static int fail(const reader *r, const char *fact, const char *what)
{
    return khub__fail(r->source.err, KHUB_E_FORMAT, "%s: %s%.200s", r->source.file, fact, what);
}

/* An unknown key might change what is meant. `known`: its keys, between spaces. */
static int check_keys(const reader *r, const json_t *object, const char *known)
{
    const char *key;
    json_t *value;
    json_object_foreach ((json_t *)(uintptr_t)object, key, value) {
        const char *at = *key && !strchr(key, ' ') ? strstr(known, key) : NULL;
        while (at && !(at[-1] == ' ' && at[strlen(key)] == ' '))
            at = strstr(at + 1, key);
        if (!at) return fail(r, "has an unknown key ", key);
    }
    return KHUB_OK;
}

static int take_name(reader *r, const char *id, int64_t version, const char *revision)
{
    char name[KHUB__WANTED_NAME_MAX + 2];
    khub_error why = {0};
    if (!id) return fail(r, "has no repository", "");
    if (strchr(id, '@')) return fail(r, id, ": isn't a repository's name");
    if (version >= 0)
        snprintf(name, sizeof(name), "%.*s@v%lld", KHUB__REPO_ID_MAX + 1, id, (long long)version);
    else
        snprintf(name, sizeof(name), "%.*s%s%.*s", KHUB__REPO_ID_MAX + 1, id, revision ? "@" : "",
                 KHUB__REVISION_MAX + 1, revision ? revision : "");
    if (khub__wanted_parse(&r->wanted, KHUB__REPO_KERNEL, name, &why) != KHUB_OK)
        return fail(r, why.message, "");
    if (r->wanted.is_range || (version >= 0 && r->wanted.version != version))
        return fail(r, name, ": is no version, branch, tag or commit");
    return KHUB_OK;
}

/* {"dependency": {"repo-id", "version" | "revision"}, "lock": {"commit"}}; a "hash" beside the commit is of
 * Nix's lock, and says nothing that the commit doesn't. */
static int read_newer(reader *r, const json_t *entry)
{
    const json_t *dependency = NULL, *lock = NULL;
    const char *id = NULL, *revision = NULL;
    int64_t version = INT64_MIN;
    int rc = check_keys(r, entry, " dependency lock ");
    if (rc == KHUB_OK) rc = khub__json_object(&dependency, entry, "dependency", &r->source);
    if (rc == KHUB_OK) rc = khub__json_object(&lock, entry, "lock", &r->source);
    if (rc == KHUB_OK && dependency) rc = check_keys(r, dependency, " repo-id version revision ");
    if (rc == KHUB_OK && lock) rc = check_keys(r, lock, " commit hash ");
    if (rc == KHUB_OK) rc = khub__json_string(&id, dependency, "repo-id", &r->source);
    if (rc == KHUB_OK) rc = khub__json_string(&revision, dependency, "revision", &r->source);
    if (rc == KHUB_OK) rc = khub__json_integer(&version, dependency, "version", &r->source);
    if (rc == KHUB_OK) rc = khub__json_string(&r->commit, lock, "commit", &r->source);
    if (rc != KHUB_OK) return rc;
    if (version != INT64_MIN && version < 0)
        return khub__fail(r->source.err, KHUB_E_FORMAT, "%s: has version %lld, versions start at 0",
                          r->source.file, (long long)version);
    if (version >= 0 && revision) return fail(r, "has both a version and a revision", "");
    if (version < 0 && !revision && id) return fail(r, id, ": has neither version nor revision");
    return take_name(r, id, version, revision);
}

/* {"repo_id", "sha", "variants"}: before version 0.17 of the Python package */
static int read_older(reader *r, const json_t *entry)
{
    const char *id = NULL;
    int rc = khub__json_string(&id, entry, "repo_id", &r->source);
    if (rc == KHUB_OK) rc = khub__json_string(&r->commit, entry, "sha", &r->source);
    if (rc == KHUB_OK) rc = khub__json_object(&r->builds, entry, "variants", &r->source);
    return rc == KHUB_OK ? take_name(r, id, -1, NULL) : rc;
}

/* {"hash": "sha256-HEX", "hash_type": "git_lfs_concat"} */
static int read_build(khub__locked_build *out, reader *r, const char *name, const json_t *build)
{
    const char *hash = NULL, *type = NULL;
    if (!json_is_object(build)) return fail(r, "isn't an object: \"variants\" of ", name);
    int rc = khub__json_string(&hash, build, "hash", &r->source);
    if (rc == KHUB_OK) rc = khub__json_string(&type, build, "hash_type", &r->source);
    if (rc != KHUB_OK) return rc;
    if (!type || strcmp(type, "git_lfs_concat") != 0)
        return fail(r, "\"hash_type\" isn't git_lfs_concat, which is the one that is known: ", name);
    if (!hash || strncmp(hash, "sha256-", 7) != 0 || strlen(hash) != 71 || !khub__is_commit(hash + 7))
        return fail(r, "\"hash\" isn't \"sha256-\" and 64 lower-case hex digits: ", name);
    khub__copy(out->hash, sizeof(out->hash), hash + 7);
    return KHUB_OK;
}

/* One allocation: the builds, then their names. */
static int read_builds(khub__locked *out, reader *r)
{
    const char *name;
    json_t *build, *builds = (json_t *)(uintptr_t)r->builds;
    size_t bytes = json_object_size(builds) * sizeof(*out->builds);
    if (!bytes) return KHUB_OK;
    json_object_foreach (builds, name, build)
        bytes += strlen(name) + 1;
    out->builds = khub__malloc(bytes);
    if (!out->builds) return khub__fail_memory(r->source.err, "reading a lock");
    char *text = (char *)(out->builds + json_object_size(builds));
    json_object_foreach (builds, name, build) {
        khub__locked_build *to = &out->builds[out->build_count++];
        size_t length = strlen(name) + 1;
        to->name = memcpy(text, name, length);
        text += length;
        int rc = read_build(to, r, name, build);
        if (rc != KHUB_OK) return rc;
    }
    return KHUB_OK;
}

/* A commit's digits may be capitals, as git takes them. */
static int take_commit(char out[KHUB__COMMIT_MAX + 1], reader *r)
{
    size_t i = 0, length = r->commit ? strlen(r->commit) : 0;
    if (!r->commit) return fail(r, r->wanted.repo.id, ": has no commit");
    for (; i < length && i < KHUB__COMMIT_MAX; i++)
        out[i] = (char)(r->commit[i] >= 'A' && r->commit[i] <= 'F' ? r->commit[i] - 'A' + 'a' : r->commit[i]);
    out[i] = 0;
    if (i == length && khub__is_commit(out)) return KHUB_OK;
    return khub__fail(r->source.err, KHUB_E_FORMAT, "%s: %s: \"%.80s\" is no commit (40 or 64 hex digits)",
                      r->source.file, r->wanted.repo.id, r->commit);
}

const char *khub__wanted_name(char out[KHUB__WANTED_NAME_MAX], const khub__wanted *wanted)
{
    snprintf(out, KHUB__WANTED_NAME_MAX, "%s%s%s", wanted->repo.id, *wanted->revision ? "@" : "",
             wanted->revision);
    return out;
}

/* Room for one more, zeroed. NULL: no memory. */
static khub__locked *grow(khub__lockfile *lock)
{
    if (khub__grow((void **)&lock->kernels, &lock->capacity, lock->count + 1, sizeof(*lock->kernels),
                   MAX_KERNELS))
        return NULL;
    return memset(&lock->kernels[lock->count++], 0, sizeof(*lock->kernels));
}

static int read_entry(khub__lockfile *out, const json_t *entry, size_t i, khub_error *err)
{
    char where[4200], name[KHUB__WANTED_NAME_MAX];
    snprintf(where, sizeof(where), "%s: entry %zu", out->path, i);
    reader r = {.source = {where, err}};
    if (!json_is_object(entry))
        return khub__fail(err, KHUB_E_FORMAT, "%s: is %s, an object is expected", where,
                          khub__json_type_name(entry));
    int is_older = json_object_get(entry, "repo_id") && !json_object_get(entry, "dependency");
    int rc = is_older ? read_older(&r, entry) : read_newer(&r, entry);
    if (rc != KHUB_OK) return rc;
    khub__locked *kernel = grow(out);
    if (!kernel) return khub__fail_memory(err, "reading a lock");
    kernel->wanted = r.wanted;
    rc = take_commit(kernel->commit, &r);
    if (rc == KHUB_OK && r.wanted.is_commit && strcmp(r.wanted.revision, kernel->commit) != 0)
        return khub__fail(err, KHUB_E_FORMAT, "%s: %s: is locked to another commit, %s", where,
                          khub__wanted_name(name, &r.wanted), kernel->commit);
    return rc == KHUB_OK ? read_builds(kernel, &r) : rc;
}

static int by_name(const void *a, const void *b)
{
    const khub__wanted *x = &((const khub__locked *)a)->wanted, *y = &((const khub__locked *)b)->wanted;
    int order = strcmp(x->repo.id, y->repo.id);
    if (!order) order = (y->version >= 0) - (x->version >= 0);
    if (!order) order = (x->version > y->version) - (x->version < y->version);
    return order ? order : strcmp(x->revision, y->revision);
}

int khub__lockfile_sort(khub__lockfile *lock, khub_error *err)
{
    char name[KHUB__WANTED_NAME_MAX];
    if (lock->count) qsort(lock->kernels, lock->count, sizeof(*lock->kernels), by_name);
    for (size_t i = 1; i < lock->count; i++)
        if (!by_name(&lock->kernels[i - 1], &lock->kernels[i]))
            return khub__fail(err, KHUB_E_FORMAT, "%s: has two entries for %s",
                              lock->path ? lock->path : "lock",
                              khub__wanted_name(name, &lock->kernels[i].wanted));
    return KHUB_OK;
}

int khub__lockfile_parse(khub__lockfile *out, const char *text, size_t length, const char *file,
                         khub_error *err)
{
    memset(out, 0, sizeof(*out));
    json_t *entries = NULL;
    out->path = khub__strdup(file);
    int rc = out->path ? khub__json_parse_array(&entries, text, length, file, err)
                       : khub__fail_memory(err, "reading a lock");
    for (size_t i = 0; rc == KHUB_OK && i < json_array_size(entries); i++)
        rc = read_entry(out, json_array_get(entries, i), i, err);
    if (rc == KHUB_OK) rc = khub__lockfile_sort(out, err);
    json_decref(entries);
    if (rc != KHUB_OK) khub__lockfile_free(out);
    return rc;
}

int khub__lockfile_read(khub__lockfile *out, const char *path, khub_error *err)
{
    khub__bytes text;
    memset(out, 0, sizeof(*out));
    int rc = khub__file_read(&text, path, LOCK_MAX_BYTES, err);
    if (rc != KHUB_OK) return rc;
    rc = khub__lockfile_parse(out, text.data, text.length, path, err);
    khub__bytes_free(&text);
    return rc;
}

void khub__lockfile_free(khub__lockfile *lock)
{
    for (size_t i = 0; i < lock->count; i++)
        khub__free(lock->kernels[i].builds);
    khub__free(lock->kernels);
    khub__free(lock->path);
    memset(lock, 0, sizeof(*lock));
}

int khub__lockfile_add(khub__lockfile *lock, const khub__wanted *wanted, const char *commit, khub_error *err)
{
    khub__locked *kernel = grow(lock);
    if (!kernel) return khub__fail_memory(err, "locking kernels");
    kernel->wanted = *wanted;
    khub__copy(kernel->commit, sizeof(kernel->commit), commit);
    return KHUB_OK;
}

static int is_meant(const khub__locked *there, const khub__wanted *wanted)
{
    if (strcmp(there->wanted.repo.id, wanted->repo.id) != 0) return 0;
    if (wanted->is_commit) return !strcmp(there->commit, wanted->revision);
    if (!*there->wanted.revision || !*wanted->revision) return 1;
    if (!strcmp(there->wanted.revision, wanted->revision)) return 1;
    return wanted->is_range && khub__range_has(&wanted->range, there->wanted.version);
}

const khub__locked *khub__lockfile_find(const khub__lockfile *lock, const khub__wanted *wanted)
{
    const khub__locked *best = NULL;
    for (size_t i = 0; i < lock->count; i++)
        if (is_meant(&lock->kernels[i], wanted) &&
            (!best || (wanted->is_range && lock->kernels[i].wanted.version > best->wanted.version)))
            best = &lock->kernels[i];
    return best;
}

/* Says what the lock has of the repository. */
static int fail_absent(const khub__lockfile *lock, const khub__wanted *wanted, khub_error *err)
{
    khub__text has = {0};
    char name[KHUB__WANTED_NAME_MAX];
    for (size_t i = 0; i < lock->count; i++)
        if (!strcmp(lock->kernels[i].wanted.repo.id, wanted->repo.id))
            khub__text_addf(&has, "%s%s at %s", has.length ? ", " : ", which has ",
                            khub__wanted_name(name, &lock->kernels[i].wanted), lock->kernels[i].commit);
    int rc = has.failed ? khub__fail_memory(err, "reading a lock")
                        : khub__fail(err, KHUB_E_NOTFOUND, "%s: isn't in the lock %s%s",
                                     khub__wanted_name(name, wanted), lock->path, has.data ? has.data : "");
    khub__text_free(&has);
    return rc;
}

int khub__lockfile_pin(const khub__lockfile *lock, khub__wanted *wanted, khub_error *err)
{
    const khub__locked *kernel = khub__lockfile_find(lock, wanted);
    if (!kernel) return fail_absent(lock, wanted, err);
    khub__copy(wanted->revision, sizeof(wanted->revision), kernel->commit);
    wanted->is_commit = 1;
    return KHUB_OK;
}

/* One check of builds against the older form. */
typedef struct comparison {
    const khub__lockfile *lock;
    const khub__locked *kernel;
    const khub__tree *tree;
    const khub__store *store; /* may be NULL */
} comparison;

static int is_bytecode(const char *path)
{
    size_t length = strlen(path);
    return strstr(path, "/__pycache__/") || (length >= 4 && !strcmp(path + length - 4, ".pyc"));
}

static unsigned digit(char c)
{
    return (unsigned)(c <= '9' ? c - '0' : c - 'a' + 10);
}

/* The file's path inside the build, then its name as bytes. */
static void add_file(khub__hash *hash, const char *path, const char *name)
{
    unsigned char bytes[32];
    size_t n = strlen(name) / 2;
    for (size_t i = 0; i < n; i++)
        bytes[i] = (unsigned char)(digit(name[2 * i]) << 4 | digit(name[2 * i + 1]));
    khub__hash_add(hash, path, strlen(path));
    khub__hash_add(hash, bytes, n);
}

/* The name of a file's content. 1, 0: it isn't known; KHUB_E_NOMEM. */
static int find_name(char name[KHUB__HASH_HEX_MAX + 1], const comparison *c, const khub__tree_file *file,
                     khub_error *err)
{
    const char *known = khub__tree_etag(file);
    char target[1200];
    khub__hash_kind kind;
    khub__copy(name, KHUB__HASH_HEX_MAX + 1, known ? known : "");
    if (known || !c->store) return known != NULL;
    char *snapshot = khub__store_snapshot(c->store, c->kernel->commit);
    char *path = snapshot ? khub__path_join(snapshot, file->path) : NULL;
    if (path) khub__file_link(target, sizeof(target), path);
    khub__free(snapshot);
    if (!path) return khub__fail_memory(err, "checking a build");
    khub__free(path);
    khub__copy(name, KHUB__HASH_HEX_MAX + 1, khub__path_name(target));
    return khub__hash_kind_of(&kind, khub__path_name(target)) == 0;
}

/* Over the files of the tree that are below `folder` ("build/NAME/"), which are in the order of their paths.
 */
static int hash_build(char hex[KHUB__HASH_HEX_MAX + 1], const comparison *c, const char *folder,
                      khub_error *err)
{
    khub__hash *hash = NULL;
    size_t length = strlen(folder);
    int rc = khub__hash_new(&hash, KHUB__HASH_SHA256, 0, err);
    for (size_t i = 0; rc == KHUB_OK && i < c->tree->count; i++) {
        const khub__tree_file *file = &c->tree->files[i];
        char name[KHUB__HASH_HEX_MAX + 1];
        if (strncmp(file->path, folder, length) != 0 || is_bytecode(file->path + length - 1)) continue;
        int known = find_name(name, c, file, err);
        if (known < 0) rc = known;
        if (known == 1) add_file(hash, file->path + length, name);
        if (known == 0)
            rc = khub__fail(err, KHUB_E_UNTRUSTED,
                            "%s@%s: %s: the cache doesn't know its hash, so that the build can't be compared "
                            "with the lock %s",
                            c->kernel->wanted.repo.id, c->kernel->commit, file->path, c->lock->path);
    }
    if (rc == KHUB_OK) khub__hash_end(hash, hex);
    khub__hash_free(hash);
    return rc;
}

static int check_build(const comparison *c, const khub__locked_build *build, khub_error *err)
{
    char hex[KHUB__HASH_HEX_MAX + 1];
    khub__text folder = {0};
    khub__text_addf(&folder, "build/%s/", build->name);
    int rc =
        folder.failed ? khub__fail_memory(err, "checking a build") : hash_build(hex, c, folder.data, err);
    if (rc == KHUB_OK && strcmp(hex, build->hash) != 0)
        rc = khub__fail(err, KHUB_E_UNTRUSTED, "%s@%s: build %s: its hash is %s, the lock %s has %s",
                        c->kernel->wanted.repo.id, c->kernel->commit, build->name, hex, c->lock->path,
                        build->hash);
    khub__text_free(&folder);
    return rc;
}

int khub__lockfile_check(const khub__lockfile *lock, const char *repository, const char *commit,
                         const char *build, const khub__tree *tree, const khub__store *store, khub_error *err)
{
    int rc = KHUB_OK;
    for (size_t i = 0; i < lock->count; i++) {
        const khub__locked *kernel = &lock->kernels[i];
        const comparison c = {lock, kernel, tree, store};
        if (strcmp(kernel->wanted.repo.id, repository) != 0 || strcmp(kernel->commit, commit) != 0) continue;
        for (size_t k = 0; rc == KHUB_OK && k < kernel->build_count; k++)
            if (!build || !strcmp(kernel->builds[k].name, build))
                rc = check_build(&c, &kernel->builds[k], err);
    }
    return rc;
}

/* As it stands in a revision, nothing needs another escape (khub__wanted_parse). */
static void add_string(khub__text *text, const char *string)
{
    khub__text_add(text, "\"");
    for (; *string; string++) {
        if (*string == '"') khub__text_add(text, "\\");
        khub__text_add_bytes(text, string, 1);
    }
    khub__text_add(text, "\"");
}

static void add_entry(khub__text *text, const khub__locked *kernel)
{
    khub__text_add(text, "\n  {\n    \"dependency\": {\n      \"repo-id\": ");
    add_string(text, kernel->wanted.repo.id);
    if (kernel->wanted.version >= 0) {
        khub__text_addf(text, ",\n      \"version\": %lld", (long long)kernel->wanted.version);
    } else {
        khub__text_add(text, ",\n      \"revision\": ");
        add_string(text, kernel->wanted.revision);
    }
    khub__text_addf(text, "\n    },\n    \"lock\": {\n      \"commit\": \"%s\"\n    }\n  }", kernel->commit);
}

int khub__lockfile_text(char **text, khub__lockfile *lock, khub_error *err)
{
    khub__text out = {0};
    *text = NULL;
    int rc = khub__lockfile_sort(lock, err);
    khub__text_add(&out, "[");
    for (size_t i = 0; rc == KHUB_OK && i < lock->count; i++) {
        const khub__wanted *wanted = &lock->kernels[i].wanted;
        if (!*wanted->revision || wanted->is_range)
            rc = khub__fail(err, KHUB_E_INVAL, "%s: has neither version nor revision, which a lock needs",
                            wanted->repo.id);
        if (i) khub__text_add(&out, ",");
        add_entry(&out, &lock->kernels[i]);
    }
    khub__text_add(&out, lock->count ? "\n]" : "]");
    if (rc == KHUB_OK && !(*text = khub__text_take(&out))) rc = khub__fail_memory(err, "writing a lock");
    khub__text_free(&out);
    return rc;
}
