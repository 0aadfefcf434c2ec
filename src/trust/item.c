#include "trust/item.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/path.h"

#include <stdio.h>

static int no_memory(khub_error *err)
{
    return khub__fail_memory(err, "proving a build");
}

/* What the link at `path` says, where the list of files says nothing: "../../blobs/HEX". */
static void take_link_name(khub__item *it, const char *path)
{
    char target[1200];
    khub__hash_kind kind;
    khub__file_link(target, sizeof(target), path);
    const char *name = khub__path_name(target);
    if (khub__hash_kind_of(&kind, name) == 0) khub__copy(it->name, sizeof(it->name), name);
}

/* One file of many: each is told when all are looked at. */
static int damage(const khub__proving *with, const khub__item *it, const char *words)
{
    char named[KHUB__PROOF_NAME];
    khub__proof_name_file(named, with->proof, it->path);
    if (with->proof->whole)
        khub__trust_add(with->proof->trust, KHUB__ABOUT_CONTENT, KHUB_TRUST_REFUSED, "%s: %s", named, words);
    return khub__proof_damage(with->proof, it->listed, it->path, words, with->err);
}

static char *full_path(const khub__proving *with, const khub__item *it)
{
    return khub__path_join(with->proof->build, it->path);
}

/* Up to two hashes of a file: the one that its name is, and the digest's. */
typedef struct hashes {
    khub__hash_kind kinds[2];
    khub__hash *of[2];
    size_t count;
} hashes;

static void want(hashes *h, khub__hash_kind kind)
{
    for (size_t i = 0; i < h->count; i++)
        if (h->kinds[i] == kind) return;
    h->kinds[h->count++] = kind;
}

static int is_covered(const khub__proving *with, const khub__item *it)
{
    return with->claim && khub__digest_covers(it->path);
}

/* The first is what the content is called by. */
static void choose_hashes(hashes *h, const khub__proving *with, const khub__item *it)
{
    khub__hash_kind kind = KHUB__HASH_SHA256;
    memset(h, 0, sizeof(*h));
    if (it->name[0] && khub__hash_kind_of(&kind, it->name) == 0) want(h, kind);
    if (is_covered(with, it)) want(h, with->claim->kind);
    if (!h->count) want(h, KHUB__HASH_SHA256);
}

static void end_hashes(hashes *h, const khub__proving *with, khub__item *it)
{
    for (size_t i = 0; i < h->count; i++) {
        unsigned char bytes[KHUB__HASH_MAX] = {0};
        size_t length = khub__hash_end_bytes(h->of[i], bytes);
        if (i == 0) khub__hex(it->content, bytes, length);
        if (is_covered(with, it) && h->kinds[i] == with->claim->kind)
            memcpy(it->hashed.hash, bytes, sizeof(bytes));
    }
}

/* KHUB_E_FORMAT: it ends before its size. */
static int hash(const khub__proving *with, khub__item *it, const char *path, khub_error *err)
{
    hashes h;
    int rc = KHUB_OK;
    choose_hashes(&h, with, it);
    for (size_t i = 0; rc == KHUB_OK && i < h.count; i++)
        rc = khub__hash_new(&h.of[i], h.kinds[i], it->held.size, err);
    khub__stream stream = khub__held_stream(&it->held, path);
    if (rc == KHUB_OK) rc = khub__hash_stream(h.of, h.count, &stream, err);
    if (rc == KHUB_OK) end_hashes(&h, with, it);
    for (size_t i = 0; i < h.count; i++)
        khub__hash_free(h.of[i]);
    return rc;
}

/* Compares what was hashed with the name. */
static int compare(const khub__proving *with, const khub__item *it)
{
    char words[500];
    if (!it->name[0] || !strcmp(it->name, it->content)) return KHUB_OK;
    snprintf(words, sizeof(words),
             "its content doesn't match its name: it hashes to %s, the commit's list of files says %s",
             it->content, it->name);
    return damage(with, it, words);
}

