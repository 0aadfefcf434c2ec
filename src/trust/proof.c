#include "trust/proof.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/ours.h"
#include "base/path.h"

#include <stdarg.h>
#include <stdio.h>

static int no_memory(khub_error *err)
{
    return khub__fail_memory(err, "proving a build");
}

void khub__proof_name_file(char out[KHUB__PROOF_NAME], const khub__proof *proof, const char *path)
{
    if (proof->store)
        snprintf(out, KHUB__PROOF_NAME, "%.200s: build/%.100s/%.250s", proof->about, proof->variant, path);
    else
        snprintf(out, KHUB__PROOF_NAME, "%.250s/%.250s", proof->build, path);
}

int khub__proof_damage(khub__proof *proof, const khub__tree_file *file, const char *path, const char *words,
                       khub_error *err)
{
    char named[KHUB__PROOF_NAME];
    const khub__tree_file **more =
        khub__realloc(proof->damaged, (proof->damaged_count + 1) * sizeof(*proof->damaged));
    if (!more) return no_memory(err);
    proof->damaged = more;
    more[proof->damaged_count++] = file;
    khub__proof_name_file(named, proof, path);
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

int khub__proof_refuse(const khub__proof *proof, const char *about, khub_error *err, const char *format, ...)
{
    char words[1000];
    va_list args;
    va_start(args, format);
    vsnprintf(words, sizeof(words), format, args);
    va_end(args);
    khub__trust_add(proof->trust, about, KHUB_TRUST_REFUSED, "%s", words);
    return proof->whole ? KHUB_OK : khub__trust_end(proof->trust, err);
}

const char *khub__proof_inner(const khub__proof *proof, const khub__tree_file *file)
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

int khub__proof_is_size(char words[KHUB__SIZE_WORDS], const khub__tree_file *listed, const khub__held *held)
{
    uint64_t wanted = listed ? listed->size : UINT64_MAX;
    if (wanted == UINT64_MAX || wanted == held->size) return 1;
    snprintf(words, KHUB__SIZE_WORDS, "has %llu bytes, the commit's list of files says %llu",
             (unsigned long long)held->size, (unsigned long long)wanted);
    return 0;
}

const khub__tree_file *khub__proof_listed(const khub__proof *proof, const char *path)
{
    for (size_t i = 0; i < proof->file_count; i++)
        if (!strcmp(khub__proof_inner(proof, proof->files[i]), path)) return proof->files[i];
    return NULL;
}

static int fail_damaged(khub__proof *proof, const khub__tree_file *listed, const char *path,
                        const char *words, khub_error *err)
{
    int rc = khub__proof_damage(proof, listed, path, words, err);
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
    char words[KHUB__SIZE_WORDS];
    khub_error why = {0};
    char *full = khub__path_join(proof->build, path);
    int rc = full ? khub__hold(held, full, &why) : no_memory(&why);
    khub__free(full);
    if (rc == KHUB_E_FORMAT && listed) return fail_damaged(proof, listed, path, "isn't a file", err);
    if (rc != KHUB_OK) return khub__fail(err, rc, "%s", why.message);
    if (!listed || khub__proof_is_size(words, listed, held)) return KHUB_OK;
    khub__held_drop(held);
    return fail_damaged(proof, listed, path, words, err);
}

int khub__proof_read(khub__bytes *out, khub__proof *proof, const char *path, size_t most, khub_error *err)
{
    const khub__tree_file *listed = khub__proof_listed(proof, path);
    char named[KHUB__PROOF_NAME];
    khub__held held = {.fd = -1};
    khub__proof_name_file(named, proof, path);
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
