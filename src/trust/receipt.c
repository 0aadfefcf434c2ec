#include "trust/receipt.h"

#include "base/error.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/text.h"
#include "cache/disk.h"
#include "cache/layout.h"

#include <inttypes.h>
#include <stdlib.h>

enum { RECEIPT_MAX = 32 << 20, LINE_MAX = 1600 };

/* A number and a blank behind what is there; the end of it. By sixteens: the others' division takes longer
 * than a look at a file. */
static char *add_number(char *to, uint64_t number)
{
    int digits = 1;
    while (digits < 16 && number >> (4 * digits))
        digits++;
    while (digits-- > 0)
        *to++ = "0123456789abcdef"[number >> (4 * digits) & 15];
    *to++ = ' ';
    return to;
}

/* "file 3b8e… 801 7 19ab8 187ce62a89bc1a00 lib/x.so", or without a name "directory 801 …"; its length with
 * the end of the line, 0: no line can hold it. */
static size_t line_of(char out[LINE_MAX], const khub__receipt_entry *entry)
{
    const khub__identity *is = &entry->identity;
    size_t name = entry->name ? strlen(entry->name) : 0, path = strlen(entry->path);
    if (name > KHUB__HASH_HEX_MAX || path > LINE_MAX - 300 || memchr(entry->path, '\n', path)) return 0;
    char *at = stpcpy(out, entry->name ? "file " : "directory ");
    if (entry->name) at = stpcpy(stpcpy(at, entry->name), " ");
    at = add_number(at, is->device);
    at = add_number(at, is->inode);
    at = add_number(at, is->size);
    at = add_number(at, (uint64_t)is->changed_ns);
    at = stpcpy(stpcpy(at, entry->path), "\n");
    return (size_t)(at - out);
}

static const char first[] = "khub receipt 3\n", digest_holds[] = "digest holds\n", judged[] = "judged by ",
                  loaded[] = "loaded ";

/* ---- reading ---- */

/* Nobody else may write to the file nor put another in its place. What it is is asked of the open file, not
 * of its name: one look less. It isn't leased: who was let in before the right to write was taken from him,
 * and waited until he knew what to forge, needn't have it open any more. */
static int read_ours(khub__bytes *out, const khub__store *store, const char *path, khub_error *err)
{
    char full[KHUB__DISK_PATH_MAX];
    memset(out, 0, sizeof(*out));
    if (khub__disk_path(full, store, path) != 0) return khub__fail(err, KHUB_E_IO, "%s: is too long", path);
    khub__held held = {.fd = -1};
    int rc = khub__disk_is_ours(store, "", err);
    if (rc == KHUB_OK) rc = khub__hold_loosely(&held, full, err);
    if (rc == KHUB_OK && held.others)
        rc = khub__fail(err, KHUB_E_UNTRUSTED, "%s: another user may write to it", full);
    if (rc == KHUB_OK) rc = khub__held_bytes(out, &held, full, RECEIPT_MAX, err);
    khub__held_drop(&held);
    return rc;
}

static int starts(const char *text, const char *with)
{
    return !strncmp(text, with, strlen(with));
}

static const char *next_line(const char *at)
{
    const char *end = strchr(at, '\n');
    return end ? end + 1 : at + strlen(at);
}

static const char *skip_lines(const char *at, const char *word)
{
    while (starts(at, word))
        at = next_line(at);
    return at;
}

static const char *find_line(const char *at, const char *word)
{
    while (*at && !starts(at, word))
        at = next_line(at);
    return at;
}

/* What follows `word`, `value` and the end of the line at `at`; NULL: something else stands there. */
static const char *skip(const char *at, const char *word, const char *value)
{
    if (!at || !starts(at, word)) return NULL;
    at += strlen(word);
    if (!starts(at, value)) return NULL;
    at += strlen(value);
    return *at == '\n' ? at + 1 : NULL;
}

/* Takes the text over when its first lines say that it is of this build. */
static void take(khub__receipt *out, khub__bytes *bytes, const khub__store *store, const char *commit,
                 const char *build)
{
    if (strlen(bytes->data) != bytes->length || !starts(bytes->data, first)) return;
    const char *at = skip(bytes->data + strlen(first), "repository ", store->repo.id);
    at = skip(at, "commit ", commit);
    at = skip(at, "build ", build);
    if (!at) return;
    out->text = bytes->data;
    out->files = starts(at, digest_holds) ? at + strlen(digest_holds) : at;
    out->directories = skip_lines(out->files, "file ");
    out->signature = skip_lines(out->directories, "directory ");
    out->company = find_line(out->signature, loaded);
    memset(bytes, 0, sizeof(*bytes));
}

