/* All files of a build: what is there against what ought to be, by a receipt or by hashing, and what is
 * decided and kept of it. */
#include "trust/item.h"

#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/path.h"
#include "trust/files.h"

#include <stdio.h>
#include <stdlib.h>

#define LAYERS "layers.json"
enum { LAYERS_MAX = 16 << 20, TOLD = 100 /* files of which a digest doesn't hold */ };

/* All of them, while they are judged. */
typedef struct check {
    khub__proving with;
    khub__files found; /* what is in the directory */
    int listed;        /* 1: that was looked at */
    int64_t since_ns;
    khub__item *items;
    size_t count;
} check;

static int no_memory(khub_error *err)
{
    return khub__fail_memory(err, "proving a build");
}

static int is_library(const char *path)
{
    for (const char *at = khub__path_name(path); (at = strstr(at, ".so")) != NULL; at += 3)
        if (!at[3] || at[3] == '.') return 1;
    return 0;
}

static int by_path(const void *path, const void *it)
{
    return strcmp(path, ((const khub__item *)it)->path);
}

static int by_item(const void *a, const void *b)
{
    return strcmp(((const khub__item *)a)->path, ((const khub__item *)b)->path);
}

/* Links may lead to the blobs beside the snapshots, also where somebody names a snapshot by its path. */
static int list(check *c)
{
    char blobs[4200];
    if (c->listed) return KHUB_OK;
    c->listed = 1;
    if (c->with.proof->store)
        snprintf(blobs, sizeof(blobs), "%.4000s/blobs", c->with.proof->store->folder);
    else
        snprintf(blobs, sizeof(blobs), "%.4000s/../../../../blobs", c->with.proof->build);
    return khub__files_find(&c->found, c->with.proof->build, blobs, c->with.err);
}

/* Python's bytecode isn't the publisher's: Python writes it here. */
static int counts(const char *path)
{
    return khub__digest_covers(path) || !strcmp(path, "metadata.json") ||
           !strcmp(path, "metadata.json.sigstore");
}

static khub__item *new_item(check *c, const char *path)
{
    khub__item *it = &c->items[c->count++];
    it->path = it->hashed.path = path;
    it->is_library = is_library(path);
    it->is_layers = !strcmp(path, LAYERS);
    it->held.fd = -1;
    return it;
}

