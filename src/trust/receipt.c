#include "trust/receipt.h"

#include "base/error.h"
#include "base/json.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/ours.h"
#include "base/path.h"
#include "cache/disk.h"
#include "cache/layout.h"

#include <stdio.h>

enum { FORMAT = 1, RECEIPT_MAX = 32 << 20 };

static int receipt_path(char out[KHUB__LAYOUT_MAX], const char *commit, const char *build, khub_error *err)
{
    int rc = khub__layout_of_commit(out, "receipts", commit, build, err);
    size_t n = rc == KHUB_OK ? strlen(out) : 0;
    if (rc == KHUB_OK && n + sizeof(".json") > KHUB__LAYOUT_MAX)
        return khub__fail(err, KHUB_E_INVAL, "%s: is too long", build);
    if (rc == KHUB_OK) memcpy(out + n, ".json", sizeof(".json"));
    return rc;
}

/* Nobody else may write to the file, nor put another in its place. */
static int is_ours(const khub__store *store, const char *path, khub_error *err)
{
    char full[KHUB__DISK_PATH_MAX];
    if (khub__disk_path(full, store, path) != 0) return khub__fail(err, KHUB_E_IO, "%s: is too long", path);
    return khub__path_is_ours(NULL, full, err);
}

static int is_text(const json_t *object, const char *key, const char *wanted)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text && !strcmp(text, wanted);
}

static int is_of(const json_t *json, const khub__store *store, const char *commit, const char *build)
{
    return json_integer_value(json_object_get(json, "format")) == FORMAT &&
           is_text(json, "repository", store->repo.id) && is_text(json, "commit", commit) &&
           is_text(json, "build", build);
}

int khub__receipt_read(khub__receipt *out, const khub__store *store, const char *commit, const char *build,
                       khub_error *err)
{
    char path[KHUB__LAYOUT_MAX], *text = NULL;
    size_t bytes = 0;
    khub_error why = {0};
    out->json = NULL;
    int rc = receipt_path(path, commit, build, &why);
    if (rc == KHUB_OK) rc = is_ours(store, path, &why);
    if (rc == KHUB_OK) rc = khub__disk_get(&text, &bytes, NULL, store, path, RECEIPT_MAX, &why);
    if (rc == KHUB_OK) rc = khub__json_parse(&out->json, text, bytes, path, &why);
    khub__free(text);
    if (rc == KHUB_E_NOMEM) return khub__fail_memory(err, "reading a receipt");
    if (rc != KHUB_OK && rc != KHUB_E_NOTFOUND)
        khub__log(KHUB_LOG_DEBUG, "trust", store->repo.id, "a receipt isn't used: %s", why.message);
    if (out->json && !is_of(out->json, store, commit, build)) khub__receipt_free(out);
    return KHUB_OK;
}

void khub__receipt_free(khub__receipt *receipt)
{
    json_decref(receipt->json);
    receipt->json = NULL;
}

int khub__receipt_counts(const khub__receipt *receipt, size_t files)
{
    return receipt->json && json_object_size(json_object_get(receipt->json, "files")) == files;
}

/* [device, inode, size, time of change] */
static int is_identity(const json_t *array, const khub__identity *identity)
{
    const int64_t wanted[] = {(int64_t)identity->device, (int64_t)identity->inode, (int64_t)identity->size,
                              identity->changed_ns};
    const size_t parts = sizeof(wanted) / sizeof(*wanted);
    for (size_t i = 0; i < parts; i++) {
        const json_t *number = json_array_get(array, i);
        if (!json_is_integer(number) || json_integer_value(number) != wanted[i]) return 0;
    }
    return json_array_size(array) == parts;
}

int khub__receipt_names(const khub__receipt *receipt, const char *path, const char *name)
{
    return is_text(json_object_get(json_object_get(receipt->json, "files"), path), "hash", name);
}

int khub__receipt_has(const khub__receipt *receipt, const char *path, const char *name,
                      const khub__identity *identity)
{
    const json_t *file = json_object_get(json_object_get(receipt->json, "files"), path);
    return file && is_text(file, "hash", name) && is_identity(json_object_get(file, "is"), identity);
}

int khub__receipt_has_directories(const khub__receipt *receipt, const char *directory)
{
    const json_t *all = json_object_get(receipt->json, "directories");
    const char *path;
    json_t *was;
    json_object_foreach ((json_t *)(uintptr_t)all, path, was) {
        char full[KHUB__DISK_PATH_MAX];
        khub__identity now;
        int n = snprintf(full, sizeof(full), "%s%s%s", directory, *path ? "/" : "", path);
        if (n < 0 || (size_t)n >= sizeof(full) || khub__identify(&now, NULL, full, 1) != 0 ||
            !is_identity(was, &now))
            return 0;
    }
    return json_object_size(all) > 0;
}

int khub__receipt_digest(const khub__receipt *receipt)
{
    return json_is_true(json_object_get(receipt->json, "digest"));
}