int khub__receipt_read(khub__receipt *out, const khub__store *store, const char *commit, const char *build,
                       khub_error *err)
{
    char path[KHUB__LAYOUT_MAX];
    khub__bytes bytes = {0};
    khub_error why = {0};
    memset(out, 0, sizeof(*out));
    int rc = khub__layout_receipt(path, commit, build, &why);
    if (rc == KHUB_OK) rc = read_ours(&bytes, store, path, &why);
    if (rc == KHUB_OK) take(out, &bytes, store, commit, build);
    khub__bytes_free(&bytes);
    if (rc == KHUB_E_NOMEM) return khub__fail_memory(err, "reading a receipt");
    if (rc != KHUB_OK && rc != KHUB_E_NOTFOUND)
        khub__log(KHUB_LOG_DEBUG, "trust", store->repo.id, "a receipt isn't used: %s", why.message);
    return KHUB_OK;
}

void khub__receipt_free(khub__receipt *receipt)
{
    khub__free(receipt->text);
    memset(receipt, 0, sizeof(*receipt));
}

int khub__receipt_has_files(const khub__receipt *receipt, const khub__receipt_entry *files, size_t count)
{
    const char *at = receipt->files;
    for (size_t i = 0; at && i < count; i++) {
        char line[LINE_MAX];
        size_t n = line_of(line, &files[i]);
        if (!n || strncmp(at, line, n) != 0) return 0;
        at += n;
    }
    return at && at == receipt->directories;
}

int khub__receipt_has(const khub__receipt *receipt, const khub__receipt_entry *file)
{
    char line[LINE_MAX];
    size_t n = receipt->text ? line_of(line, file) : 0;
    for (const char *at = receipt->files; n && at < receipt->directories; at++) {
        if (!strncmp(at, line, n)) return 1;
        at = strchr(at, '\n');
    }
    return 0;
}

int khub__receipt_has_directories(const khub__receipt *receipt, const char *directory)
{
    const char *at = receipt->directories;
    int count = 0;
    for (; at && at < receipt->signature && starts(at, "directory "); count++) {
        char path[LINE_MAX], full[KHUB__DISK_PATH_MAX], line[LINE_MAX];
        const char *end = strchr(at, '\n'), *name = at;
        for (int word = 0; name && name < end && word < 5; word++) /* what stands before the path */
            name = strchr(name, ' ') ? strchr(name, ' ') + 1 : NULL;
        if (!end || !name || name > end || (size_t)(end - name) >= sizeof(path)) return 0;
        memcpy(path, name, (size_t)(end - name));
        path[end - name] = 0;
        khub__receipt_entry now = {.path = path};
        if (strlen(directory) + 1 + strlen(path) >= sizeof(full)) return 0;
        stpcpy(stpcpy(stpcpy(full, directory), *path ? "/" : ""), path);
        if (khub__identify(&now.identity, NULL, full, 1) != 0) return 0;
        size_t length = line_of(line, &now);
        if (!length || strncmp(at, line, length) != 0) return 0;
        at += length;
    }
    return count > 0;
}

int khub__receipt_digest(const khub__receipt *receipt)
{
    return receipt->text && receipt->files - receipt->text >= (ptrdiff_t)strlen(digest_holds) &&
           starts(receipt->files - strlen(digest_holds), digest_holds);
}

/* ---- the signature ---- */

/* Its facts, by the words that their lines begin with. */
static const struct {
    const char *key;
    size_t offset;
} texts[] = {{"subject ", offsetof(khub_signature, subject)},
             {"issuer ", offsetof(khub_signature, issuer)},
             {"source ", offsetof(khub_signature, repository)},
             {"source-commit ", offsetof(khub_signature, commit)},
             {"ref ", offsetof(khub_signature, ref)},
             {"workflow ", offsetof(khub_signature, workflow)},
             {"trigger ", offsetof(khub_signature, trigger)},
             {"run ", offsetof(khub_signature, run)},
             {"log ", offsetof(khub_signature, log)}},
  numbers[] = {{"log-index ", offsetof(khub_signature, log_index)},
               {"integrated ", offsetof(khub_signature, integrated_s)},
               {"timestamp ", offsetof(khub_signature, timestamp_s)},
               {"not-before ", offsetof(khub_signature, not_before_s)},
               {"not-after ", offsetof(khub_signature, not_after_s)}};
enum { TEXTS = sizeof(texts) / sizeof(*texts), NUMBERS = sizeof(numbers) / sizeof(*numbers) };