static int take_items(check *c)
{
    const khub__proof *proof = c->with.proof;
    int rc = proof->store ? KHUB_OK : list(c);
    if (rc != KHUB_OK) return rc;
    size_t most = proof->store ? proof->file_count : c->found.count;
    c->items = khub__calloc(most + 1, sizeof(*c->items));
    if (!c->items) return no_memory(c->with.err);
    for (size_t i = 0; proof->store && i < most; i++) {
        const char *name = khub__tree_etag(proof->files[i]);
        khub__item *it = new_item(c, khub__proof_inner(proof, proof->files[i]));
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
    const khub__proof *proof = c->with.proof;
    int rc = list(c);
    for (size_t i = 0; rc == KHUB_OK && i < c->found.count; i++) {
        const khub__found *found = &c->found.items[i];
        char room[600], named[KHUB__PROOF_NAME];
        const char *fault = khub__found_fault(found, room, sizeof(room));
        khub__proof_name_file(named, proof, found->path);
        if (found->kind != KHUB__FOUND_DIRECTORY && !counts(found->path)) continue;
        if (fault)
            rc = khub__proof_refuse(proof, KHUB__ABOUT_CONTENT, c->with.err, "%s: %s", named, fault);
        else if (!c->count || !bsearch(found->path, c->items, c->count, sizeof(*c->items), by_path))
            rc = khub__proof_refuse(proof, KHUB__ABOUT_CONTENT, c->with.err,
                                    "%s: isn't a file of this commit, somebody added it", named);
    }
    return rc;
}

static int compare_digest(check *c)
{
    khub__violations violations;
    khub__hashed *hashed = khub__calloc(c->count + 1, sizeof(*hashed));
    if (!hashed) return no_memory(c->with.err);
    for (size_t i = 0; i < c->count; i++)
        hashed[i] = c->items[i].hashed;
    int rc = khub__digest_compare(&violations, c->with.claim, hashed, c->count, c->with.err);
    khub__free(hashed);
    size_t bad = rc == KHUB_OK ? violations.count : 0;
    for (size_t i = 0; i < bad && i < TOLD; i++) {
        khub__text words = {0};
        khub__violation_words(&words, &violations.items[i]);
        khub__trust_add(c->with.proof->trust, KHUB__ABOUT_DIGEST, KHUB_TRUST_REFUSED, "%s: %s",
                        c->with.proof->about, words.data ? words.data : violations.items[i].path);
        khub__text_free(&words);
    }
    if (bad > TOLD)
        khub__trust_add(c->with.proof->trust, KHUB__ABOUT_DIGEST, KHUB_TRUST_REFUSED,
                        "%s: the digest in metadata.json doesn't hold for %zu more files",
                        c->with.proof->about, bad - TOLD);
    if (rc == KHUB_OK) khub__violations_free(&violations);
    return bad ? khub__trust_end(c->with.proof->trust, c->with.err) : rc;
}

static void take_files(khub__receipt_entry *to, const check *c)
{
    for (size_t i = 0; i < c->count; i++)
        to[i] = (khub__receipt_entry){c->items[i].path, c->items[i].name, c->items[i].identity};
}

/* Whether the files are as the receipt has them. */
static int believe_files(check *c, int as_blobs, int *believed)
{
    const khub__receipt *receipt = &c->with.proof->receipt;
    int rc = KHUB_OK;
    *believed = 1;
    for (size_t i = 0; rc == KHUB_OK && *believed && i < c->count; i++)
        rc = khub__item_look(&c->with, &c->items[i], as_blobs, believed);
    if (rc == KHUB_OK && *believed) {
        khub__receipt_entry *now = khub__calloc(c->count + 1, sizeof(*now));
        if (!now) return no_memory(c->with.err);
        take_files(now, c);
        *believed = khub__receipt_has_files(receipt, now, c->count);
        khub__free(now);
    }
    return rc;
}

/* Whether nothing changed since the receipt was written; *listed: the directories neither. Then each link
 * leads where it led, and where all files are links that is to the blobs. */
static int believe(check *c, int *believed, int *listed)
{
    const khub__proof *proof = c->with.proof;
    *believed = *listed = 0;
    if (!proof->receipt.text || (c->with.claim && !khub__receipt_digest(&proof->receipt))) return KHUB_OK;
    *listed = khub__receipt_has_directories(&proof->receipt, proof->build);
    int rc = *listed ? believe_files(c, 1, believed) : KHUB_OK;
    if (rc == KHUB_OK && !*believed) rc = believe_files(c, 0, believed);
    *listed = *listed && *believed;
    return rc;
}

static int prove_all(check *c)
{
    int rc = KHUB_OK;
    for (size_t i = 0; rc == KHUB_OK && i < c->count; i++)
        rc = khub__item_prove(&c->with, &c->items[i]);
    if (rc != KHUB_OK) return rc;
    if (c->with.proof->damaged_count)
        return khub__fail(c->with.err, KHUB_E_UNTRUSTED, "%s", c->with.proof->damage.message);
    return c->with.claim ? compare_digest(c) : KHUB_OK;
}

/* All directories, as they are, also what is empty: something may be put into it. 0: they can't be relied
 * on. */
static int take_directories(khub__receipt_entry *to, const check *c)
{
    for (size_t i = 0; i < c->found.directory_count; i++) {
        char full[4200];
        to[i].path = c->found.directories[i];
        if (strlen(to[i].path) > 1000 || strchr(to[i].path, '\n')) return 0; /* no line holds it */
        snprintf(full, sizeof(full), "%.3000s%s%.1000s", c->with.proof->build, *to[i].path ? "/" : "",
                 to[i].path);
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
    khub__proof *proof = c->with.proof;
    int rc = khub__receipt_write(&proof->receipt, proof->store, proof->commit, proof->variant, facts, &why);
    if (rc == KHUB_E_NOMEM) return no_memory(c->with.err);
    if (rc != KHUB_OK)
        khub__log(KHUB_LOG_DEBUG, "trust", proof->about, "no receipt is kept: %s", why.message);
    return KHUB_OK;
}

/* What can't be kept is proven again next time. KHUB_E_NOMEM. */
static int keep(const check *c, int believed)
{
    const khub__proof *proof = c->with.proof;
    if (!proof->store) return KHUB_OK;
    for (size_t i = 0; i < c->count; i++)
        if (!c->items[i].name[0] || c->items[i].others || (!believed && !c->items[i].settled)) return KHUB_OK;
    khub__receipt_facts facts = {.file_count = c->count,
                                 .digest = c->with.claim != NULL,
                                 .judged_by = proof->is_signed ? proof->judged_by : NULL,
                                 .signature = khub_trust_signature(proof->trust)};
    khub__receipt_entry *files = khub__calloc(c->count + 1, sizeof(*files));
    khub__receipt_entry *directories = khub__calloc(c->found.directory_count + 1, sizeof(*directories));
    int rc = files && directories ? write_receipt(c, &facts, files, directories) : no_memory(c->with.err);
    khub__free(directories);
    khub__free(files);
    return rc;
}

/* Files of which neither the list nor a digest says what they should be. */
static int judge_unknown(const check *c)
{
    const khub__proof *proof = c->with.proof;
    for (size_t i = 0; !c->with.claim && i < c->count; i++) {
        char named[KHUB__PROOF_NAME];
        if (c->items[i].name[0]) continue;
        khub__proof_name_file(named, proof, c->items[i].path);
        if (proof->refuse_unknown)
            return khub__proof_refuse(proof, KHUB__ABOUT_CONTENT, c->with.err,
                                      "%s: nothing here says what it should be, which the policy refuses",
                                      named);
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
        char named[KHUB__PROOF_NAME];
        if (!c->items[i].others) continue;
        khub__proof_name_file(named, c->with.proof, c->items[i].path);
        khub__trust_add(c->with.proof->trust, KHUB__ABOUT_CACHE, KHUB_TRUST_NOTED, "%s: %s", named, words);
        khub__log(KHUB_LOG_NOTICE, "trust", named, "%s", words);
        return; /* one is enough to see what the cache is like */
    }
}

/* Only where the list of files has all their names, and is believed, is it the commit that says what they
 * are. */
static void accept_files(const check *c, const char *how)
{
    const khub__proof *proof = c->with.proof;
    size_t listed = 0, named = 0;
    for (size_t i = 0; i < c->count; i++) {
        listed += khub__tree_etag(c->items[i].listed) != NULL;
        named += c->items[i].name[0] != 0;
    }
    if (listed == c->count)
        khub__trust_add_parts(proof->trust, KHUB__ABOUT_CONTENT, KHUB_TRUST_ACCEPTED,
                              (const char *const[]){proof->about, ": all files of build/", proof->variant,
                                                    " are what commit ", proof->commit, " says", how, NULL});
    else if (named)
        khub__trust_add(proof->trust, KHUB__ABOUT_CONTENT, KHUB_TRUST_ACCEPTED,
                        "%s: %zu of the %zu files of build/%s are what their names in the cache say; there "
                        "is no list of the files of commit %s%s",
                        proof->about, named, c->count, proof->variant, proof->commit, how);
}

static void accept(const check *c, int believed)
{
    const khub__proof *proof = c->with.proof;
    const char *how = believed ? ", as a receipt says, and nothing changed since" : "";
    if (proof->store && !proof->foreign) accept_files(c, how);
    if (proof->foreign) /* with an accepted signature (khub__proof_content) */
        khub__trust_add(
            proof->trust, KHUB__ABOUT_DIGEST, KHUB_TRUST_ACCEPTED,
            "%s: the digest in metadata.json, which is signed, holds; that it is commit %s's isn't "
            "known: %s",
            proof->about, proof->commit, proof->foreign);
    else if (c->with.claim)
        khub__trust_add_parts(
            proof->trust, KHUB__ABOUT_DIGEST, KHUB_TRUST_ACCEPTED,
            (const char *const[]){proof->about, ": the digest in metadata.json holds", how, NULL});
    note_others(c);
}

/* The text of layers.json, from the bytes that were proven. */
static int take_layers(khub__proven *out, const check *c, const khub__item *it)
{
    khub__bytes bytes = {0};
    int rc = khub__held_bytes(&bytes, &it->held, it->path, LAYERS_MAX, c->with.err);
    if (rc == KHUB_OK && !khub__held_still(&it->held))
        rc = khub__fail(c->with.err, KHUB_E_UNTRUSTED, "%s/%s: is being written to while it is read",
                        c->with.proof->build, it->path);
    out->layers = bytes.data;
    out->layers_bytes = bytes.length;
    return rc;
}

static int hand_over(khub__proven *out, check *c)
{
    int rc = KHUB_OK;
    for (size_t i = 0; out && rc == KHUB_OK && i < c->count; i++) {
        khub__item *it = &c->items[i];
        if (it->is_layers) rc = take_layers(out, c, it);
        if (it->is_library) rc = khub__proven_add(out, it->path, it->content, &it->held, c->with.err);
    }
    return rc;
}

static int judge(khub__proven *out, check *c)
{
    int believed = 0, listed = 0;
    int rc = take_items(c);
    if (rc == KHUB_OK) rc = believe(c, &believed, &listed);
    if (rc == KHUB_OK && !listed) rc = check_list(c);
    if (rc == KHUB_OK && !believed) {
        khub__receipt_free(&c->with.proof->receipt); /* it is of other files */
        rc = prove_all(c);
    }
    if (rc == KHUB_OK) rc = judge_unknown(c);
    if (rc == KHUB_OK && c->with.proof->whole) rc = khub__trust_end(c->with.proof->trust, c->with.err);
    if (rc != KHUB_OK) return rc;
    accept(c, believed);
    if (!listed) rc = keep(c, believed);
    if (rc == KHUB_OK) rc = khub__trust_end(c->with.proof->trust, c->with.err);
    return rc == KHUB_OK ? hand_over(out, c) : rc;
}

int khub__proof_content(khub__proven *out, khub__proof *proof, const khub__digest_claim *claim, int copy,
                        khub_error *err)
{
    if (proof->foreign && !(proof->is_signed && claim))
        return khub__proof_refuse(
            proof, KHUB__ABOUT_CACHE, err,
            "%s: what its files should be is known from the cache alone, and that isn't believed: %s. "
            "Get it from the Hub as this user, or into a cache of your own (KERNELS_CACHE)",
            proof->about, proof->foreign);
    check c = {.with = {proof, claim, err, copy}, .since_ns = khub__file_clock_ns()};
    int rc = judge(out, &c);
    if (rc != KHUB_OK && out) khub__proven_drop(out);
    for (size_t i = 0; i < c.count; i++)
        khub__held_drop(&c.items[i].held);
    khub__free(c.items);
    khub__files_free(&c.found);
    return rc;
}
