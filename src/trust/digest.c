#include "trust/digest.h"

#include "base/base64.h"
#include "base/error.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/path.h"
#include "trust/files.h"

#include <stdlib.h>

/* A metadata.json of 16 MiB names no more files. */
enum { VIOLATIONS_MAX = 1 << 22, BASE64_MAX = 100 };

static const struct algorithm {
    const char *name;
    khub__hash_kind kind;
    size_t bytes;
} algorithms[] = {{"sha256", KHUB__HASH_SHA256, 32}, {"sha512", KHUB__HASH_SHA512, 64}};

static const struct algorithm *algorithm_of(khub__hash_kind kind)
{
    return &algorithms[kind == KHUB__HASH_SHA512];
}

static int no_memory(khub_error *err)
{
    return khub__fail_memory(err, "checking a digest");
}

int khub__digest_covers(const char *path)
{
    static const char cache[] = "__pycache__";
    if (!strcmp(path, "metadata.json") || !strcmp(path, "metadata.json.sigstore")) return 0;
    const char *name = khub__path_name(path);
    size_t length = strlen(name);
    /* ".pyc" alone is a name, not an extension */
    if (length > 4 && !strcmp(name + length - 4, ".pyc")) return 0;
    for (const char *part = path; part; part = strchr(part, '/')) {
        part += *part == '/';
        size_t n = strcspn(part, "/");
        if (n == sizeof(cache) - 1 && !strncmp(part, cache, n)) return 0;
    }
    return 1;
}

/* A hash in the form that a digest has it. */
static int encode(char out[BASE64_MAX], const unsigned char *hash, khub__hash_kind kind, khub_error *err)
{
    khub__text text = {0};
    khub__base64_add(&text, (khub__span){hash, algorithm_of(kind)->bytes}, 0);
    int rc = text.failed ? no_memory(err) : KHUB_OK;
    if (rc == KHUB_OK) khub__copy(out, BASE64_MAX, text.data);
    khub__text_free(&text);
    return rc;
}

/* Hashes one file of a build. */
static int hash_file(unsigned char out[KHUB__HASH_MAX], khub__hash_kind kind, const char *path,
                     khub_error *err)
{
    khub__stream file;
    khub__hash *hash = NULL;
    int rc = khub__stream_open(&file, path, err);
    if (rc != KHUB_OK) return rc;
    rc = khub__hash_new(&hash, kind, file.size, err);
    if (rc == KHUB_OK) rc = khub__hash_stream(&hash, 1, &file, err);
    if (rc == KHUB_OK && khub__hash_end_bytes(hash, out) == 0)
        rc = khub__fail(err, KHUB_E_UNSUPPORTED, "%s: libcrypto can't hash it", path);
    khub__hash_free(hash);
    khub__stream_close(&file);
    return rc;
}

/* One file below `build`: hashed, or in *fault what is wrong with it, without its path (empty: nothing).
 * Fails where that says nothing of the file. */
static int hash_found(khub__hashed *out, khub_error *fault, const khub__found *found, khub__hash_kind kind,
                      const char *build, khub_error *err)
{
    char room[600];
    khub_error why = {0};
    out->path = found->path;
    const char *wrong = khub__found_fault(found, room, sizeof(room));
    if (wrong) {
        khub__fail(fault, KHUB_E_FORMAT, "%s", wrong);
        return KHUB_OK;
    }
    char *path = khub__path_join(build, found->path);
    if (!path) return no_memory(err);
    int rc = hash_file(out->hash, kind, path, &why);
    size_t named = strlen(path) + 2; /* the message begins with it */
    khub__free(path);
    if (rc == KHUB_E_NOMEM || rc == KHUB_E_UNSUPPORTED) return khub__fail(err, rc, "%s", why.message);
    if (rc != KHUB_OK) khub__fail(fault, rc, "%s", why.message + (named < strlen(why.message) ? named : 0));
    return KHUB_OK;
}

/* A directory is neither of the files that a digest leaves out. */
static int is_covered(const khub__found *found)
{
    return found->kind == KHUB__FOUND_DIRECTORY || khub__digest_covers(found->path);
}

/* A name that a digest can hold: UTF-8, without a backslash, which the Python package takes for a "/". */
static int check_name(const char *path, const char *build, khub_error *err)
{
    if (strchr(path, '\\'))
        return khub__fail(
            err, KHUB_E_FORMAT,
            "%s/%s: has a backslash in its name, which not every reader of a digest takes for one", build,
            path);
    if (!khub__is_utf8(path))
        return khub__fail(err, KHUB_E_FORMAT, "%s/%s: the name isn't UTF-8, a digest can't hold it", build,
                          path);
    return KHUB_OK;
}

