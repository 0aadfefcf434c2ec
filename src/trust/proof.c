#include "trust/proof.h"

#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/ours.h"
#include "base/path.h"
#include "trust/files.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define LAYERS "layers.json"
enum { LAYERS_MAX = 16 << 20, TOLD = 100 /* files of which a digest doesn't hold */, SIZE_WORDS = 200 };

/* A file that ought to be in the build. */
typedef struct item {
    const char *path;                     /* inside the build */
    const khub__tree_file *listed;        /* NULL: of a directory of this machine */
    char name[KHUB__HASH_HEX_MAX + 1];    /* that its content should have; "": nothing says it */
    char content[KHUB__HASH_HEX_MAX + 1]; /* that it has */
    khub__hashed hashed;                  /* for the digest */
    khub__identity identity;
    khub__held held;
    int is_library, is_layers; /* both are held until they are handed over */
    int others, settled;
} item;

/* All of them, while they are judged. */
typedef struct check {
    khub__proof *proof;
    const khub__digest_claim *claim; /* may be NULL */
    khub_error *err;
    khub__files found; /* what is in the directory */
    int listed;        /* 1: that was looked at */
    int copy;
    int64_t since_ns;
    item *items;
    size_t count;
} check;

static int no_memory(khub_error *err)
{
    return khub__fail_memory(err, "proving a build");
}

/* "ORG/NAME: build/VARIANT/PATH"; for a directory of this machine its path. */
static void name_file(char out[600], const khub__proof *proof, const char *path)
{
    if (proof->store)
        snprintf(out, 600, "%.200s: build/%.100s/%.250s", proof->about, proof->variant, path);
    else
        snprintf(out, 600, "%.250s/%.250s", proof->build, path);
}

static int note_damage(khub__proof *proof, const khub__tree_file *file, const char *path, const char *words,
                       khub_error *err)
{
    char named[600];
    const khub__tree_file **more =
        khub__realloc(proof->damaged, (proof->damaged_count + 1) * sizeof(*proof->damaged));
    if (!more) return no_memory(err);
    proof->damaged = more;
    more[proof->damaged_count++] = file;
    name_file(named, proof, path);
    khub__fail(&proof->damage, KHUB_E_UNTRUSTED, "%s: %s", named, words);
    return KHUB_OK;
}

void khub__proof_again(khub__proof *proof)
{
    khub__free(proof->damaged);
    proof->damaged = NULL;
    proof->damaged_count = 0;
    khub_error_clear(&proof->damage);
}

int khub__proof_refuse_damage(khub__proof *proof, khub_error *err)
{
    khub__trust_add(proof->trust, KHUB__ABOUT_CONTENT, KHUB_TRUST_REFUSED, "%s", proof->damage.message);
    return khub__trust_end(proof->trust, err);
}

static int refuse(const khub__proof *proof, const char *about, khub_error *err, const char *format, ...)
    KHUB_PRINTF(4, 5);

static int refuse(const khub__proof *proof, const char *about, khub_error *err, const char *format, ...)
{
    char words[1000];
    va_list args;
    va_start(args, format);
    vsnprintf(words, sizeof(words), format, args);
    va_end(args);
    khub__trust_add(proof->trust, about, KHUB_TRUST_REFUSED, "%s", words);
    return proof->whole ? KHUB_OK : khub__trust_end(proof->trust, err);
}

/* ---- opening ---- */

static const char *inner_path(const khub__proof *proof, const khub__tree_file *file)
{
    return file->path + strlen("build/") + strlen(proof->variant) + 1;
}

static int has_names(const khub__proof *proof)
{
    for (size_t i = 0; i < proof->file_count; i++)
        if (khub__tree_etag(proof->files[i])) return 1;
    return 0;
}

int khub__proof_open(khub__proof *proof, khub_error *err)
{
    if (!proof->store) return KHUB_OK;
    if (!proof->foreign && !has_names(proof)) {
        khub_error why = {0};
        int rc = khub__path_is_ours(NULL, proof->build, &why);
        if (rc == KHUB_E_NOMEM) return no_memory(err);
        if (rc == KHUB_E_UNTRUSTED) proof->foreign = "another user may write to this cache";
    }
    if (proof->whole) return KHUB_OK;
    return khub__receipt_read(&proof->receipt, proof->store, proof->commit, proof->variant, err);
}