/* One line, which ends with a NUL now. */
static void take_line(khub_signature *out, char *line)
{
    for (size_t i = 0; i < TEXTS; i++) {
        char *value = line + strlen(texts[i].key);
        if (starts(line, texts[i].key)) memcpy((char *)out + texts[i].offset, &value, sizeof(value));
    }
    for (size_t i = 0; i < NUMBERS; i++) {
        if (!starts(line, numbers[i].key)) continue;
        int64_t value = strtoll(line + strlen(numbers[i].key), NULL, 10);
        memcpy((char *)out + numbers[i].offset, &value, sizeof(value));
    }
}

/* The policy's text has several lines; here it is one. */
static char *one_line(const char *judged_by)
{
    char *line = khub__strdup(judged_by);
    for (char *at = line; at && (at = strchr(at, '\n')) != NULL;)
        *at = ' ';
    return line;
}

int khub__receipt_signature(khub_signature *out, const khub__receipt *receipt, const char *judged_by,
                            khub_error *err)
{
    memset(out, 0, sizeof(*out));
    if (!receipt->text || !starts(receipt->signature, judged)) return 0;
    char *wanted = one_line(judged_by), *memory = khub__strdup(receipt->signature + strlen(judged));
    size_t n = wanted ? strlen(wanted) : 0;
    int same = wanted && memory && !strncmp(memory, wanted, n) && memory[n] == '\n';
    int rc = wanted && memory ? same : khub__fail_memory(err, "reading a receipt");
    khub__free(wanted);
    if (rc != 1) {
        khub__free(memory);
        return rc;
    }
    *out = (khub_signature){.reason = KHUB_SIGNATURE_HOLDS, .memory = memory};
    for (char *at = memory + n + 1, *end; (end = strchr(at, '\n')) != NULL; at = end + 1) {
        *end = 0;
        take_line(out, at);
    }
    memory[0] = 0;
    out->words = memory; /* "" */
    return 1;
}

/* ---- writing ---- */

static void add_entries(khub__text *to, const khub__receipt_entry *entries, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        char line[LINE_MAX];
        khub__text_add_bytes(to, line, line_of(line, &entries[i]));
    }
}

static void add_signature(khub__text *to, const khub__receipt_facts *facts)
{
    char *line = facts->judged_by ? one_line(facts->judged_by) : NULL;
    if (facts->judged_by && !line) to->failed = 1;
    if (!line) return;
    khub__text_addf(to, "%s%s\n", judged, line);
    khub__free(line);
    for (size_t i = 0; i < TEXTS; i++) {
        const char *text;
        memcpy(&text, (const char *)facts->signature + texts[i].offset, sizeof(text));
        if (text && !strchr(text, '\n')) khub__text_addf(to, "%s%s\n", texts[i].key, text);
    }
    for (size_t i = 0; i < NUMBERS; i++) {
        int64_t number;
        memcpy(&number, (const char *)facts->signature + numbers[i].offset, sizeof(number));
        khub__text_addf(to, "%s%" PRId64 "\n", numbers[i].key, number);
    }
}

static int put(const khub__store *store, const char *commit, const char *build, const khub__text *text,
               khub_error *err)
{
    char path[KHUB__LAYOUT_MAX];
    if (text->failed) return khub__fail_memory(err, "writing a receipt");
    int rc = khub__layout_receipt(path, commit, build, err);
    return rc == KHUB_OK ? khub__disk_put(store, path, text->data, text->length, err) : rc;
}

int khub__receipt_write(khub__receipt *receipt, const khub__store *store, const char *commit,
                        const char *build, const khub__receipt_facts *facts, khub_error *err)
{
    khub__text text = {0};
    khub__receipt_free(receipt);
    khub__text_addf(&text, "%srepository %s\ncommit %s\nbuild %s\n", first, store->repo.id, commit, build);
    if (facts->digest) khub__text_add(&text, digest_holds);
    add_entries(&text, facts->files, facts->file_count);
    add_entries(&text, facts->directories, facts->directory_count);
    add_signature(&text, facts);
    int rc = put(store, commit, build, &text, err);
    khub__bytes bytes = {0};
    bytes.length = text.length;
    bytes.data = khub__text_take(&text);
    if (rc == KHUB_OK) take(receipt, &bytes, store, commit, build);
    khub__free(bytes.data);
    return rc;
}

const char *khub__receipt_company(const khub__receipt *receipt)
{
    return receipt->text ? receipt->company : "";
}

int khub__receipt_keep_company(const khub__receipt *receipt, const khub__store *store, const char *commit,
                               const char *build, const char *lines, khub_error *err)
{
    khub__text text = {0};
    khub__text_add_bytes(&text, receipt->text, (size_t)(receipt->company - receipt->text));
    khub__text_add(&text, lines);
    int rc = put(store, commit, build, &text, err);
    khub__text_free(&text);
    return rc;
}