static int add_to_digest(json_t *files, const khub__found *found, khub__hash_kind kind, const char *build,
                         khub_error *err)
{
    khub__hashed hashed;
    khub_error fault = {0};
    char text[BASE64_MAX];
    if (!is_covered(found)) return KHUB_OK;
    int rc = check_name(found->path, build, err);
    if (rc == KHUB_OK) rc = hash_found(&hashed, &fault, found, kind, build, err);
    if (rc == KHUB_OK && fault.code)
        rc = khub__fail(err, fault.code, "%s/%s: %s", build, found->path, fault.message);
    if (rc == KHUB_OK) rc = encode(text, hashed.hash, kind, err);
    if (rc != KHUB_OK) return rc;
    return json_object_set_new(files, found->path, json_string(text)) == 0 ? KHUB_OK : no_memory(err);
}

int khub__digest_make(json_t **out, khub__hash_kind kind, const char *build, const char *also,
                      khub_error *err)
{
    *out = NULL;
    khub__files found;
    int rc = khub__files_find(&found, build, also, err);
    if (rc != KHUB_OK) return rc;
    json_t *files = json_object();
    rc = files ? KHUB_OK : no_memory(err);
    for (size_t i = 0; rc == KHUB_OK && i < found.count; i++)
        rc = add_to_digest(files, &found.items[i], kind, build, err);
    khub__files_free(&found);
    if (rc == KHUB_OK) *out = json_pack("{s:s, s:O}", "algorithm", algorithm_of(kind)->name, "files", files);
    json_decref(files);
    return rc == KHUB_OK && !*out ? no_memory(err) : rc;
}

int khub__digest_read(khub__digest_claim *out, const json_t *digest, const char *file, khub_error *err)
{
    khub__json_source source = {file, err};
    const char *name = NULL, *key;
    json_t *value;
    *out = (khub__digest_claim){0};
    int rc = khub__json_string(&name, digest, "algorithm", &source);
    if (rc == KHUB_OK) rc = khub__json_object(&out->files, digest, "files", &source);
    if (rc != KHUB_OK) return rc;
    if (!name || !out->files)
        return khub__fail(err, KHUB_E_FORMAT, "%s: the digest has no \"%s\"", file,
                          name ? "files" : "algorithm");
    size_t i = 0, count = sizeof(algorithms) / sizeof(*algorithms);
    while (i < count && strcmp(name, algorithms[i].name) != 0)
        i++;
    if (i == count)
        return khub__fail(err, KHUB_E_FORMAT,
                          "%s: the digest's algorithm is \"%.32s\"; sha256 and sha512 can be checked", file,
                          name);
    out->kind = algorithms[i].kind;
    json_object_foreach ((json_t *)(uintptr_t)out->files, key, value)
        if (!json_is_string(value))
            return khub__fail(err, KHUB_E_FORMAT,
                              "%s: the digest has %s for \"%.100s\", a string is expected", file,
                              khub__json_type_name(value), key);
    return KHUB_OK;
}

/* What isn't needed of a violation is NULL. */
static int add_violation(khub__violations *to, khub__violation_kind kind, const char *path,
                         const char *expected, const char *got, const char *fault, khub_error *err)
{
    if (khub__grow((void **)&to->items, &to->capacity, to->count + 1, sizeof(*to->items), VIOLATIONS_MAX))
        return no_memory(err);
    khub__violation *v = &to->items[to->count++];
    *v = (khub__violation){kind, khub__strdup(path), khub__strdup(expected), khub__strdup(got),
                           khub__strdup(fault)};
    return v->path && !v->expected == !expected && !v->got == !got && !v->fault == !fault ? KHUB_OK
                                                                                          : no_memory(err);
}

static int compare_file(khub__violations *to, const khub__digest_claim *claim, const khub__hashed *file,
                        khub_error *err)
{
    char got[BASE64_MAX];
    if (!khub__digest_covers(file->path)) return KHUB_OK;
    const char *expected = json_string_value(json_object_get(claim->files, file->path));
    if (!expected) return add_violation(to, KHUB__VIOLATION_UNKNOWN, file->path, NULL, NULL, NULL, err);
    int rc = encode(got, file->hash, claim->kind, err);
    if (rc != KHUB_OK || !strcmp(expected, got)) return rc;
    return add_violation(to, KHUB__VIOLATION_CHANGED, file->path, expected, got, NULL, err);
}