void khub__proof_close(khub__proof *proof)
{
    khub__proof_again(proof);
    khub__receipt_free(&proof->receipt);
    khub__free(proof->judged_by);
    proof->judged_by = NULL;
}

/* What the link at `path` says, where the list of files says nothing: "../../blobs/HEX". */
static void take_link_name(item *it, const char *path)
{
    char target[1200];
    khub__hash_kind kind;
    khub__file_link(target, sizeof(target), path);
    const char *name = khub__path_name(target);
    if (khub__hash_kind_of(&kind, name) == 0) khub__copy(it->name, sizeof(it->name), name);
}

/* One file of many: each is told when all are looked at. */
static int damage(const check *c, const item *it, const char *words)
{
    char named[600];
    name_file(named, c->proof, it->path);
    if (c->proof->whole)
        khub__trust_add(c->proof->trust, KHUB__ABOUT_CONTENT, KHUB_TRUST_REFUSED, "%s: %s", named, words);
    return note_damage(c->proof, it->listed, it->path, words, c->err);
}

static char *full_path(const check *c, const item *it)
{
    return khub__path_join(c->proof->build, it->path);
}

static int is_library(const char *path)
{
    for (const char *at = khub__path_name(path); (at = strstr(at, ".so")) != NULL; at += 3)
        if (!at[3] || at[3] == '.') return 1;
    return 0;
}

/* ---- one file ---- */

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

static int is_covered(const check *c, const item *it)
{
    return c->claim && khub__digest_covers(it->path);
}

/* The first is what the content is called by. */
static void choose_hashes(hashes *h, const check *c, const item *it)
{
    khub__hash_kind kind = KHUB__HASH_SHA256;
    memset(h, 0, sizeof(*h));
    if (it->name[0] && khub__hash_kind_of(&kind, it->name) == 0) want(h, kind);
    if (is_covered(c, it)) want(h, c->claim->kind);
    if (!h->count) want(h, KHUB__HASH_SHA256);
}

static void end_hashes(hashes *h, const check *c, item *it)
{
    for (size_t i = 0; i < h->count; i++) {
        unsigned char bytes[KHUB__HASH_MAX] = {0};
        size_t length = khub__hash_end_bytes(h->of[i], bytes);
        if (i == 0) khub__hex(it->content, bytes, length);
        if (is_covered(c, it) && h->kinds[i] == c->claim->kind) memcpy(it->hashed.hash, bytes, sizeof(bytes));
    }
}

/* KHUB_E_FORMAT: it ends before its size. */
static int hash(const check *c, item *it, const char *path, khub_error *err)
{
    hashes h;
    int rc = KHUB_OK;
    choose_hashes(&h, c, it);
    for (size_t i = 0; rc == KHUB_OK && i < h.count; i++)
        rc = khub__hash_new(&h.of[i], h.kinds[i], it->held.size, err);
    khub__stream stream = khub__held_stream(&it->held, path);
    if (rc == KHUB_OK) rc = khub__hash_stream(h.of, h.count, &stream, err);
    if (rc == KHUB_OK) end_hashes(&h, c, it);
    for (size_t i = 0; i < h.count; i++)
        khub__hash_free(h.of[i]);
    return rc;
}

/* Compares what was hashed with the name. */
static int compare(const check *c, const item *it)
{
    char words[500];
    if (!it->name[0] || !strcmp(it->name, it->content)) return KHUB_OK;
    snprintf(words, sizeof(words),
             "its content doesn't match its name: it hashes to %s, the commit's list of files says %s",
             it->content, it->name);
    return damage(c, it, words);
}

/* 1: it has the size that the commit says, or none is known. 0, with words. */
static int is_size(char words[SIZE_WORDS], const khub__tree_file *listed, const khub__held *held)
{
    uint64_t wanted = listed ? listed->size : UINT64_MAX;
    if (wanted == UINT64_MAX || wanted == held->size) return 1;
    snprintf(words, SIZE_WORDS, "has %llu bytes, the commit's list of files says %llu",
             (unsigned long long)held->size, (unsigned long long)wanted);
    return 0;
}