/* The facts of a signature, by their names in the receipt. */
static const struct {
    const char *key;
    size_t offset;
} texts[] = {{"subject", offsetof(khub_signature, subject)},
             {"issuer", offsetof(khub_signature, issuer)},
             {"source", offsetof(khub_signature, repository)},
             {"commit", offsetof(khub_signature, commit)},
             {"ref", offsetof(khub_signature, ref)},
             {"workflow", offsetof(khub_signature, workflow)},
             {"trigger", offsetof(khub_signature, trigger)},
             {"run", offsetof(khub_signature, run)},
             {"log", offsetof(khub_signature, log)}},
  numbers[] = {{"log_index", offsetof(khub_signature, log_index)},
               {"integrated", offsetof(khub_signature, integrated_s)},
               {"timestamp", offsetof(khub_signature, timestamp_s)},
               {"not_before", offsetof(khub_signature, not_before_s)},
               {"not_after", offsetof(khub_signature, not_after_s)}};
enum { TEXTS = sizeof(texts) / sizeof(*texts), NUMBERS = sizeof(numbers) / sizeof(*numbers) };

static void take_numbers(khub_signature *out, const json_t *from)
{
    for (size_t i = 0; i < NUMBERS; i++) {
        const json_t *number = json_object_get(from, numbers[i].key);
        int64_t value = json_is_integer(number) ? json_integer_value(number) : -1;
        memcpy((char *)out + numbers[i].offset, &value, sizeof(value));
    }
}

int khub__receipt_signature(khub_signature *out, const khub__receipt *receipt, const char *judged_by,
                            khub_error *err)
{
    const json_t *from = json_object_get(receipt->json, "signature");
    memset(out, 0, sizeof(*out));
    if (!from || !is_text(from, "judged_by", judged_by)) return 0;
    size_t bytes = 1;
    for (size_t i = 0; i < TEXTS; i++)
        bytes += json_string_length(json_object_get(from, texts[i].key)) + 1;
    char *memory = khub__malloc(bytes);
    if (!memory) return khub__fail_memory(err, "reading a receipt");
    *memory = 0;
    *out = (khub_signature){.reason = KHUB_SIGNATURE_HOLDS, .words = memory, .memory = memory};
    char *at = memory + 1;
    for (size_t i = 0; i < TEXTS; i++) {
        const json_t *text = json_object_get(from, texts[i].key);
        if (!json_is_string(text)) continue;
        memcpy(at, json_string_value(text), json_string_length(text) + 1);
        memcpy((char *)out + texts[i].offset, &at, sizeof(at));
        at += json_string_length(text) + 1;
    }
    take_numbers(out, from);
    return 1;
}

static void add_identity(khub__text *to, const khub__identity *identity)
{
    khub__text_addf(to, "[%lld, %lld, %lld, %lld]", (long long)identity->device, (long long)identity->inode,
                    (long long)identity->size, (long long)identity->changed_ns);
}

static void add_files(khub__text *to, const khub__receipt_facts *facts)
{
    khub__text_add(to, ",\n \"files\": {");
    for (size_t i = 0; i < facts->file_count; i++) {
        khub__text_add(to, i ? ",\n  " : "\n  ");
        khub__json_add_string(to, facts->files[i].path);
        khub__text_addf(to, ": {\"hash\": \"%s\", \"is\": ", facts->files[i].name);
        add_identity(to, &facts->files[i].identity);
        khub__text_add(to, "}");
    }
    khub__text_add(to, "},\n \"directories\": {");
    for (size_t i = 0; i < facts->directory_count; i++) {
        khub__text_add(to, i ? ",\n  " : "\n  ");
        khub__json_add_string(to, facts->directories[i].path);
        khub__text_add(to, ": ");
        add_identity(to, &facts->directories[i].identity);
    }
    khub__text_add(to, "}");
}

static void add_signature(khub__text *to, const khub__receipt_facts *facts)
{
    if (!facts->judged_by) return;
    khub__text_add(to, ",\n \"signature\": {\"judged_by\": ");
    khub__json_add_string(to, facts->judged_by);
    for (size_t i = 0; i < TEXTS; i++) {
        const char *text;
        memcpy(&text, (const char *)facts->signature + texts[i].offset, sizeof(text));
        khub__text_addf(to, ",\n  \"%s\": ", texts[i].key);
        khub__json_add_string(to, text);
    }
    for (size_t i = 0; i < NUMBERS; i++) {
        int64_t number;
        memcpy(&number, (const char *)facts->signature + numbers[i].offset, sizeof(number));
        khub__text_addf(to, ",\n  \"%s\": %lld", numbers[i].key, (long long)number);
    }
    khub__text_add(to, "}");
}

static char *receipt_text(const khub__store *store, const char *commit, const char *build,
                          const khub__receipt_facts *facts)
{
    khub__text text = {0};
    khub__text_addf(&text,
                    "{\"format\": %d,\n \"repository\": \"%s\",\n \"commit\": \"%s\",\n \"build\": ", FORMAT,
                    store->repo.id, commit);
    khub__json_add_string(&text, build);
    khub__text_addf(&text, ",\n \"digest\": %s", facts->digest ? "true" : "false");
    add_signature(&text, facts);
    add_files(&text, facts);
    khub__text_add(&text, "}\n");
    return khub__text_take(&text);
}

int khub__receipt_write(const khub__store *store, const char *commit, const char *build,
                        const khub__receipt_facts *facts, khub_error *err)
{
    char path[KHUB__LAYOUT_MAX];
    int rc = receipt_path(path, commit, build, err);
    if (rc != KHUB_OK) return rc;
    char *text = receipt_text(store, commit, build, facts);
    rc = text ? khub__disk_put(store, path, text, strlen(text), err)
              : khub__fail_memory(err, "writing a receipt");
    khub__free(text);
    return rc;
}