static int by_path(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int by_violation(const void *a, const void *b)
{
    return strcmp(((const khub__violation *)a)->path, ((const khub__violation *)b)->path);
}

/* What the digest has and none of the `count` paths is. */
static int find_missing(khub__violations *to, const khub__digest_claim *claim, const char **paths,
                        size_t count, khub_error *err)
{
    const char *key;
    json_t *value;
    qsort(paths, count, sizeof(*paths), by_path);
    json_object_foreach ((json_t *)(uintptr_t)claim->files, key, value) {
        if (count && bsearch(&key, paths, count, sizeof(*paths), by_path)) continue;
        int rc = add_violation(to, KHUB__VIOLATION_MISSING, key, NULL, NULL, NULL, err);
        if (rc != KHUB_OK) return rc;
    }
    return KHUB_OK;
}

/* Compares the hashed ones; the `paths`, those that couldn't be hashed too, are what is there. Adds to *out;
 * after a failure it is empty. */
static int compare(khub__violations *out, const khub__digest_claim *claim, const khub__hashed *files,
                   size_t count, const char **paths, size_t path_count, khub_error *err)
{
    int rc = KHUB_OK;
    for (size_t i = 0; rc == KHUB_OK && i < count; i++)
        rc = compare_file(out, claim, &files[i], err);
    if (rc == KHUB_OK) rc = find_missing(out, claim, paths, path_count, err);
    if (rc != KHUB_OK)
        khub__violations_free(out);
    else if (out->count)
        qsort(out->items, out->count, sizeof(*out->items), by_violation);
    return rc;
}

int khub__digest_compare(khub__violations *out, const khub__digest_claim *claim, const khub__hashed *files,
                         size_t count, khub_error *err)
{
    memset(out, 0, sizeof(*out));
    size_t covered = 0;
    const char **paths = khub__calloc(count + 1, sizeof(*paths));
    if (!paths) return no_memory(err);
    for (size_t i = 0; i < count; i++)
        if (khub__digest_covers(files[i].path)) paths[covered++] = files[i].path;
    int rc = compare(out, claim, files, count, paths, covered, err);
    khub__free(paths);
    return rc;
}

/* Hashes what was found. In *paths what is there, in *hashed what could be read of it. */
static int hash_all(khub__violations *out, khub__hashed *hashed, size_t *hashed_count, const char **paths,
                    size_t *path_count, const khub__files *found, khub__hash_kind kind, const char *build,
                    khub_error *err)
{
    int rc = KHUB_OK;
    for (size_t i = 0; rc == KHUB_OK && i < found->count; i++) {
        khub_error fault = {0};
        const khub__found *file = &found->items[i];
        if (!is_covered(file)) continue;
        paths[(*path_count)++] = file->path;
        rc = hash_found(&hashed[*hashed_count], &fault, file, kind, build, err);
        if (rc == KHUB_OK && fault.code)
            rc = add_violation(out, KHUB__VIOLATION_FILE, file->path, NULL, NULL, fault.message, err);
        else
            ++*hashed_count;
    }
    return rc;
}

int khub__digest_check(khub__violations *out, const khub__digest_claim *claim, const char *build,
                       const char *also, khub_error *err)
{
    memset(out, 0, sizeof(*out));
    khub__files found;
    size_t hashed_count = 0, path_count = 0;
    int rc = khub__files_find(&found, build, also, err);
    if (rc != KHUB_OK) return rc;
    khub__hashed *hashed = khub__calloc(found.count + 1, sizeof(*hashed));
    const char **paths = khub__calloc(found.count + 1, sizeof(*paths));
    rc = hashed && paths ? KHUB_OK : no_memory(err);
    if (rc == KHUB_OK)
        rc = hash_all(out, hashed, &hashed_count, paths, &path_count, &found, claim->kind, build, err);
    if (rc == KHUB_OK)
        rc = compare(out, claim, hashed, hashed_count, paths, path_count, err);
    else
        khub__violations_free(out);
    khub__free(hashed);
    khub__free(paths);
    khub__files_free(&found);
    return rc;
}

void khub__violation_words(khub__text *to, const khub__violation *v)
{
    switch (v->kind) {
    case KHUB__VIOLATION_MISSING:
        khub__text_addf(to, "%s: is missing, the digest in metadata.json has it", v->path);
        break;
    case KHUB__VIOLATION_CHANGED:
        khub__text_addf(to, "%s: hashes to %s, metadata.json says %.100s", v->path, v->got, v->expected);
        break;
    case KHUB__VIOLATION_UNKNOWN:
        khub__text_addf(to, "%s: the digest in metadata.json doesn't have it", v->path);
        break;
    case KHUB__VIOLATION_FILE:
        khub__text_addf(to, "%s: %s", v->path, v->fault);
        break;
    }
}

void khub__violations_free(khub__violations *violations)
{
    for (size_t i = 0; i < violations->count; i++) {
        khub__violation *v = &violations->items[i];
        khub__free(v->path);
        khub__free(v->expected);
        khub__free(v->got);
        khub__free(v->fault);
    }
    khub__free(violations->items);
    memset(violations, 0, sizeof(*violations));
}