static int compare_size(const check *c, const item *it, int *differs)
{
    char words[SIZE_WORDS];
    *differs = !is_size(words, it->listed, &it->held);
    return *differs ? damage(c, it, words) : KHUB_OK;
}

static int is_held(const item *it)
{
    return it->is_library || it->is_layers;
}

/* It is used after it was hashed: until then nobody may be able to write to it. Of a library, which may be
 * large, no copy is made where nothing is loaded. */
static int must_copy(const check *c, const item *it)
{
    int is_used = it->is_layers || (it->is_library && !c->proof->whole);
    return is_used && !it->held.copied && (c->copy || it->others || !khub__held_still(&it->held));
}

static int hash_held(const check *c, item *it, const char *path)
{
    int differs;
    khub_error why = {0};
    int rc = compare_size(c, it, &differs);
    if (rc != KHUB_OK || differs) return rc;
    rc = hash(c, it, path, &why);
    if (rc == KHUB_OK) return compare(c, it);
    if (rc == KHUB_E_FORMAT) return damage(c, it, "became shorter while it was read");
    return khub__fail(c->err, rc, "%s", why.message);
}

static int prove(const check *c, item *it, const char *path)
{
    int rc = must_copy(c, it) ? khub__held_copy(&it->held, path, c->err) : KHUB_OK;
    size_t before = c->proof->damaged_count;
    if (rc == KHUB_OK) rc = hash_held(c, it, path);
    if (rc == KHUB_OK && c->proof->damaged_count == before && must_copy(c, it)) { /* the lease was lost */
        rc = khub__held_copy(&it->held, path, c->err);
        if (rc == KHUB_OK) rc = hash_held(c, it, path);
    }
    it->settled = rc == KHUB_OK && khub__held_settled(&it->held);
    return rc;
}

static int hold(const check *c, item *it, const char *path)
{
    khub_error why = {0};
    khub__held_drop(&it->held);
    int rc = khub__hold(&it->held, path, &why);
    it->identity = it->held.file;
    it->others = it->held.others;
    if (rc == KHUB_OK || rc == KHUB_E_NOMEM) return rc == KHUB_OK ? rc : no_memory(c->err);
    if (rc == KHUB_E_NOTFOUND) return damage(c, it, "isn't there");
    if (rc == KHUB_E_FORMAT) return damage(c, it, "isn't a file");
    return khub__fail(c->err, rc, "%s", why.message);
}

static int prove_item(const check *c, item *it)
{
    char *path = full_path(c, it);
    if (!path) return no_memory(c->err);
    if (!it->name[0] && c->proof->store) take_link_name(it, path);
    int rc = hold(c, it, path);
    if (rc == KHUB_OK && it->held.fd >= 0) rc = prove(c, it, path);
    if (!is_held(it)) khub__held_drop(&it->held);
    khub__free(path);
    return rc;
}

/* ---- all files ---- */

static int by_path(const void *path, const void *it)
{
    return strcmp(path, ((const item *)it)->path);
}

static int by_item(const void *a, const void *b)
{
    return strcmp(((const item *)a)->path, ((const item *)b)->path);
}

/* Links may lead to the blobs beside the snapshots, also where somebody names a snapshot by its path. */
static int list(check *c)
{
    char blobs[4200];
    if (c->listed) return KHUB_OK;
    c->listed = 1;
    if (c->proof->store)
        snprintf(blobs, sizeof(blobs), "%.4000s/blobs", c->proof->store->folder);
    else
        snprintf(blobs, sizeof(blobs), "%.4000s/../../../../blobs", c->proof->build);
    return khub__files_find(&c->found, c->proof->build, blobs, c->err);
}

/* Python's bytecode isn't the publisher's: Python writes it here. */
static int counts(const char *path)
{
    return khub__digest_covers(path) || !strcmp(path, "metadata.json") ||
           !strcmp(path, "metadata.json.sigstore");
}

static item *new_item(check *c, const char *path)
{
    item *it = &c->items[c->count++];
    it->path = it->hashed.path = path;
    it->is_library = is_library(path);
    it->is_layers = !strcmp(path, LAYERS);
    it->held.fd = -1;
    return it;
}