static int compare_size(const khub__proving *with, const khub__item *it, int *differs)
{
    char words[KHUB__SIZE_WORDS];
    *differs = !khub__proof_is_size(words, it->listed, &it->held);
    return *differs ? damage(with, it, words) : KHUB_OK;
}

static int is_held(const khub__item *it)
{
    return it->is_library || it->is_layers;
}

/* It is used after it was hashed: until then nobody may be able to write to it (who uses it asks again). Of a
 * library, which may be large, no copy is made where nothing is loaded. */
static int must_copy(const khub__proving *with, const khub__item *it, int still)
{
    int is_used = it->is_layers || (it->is_library && !with->proof->whole);
    return is_used && !it->held.copied && (with->copy || it->others || !still);
}

static int hash_held(const khub__proving *with, khub__item *it, const char *path)
{
    int differs;
    khub_error why = {0};
    int rc = compare_size(with, it, &differs);
    if (rc != KHUB_OK || differs) return rc;
    rc = hash(with, it, path, &why);
    if (rc == KHUB_OK) return compare(with, it);
    if (rc == KHUB_E_FORMAT) return damage(with, it, "became shorter while it was read");
    return khub__fail(with->err, rc, "%s", why.message);
}

static int prove(const khub__proving *with, khub__item *it, const char *path)
{
    int rc = must_copy(with, it, it->held.leased) ? khub__held_copy(&it->held, path, with->err) : KHUB_OK;
    size_t before = with->proof->damaged_count;
    if (rc == KHUB_OK) rc = hash_held(with, it, path);
    if (rc == KHUB_OK && with->proof->damaged_count == before &&
        must_copy(with, it, khub__held_still(&it->held))) { /* the lease was lost */
        rc = khub__held_copy(&it->held, path, with->err);
        if (rc == KHUB_OK) rc = hash_held(with, it, path);
    }
    it->settled = rc == KHUB_OK && khub__held_settled(&it->held);
    return rc;
}

static void note_held(khub__item *it)
{
    it->identity = it->held.file;
    it->others = it->held.others;
}

static int hold(const khub__proving *with, khub__item *it, const char *path)
{
    khub_error why = {0};
    khub__held_drop(&it->held);
    int rc = khub__hold(&it->held, path, &why);
    note_held(it);
    if (rc == KHUB_OK || rc == KHUB_E_NOMEM) return rc == KHUB_OK ? rc : no_memory(with->err);
    if (rc == KHUB_E_NOTFOUND) return damage(with, it, "isn't there");
    if (rc == KHUB_E_FORMAT) return damage(with, it, "isn't a file");
    return khub__fail(with->err, rc, "%s", why.message);
}

int khub__item_prove(const khub__proving *with, khub__item *it)
{
    char *path = full_path(with, it);
    if (!path) return no_memory(with->err);
    if (!it->name[0] && with->proof->store) take_link_name(it, path);
    int rc = hold(with, it, path);
    if (rc == KHUB_OK && it->held.fd >= 0) rc = prove(with, it, path);
    if (!is_held(it)) khub__held_drop(&it->held);
    khub__free(path);
    return rc;
}

static char *blob_path(const khub__proving *with, const khub__item *it)
{
    char *blobs = khub__path_join(with->proof->store->folder, "blobs");
    char *path = blobs ? khub__path_join(blobs, it->name) : NULL;
    khub__free(blobs);
    return path;
}

int khub__item_look(const khub__proving *with, khub__item *it, int as_blob, int *fit)
{
    char *path = as_blob ? blob_path(with, it) : full_path(with, it);
    if (!path) return no_memory(with->err);
    khub__held_drop(&it->held);
    int there = is_held(it) ? khub__hold(&it->held, path, NULL) == KHUB_OK
                            : khub__identify(&it->identity, &it->others, path, 0) == 0;
    if (is_held(it)) note_held(it);
    *fit = there && it->name[0] && !it->others && !must_copy(with, it, it->held.leased);
    khub__copy(it->content, sizeof(it->content), it->name);
    khub__free(path);
    return KHUB_OK;
}