static int take_items(check *c)
{
    const khub__proof *proof = c->proof;
    int rc = proof->store ? KHUB_OK : list(c);
    if (rc != KHUB_OK) return rc;
    size_t most = proof->store ? proof->file_count : c->found.count;
    c->items = khub__calloc(most + 1, sizeof(*c->items));
    if (!c->items) return no_memory(c->err);
    for (size_t i = 0; proof->store && i < most; i++) {
        const char *name = khub__tree_etag(proof->files[i]);
        item *it = new_item(c, inner_path(proof, proof->files[i]));
        it->listed = proof->files[i];
        khub__copy(it->name, sizeof(it->name), name ? name : "");
    }
    for (size_t i = 0; !proof->store && i < most; i++)
        if (counts(c->found.items[i].path)) new_item(c, c->found.items[i].path);
    if (c->count) qsort(c->items, c->count, sizeof(*c->items), by_item);
    return KHUB_OK;
}

/* Nothing is in the directory but what the commit has in it. */
static int check_list(check *c)
{
    const khub__proof *proof = c->proof;
    int rc = list(c);
    for (size_t i = 0; rc == KHUB_OK && i < c->found.count; i++) {
        const khub__found *found = &c->found.items[i];
        char room[600], named[600];
        const char *fault = khub__found_fault(found, room, sizeof(room));
        name_file(named, proof, found->path);
        if (found->kind != KHUB__FOUND_DIRECTORY && !counts(found->path)) continue;
        if (fault)
            rc = refuse(proof, KHUB__ABOUT_CONTENT, c->err, "%s: %s", named, fault);
        else if (!c->count || !bsearch(found->path, c->items, c->count, sizeof(*c->items), by_path))
            rc = refuse(proof, KHUB__ABOUT_CONTENT, c->err,
                        "%s: isn't a file of this commit, somebody added it", named);
    }
    return rc;
}

static int compare_digest(check *c)
{
    khub__violations violations;
    khub__hashed *hashed = khub__calloc(c->count + 1, sizeof(*hashed));
    if (!hashed) return no_memory(c->err);
    for (size_t i = 0; i < c->count; i++)
        hashed[i] = c->items[i].hashed;
    int rc = khub__digest_compare(&violations, c->claim, hashed, c->count, c->err);
    khub__free(hashed);
    size_t bad = rc == KHUB_OK ? violations.count : 0;
    for (size_t i = 0; i < bad && i < TOLD; i++) {
        khub__text words = {0};
        khub__violation_words(&words, &violations.items[i]);
        khub__trust_add(c->proof->trust, KHUB__ABOUT_DIGEST, KHUB_TRUST_REFUSED, "%s: %s", c->proof->about,
                        words.data ? words.data : violations.items[i].path);
        khub__text_free(&words);
    }
    if (bad > TOLD)
        khub__trust_add(c->proof->trust, KHUB__ABOUT_DIGEST, KHUB_TRUST_REFUSED,
                        "%s: the digest in metadata.json doesn't hold for %zu more files", c->proof->about,
                        bad - TOLD);
    if (rc == KHUB_OK) khub__violations_free(&violations);
    return bad ? khub__trust_end(c->proof->trust, c->err) : rc;
}

static void take_files(khub__receipt_entry *to, const check *c)
{
    for (size_t i = 0; i < c->count; i++)
        to[i] = (khub__receipt_entry){c->items[i].path, c->items[i].name, c->items[i].identity};
}

/* Looks at one as it is now; a library is held. *fit 0: nothing can be believed of it. */
static int look_at(check *c, item *it, int *fit)
{
    char *path = full_path(c, it);
    if (!path) return no_memory(c->err);
    int rc = KHUB_OK;
    if (is_held(it))
        rc = hold(c, it, path);
    else if (khub__identify(&it->identity, &it->others, path, 0) != 0)
        it->others = 1;
    *fit = rc == KHUB_OK && it->name[0] && !it->others && !c->proof->damaged_count && !must_copy(c, it);
    khub__copy(it->content, sizeof(it->content), it->name);
    khub__free(path);
    return rc;
}

/* Whether nothing changed since the receipt was written. */
static int believe(check *c, int *believed)
{
    const khub__receipt *receipt = &c->proof->receipt;
    int rc = KHUB_OK;
    *believed = receipt->text && (!c->claim || khub__receipt_digest(receipt));
    for (size_t i = 0; rc == KHUB_OK && *believed && i < c->count; i++)
        rc = look_at(c, &c->items[i], believed);
    if (rc == KHUB_OK && *believed) {
        khub__receipt_entry *now = khub__calloc(c->count + 1, sizeof(*now));
        if (!now) return no_memory(c->err);
        take_files(now, c);
        *believed = khub__receipt_has_files(receipt, now, c->count);
        khub__free(now);
    }
    if (rc == KHUB_OK && !*believed) khub__proof_again(c->proof);
    return rc;
}

static int prove_all(check *c)
{
    int rc = KHUB_OK;
    for (size_t i = 0; rc == KHUB_OK && i < c->count; i++)
        rc = prove_item(c, &c->items[i]);
    if (rc != KHUB_OK) return rc;
    if (c->proof->damaged_count) return khub__fail(c->err, KHUB_E_UNTRUSTED, "%s", c->proof->damage.message);
    return c->claim ? compare_digest(c) : KHUB_OK;
}

/* ---- what comes of it ---- */

/* All directories, as they are, also what is empty: something may be put into it. 0: they can't be relied
 * on. */
static int take_directories(khub__receipt_entry *to, const check *c)
{
    for (size_t i = 0; i < c->found.directory_count; i++) {
        char full[4200];
        to[i].path = c->found.directories[i];
        if (strlen(to[i].path) > 1000 || strchr(to[i].path, '\n')) return 0; /* no line holds it */
        snprintf(full, sizeof(full), "%.3000s%s%.1000s", c->proof->build, *to[i].path ? "/" : "", to[i].path);
        if (khub__identify(&to[i].identity, NULL, full, 1) != 0 ||
            !khub__identity_settled(&to[i].identity, c->since_ns))
            return 0;
    }
    return 1;
}

static int write_receipt(const check *c, khub__receipt_facts *facts, khub__receipt_entry *files,
                         khub__receipt_entry *directories)
{
    khub_error why = {0};
    take_files(files, c);
    facts->files = files;
    facts->directories = directories;
    facts->directory_count = take_directories(directories, c) ? c->found.directory_count : 0;
    int rc = khub__receipt_write(c->proof->store, c->proof->commit, c->proof->variant, facts, &why);
    if (rc == KHUB_E_NOMEM) return no_memory(c->err);
    if (rc != KHUB_OK)
        khub__log(KHUB_LOG_DEBUG, "trust", c->proof->about, "no receipt is kept: %s", why.message);
    return KHUB_OK;
}

/* What can't be kept is proven again next time. KHUB_E_NOMEM. */
static int keep(const check *c, int believed)
{
    const khub__proof *proof = c->proof;
    if (!proof->store) return KHUB_OK;
    for (size_t i = 0; i < c->count; i++)
        if (!c->items[i].name[0] || c->items[i].others || (!believed && !c->items[i].settled)) return KHUB_OK;
    khub__receipt_facts facts = {.file_count = c->count,
                                 .digest = c->claim != NULL,
                                 .judged_by = proof->is_signed ? proof->judged_by : NULL,
                                 .signature = khub_trust_signature(proof->trust)};
    khub__receipt_entry *files = khub__calloc(c->count + 1, sizeof(*files));
    khub__receipt_entry *directories = khub__calloc(c->found.directory_count + 1, sizeof(*directories));
    int rc = files && directories ? write_receipt(c, &facts, files, directories) : no_memory(c->err);
    khub__free(directories);
    khub__free(files);
    return rc;
}

/* Files of which neither the list nor a digest says what they should be. */
static int judge_unknown(const check *c)
{
    const khub__proof *proof = c->proof;
    for (size_t i = 0; !c->claim && i < c->count; i++) {
        char named[600];
        if (c->items[i].name[0]) continue;
        name_file(named, proof, c->items[i].path);
        if (proof->refuse_unknown)
            return refuse(proof, KHUB__ABOUT_CONTENT, c->err,
                          "%s: nothing here says what it should be, which the policy refuses", named);
        khub__trust_add(proof->trust, KHUB__ABOUT_CONTENT, KHUB_TRUST_NOTED,
                        "%s: nothing here says what it should be", named);
        return KHUB_OK;
    }
    return KHUB_OK;
}

static void note_others(const check *c)
{
    static const char words[] =
        "another user may write to it: it is hashed each time, and loaded from memory";
    for (size_t i = 0; i < c->count; i++) {
        char named[600];
        if (!c->items[i].others) continue;
        name_file(named, c->proof, c->items[i].path);
        khub__trust_add(c->proof->trust, KHUB__ABOUT_CACHE, KHUB_TRUST_NOTED, "%s: %s", named, words);
        khub__log(KHUB_LOG_NOTICE, "trust", named, "%s", words);
        return; /* one is enough to see what the cache is like */
    }
}

/* Only where the list of files has all their names, and is believed, is it the commit that says what they
 * are. */
static void accept_files(const check *c, const char *how)
{
    const khub__proof *proof = c->proof;
    size_t listed = 0, named = 0;
    for (size_t i = 0; i < c->count; i++) {
        listed += khub__tree_etag(c->items[i].listed) != NULL;
        named += c->items[i].name[0] != 0;
    }
    if (listed == c->count)
        khub__trust_add(proof->trust, KHUB__ABOUT_CONTENT, KHUB_TRUST_ACCEPTED,
                        "%s: the %zu files of build/%s are what commit %s says%s", proof->about, c->count,
                        proof->variant, proof->commit, how);
    else if (named)
        khub__trust_add(proof->trust, KHUB__ABOUT_CONTENT, KHUB_TRUST_ACCEPTED,
                        "%s: %zu of the %zu files of build/%s are what their names in the cache say; there "
                        "is no list of the files of commit %s%s",
                        proof->about, named, c->count, proof->variant, proof->commit, how);
}

static void accept(const check *c, int believed)
{
    const khub__proof *proof = c->proof;
    const char *how = believed ? ", as a receipt says, and nothing changed since" : "";
    if (proof->store && !proof->foreign) accept_files(c, how);
    if (proof->foreign) /* with an accepted signature (khub__proof_content) */
        khub__trust_add(
            proof->trust, KHUB__ABOUT_DIGEST, KHUB_TRUST_ACCEPTED,
            "%s: the digest in metadata.json, which is signed, holds; that it is commit %s's isn't "
            "known: %s",
            proof->about, proof->commit, proof->foreign);
    else if (c->claim)
        khub__trust_add(proof->trust, KHUB__ABOUT_DIGEST, KHUB_TRUST_ACCEPTED,
                        "%s: the digest in metadata.json holds%s", proof->about, how);
    note_others(c);
}

/* The text of layers.json, from the bytes that were proven. */
static int take_layers(khub__proven *out, const check *c, const item *it)
{
    khub__bytes bytes = {0};
    int rc = khub__held_bytes(&bytes, &it->held, it->path, LAYERS_MAX, c->err);
    if (rc == KHUB_OK && !khub__held_still(&it->held))
        rc = khub__fail(c->err, KHUB_E_UNTRUSTED, "%s/%s: is being written to while it is read",
                        c->proof->build, it->path);
    out->layers = bytes.data;
    out->layers_bytes = bytes.length;
    return rc;
}

static int hand_over(khub__proven *out, check *c)
{
    int rc = KHUB_OK;
    for (size_t i = 0; out && rc == KHUB_OK && i < c->count; i++) {
        item *it = &c->items[i];
        if (it->is_layers) rc = take_layers(out, c, it);
        if (it->is_library) rc = khub__proven_add(out, it->path, it->content, &it->held, c->err);
    }
    return rc;
}

static int judge(khub__proven *out, check *c)
{
    int believed = 0, listed = 0;
    int rc = take_items(c);
    if (rc == KHUB_OK) rc = believe(c, &believed);
    if (rc == KHUB_OK)
        listed = believed && khub__receipt_has_directories(&c->proof->receipt, c->proof->build);
    if (rc == KHUB_OK && !listed) rc = check_list(c);
    if (rc == KHUB_OK && !believed) rc = prove_all(c);
    if (rc == KHUB_OK) rc = judge_unknown(c);
    if (rc == KHUB_OK && c->proof->whole) rc = khub__trust_end(c->proof->trust, c->err);
    if (rc != KHUB_OK) return rc;
    accept(c, believed);
    if (!listed) rc = keep(c, believed);
    if (rc == KHUB_OK) rc = khub__trust_end(c->proof->trust, c->err);
    return rc == KHUB_OK ? hand_over(out, c) : rc;
}

int khub__proof_content(khub__proven *out, khub__proof *proof, const khub__digest_claim *claim, int copy,
                        khub_error *err)
{
    if (proof->foreign && !(proof->is_signed && claim))
        return refuse(
            proof, KHUB__ABOUT_CACHE, err,
            "%s: what its files should be is known from the cache alone, and that isn't believed: %s. "
            "Get it from the Hub as this user, or into a cache of your own (KERNELS_CACHE)",
            proof->about, proof->foreign);
    check c = {.proof = proof, .claim = claim, .err = err, .copy = copy, .since_ns = khub__file_clock_ns()};
    int rc = judge(out, &c);
    if (rc != KHUB_OK && out) khub__proven_drop(out);
    for (size_t i = 0; i < c.count; i++)
        khub__held_drop(&c.items[i].held);
    khub__free(c.items);
    khub__files_free(&c.found);
    return rc;
}

/* ---- small files ---- */

const khub__tree_file *khub__proof_listed(const khub__proof *proof, const char *path)
{
    for (size_t i = 0; i < proof->file_count; i++)
        if (!strcmp(inner_path(proof, proof->files[i]), path)) return proof->files[i];
    return NULL;
}

static int fail_damaged(khub__proof *proof, const khub__tree_file *listed, const char *path,
                        const char *words, khub_error *err)
{
    int rc = note_damage(proof, listed, path, words, err);
    return rc == KHUB_OK ? khub__fail(err, KHUB_E_UNTRUSTED, "%s", proof->damage.message) : rc;
}

/* The bytes that were read, against the name. */
static int compare_bytes(khub__proof *proof, const khub__tree_file *listed, const char *path,
                         const khub__bytes *bytes, khub_error *err)
{
    khub_error why = {0};
    int rc = khub__tree_check(listed, bytes->data, bytes->length, &why);
    if (rc == KHUB_E_UNTRUSTED) return fail_damaged(proof, listed, path, why.message, err);
    return rc == KHUB_OK ? rc : khub__fail(err, rc, "%s", why.message);
}

/* Opens it. One that is longer or shorter than the commit says isn't read at all: it may be endless. */
static int hold_listed(khub__held *held, khub__proof *proof, const khub__tree_file *listed, const char *path,
                       khub_error *err)
{
    char words[SIZE_WORDS];
    khub_error why = {0};
    char *full = khub__path_join(proof->build, path);
    int rc = full ? khub__hold(held, full, &why) : no_memory(&why);
    khub__free(full);
    if (rc == KHUB_E_FORMAT && listed) return fail_damaged(proof, listed, path, "isn't a file", err);
    if (rc != KHUB_OK) return khub__fail(err, rc, "%s", why.message);
    if (!listed || is_size(words, listed, held)) return KHUB_OK;
    khub__held_drop(held);
    return fail_damaged(proof, listed, path, words, err);
}

int khub__proof_read(khub__bytes *out, khub__proof *proof, const char *path, size_t most, khub_error *err)
{
    const khub__tree_file *listed = khub__proof_listed(proof, path);
    char named[600];
    khub__held held = {.fd = -1};
    name_file(named, proof, path);
    memset(out, 0, sizeof(*out));
    int rc = hold_listed(&held, proof, listed, path, err);
    if (rc == KHUB_OK) rc = khub__held_bytes(out, &held, named, most, err);
    const char *name = listed ? khub__tree_etag(listed) : NULL;
    int believed = rc == KHUB_OK && name && !held.others && khub__held_still(&held) &&
                   khub__receipt_has(&proof->receipt, &(khub__receipt_entry){path, name, held.file});
    proof->read_believed += believed;
    if (rc == KHUB_OK && listed && !believed) rc = compare_bytes(proof, listed, path, out, err);
    khub__held_drop(&held);
    if (rc != KHUB_OK) khub__bytes_free(out);
    return rc;
}
