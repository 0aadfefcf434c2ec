#include "cache/trees.h"

#include "base/error.h"
#include "base/json.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/text.h"
#include "cache/disk.h"
#include "cache/layout.h"

enum { FORMAT_VERSION = 1, TREE_MAX = 64 << 20 };

static int is_hex(const char *text, size_t digits)
{
    return text && strlen(text) == digits && strspn(text, "0123456789abcdef") == digits;
}

/* {"size", "blob_id", "lfs_sha256"?, "lfs_size"?, "xet_hash"?} */
static int read_entry(khub__tree *out, const char *path, const json_t *entry, const khub__json_source *source)
{
    if (!json_is_object(entry))
        return khub__fail(source->err, KHUB_E_FORMAT, "%s: %s is %s, an object is expected", source->file,
                          path, khub__json_type_name(entry));
    int64_t size = -1, lfs_size = -1;
    const char *blob_id = NULL, *sha256 = NULL, *xet_hash = NULL;
    int rc = khub__json_integer(&size, entry, "size", source);
    if (rc == KHUB_OK) rc = khub__json_integer(&lfs_size, entry, "lfs_size", source);
    if (rc == KHUB_OK) rc = khub__json_string(&blob_id, entry, "blob_id", source);
    if (rc == KHUB_OK) rc = khub__json_string(&sha256, entry, "lfs_sha256", source);
    if (rc == KHUB_OK) rc = khub__json_string(&xet_hash, entry, "xet_hash", source);
    if (rc != KHUB_OK) return rc;
    if (sha256 && lfs_size >= 0) size = lfs_size; /* of the content; "size" may be that of the pointer */
    if (size < 0) return khub__fail(source->err, KHUB_E_FORMAT, "%s: %s has no size", source->file, path);
    if (sha256 && !is_hex(sha256, 64))
        return khub__fail(source->err, KHUB_E_FORMAT, "%s: lfs_sha256 of %s isn't one", source->file, path);
    khub__tree_file file = {.path = path, .size = (uint64_t)size, .xet_hash = xet_hash};
    if (is_hex(blob_id, 40)) memcpy(file.blob_id, blob_id, 41);
    if (sha256) memcpy(file.sha256, sha256, 65);
    khub_error why = {0};
    rc = khub__tree_add(out, &file, &why);
    return rc == KHUB_OK ? rc : khub__fail(source->err, rc, "%s: %s", source->file, why.message);
}

static int read_files(khub__tree *out, const json_t *root, const khub__json_source *source)
{
    int64_t version = -1;
    const json_t *files = NULL;
    int rc = khub__json_integer(&version, root, "format_version", source);
    if (rc == KHUB_OK && version != FORMAT_VERSION)
        rc = khub__fail(source->err, KHUB_E_UNSUPPORTED, "%s: format_version is %lld, %d is expected",
                        source->file, (long long)version, FORMAT_VERSION);
    if (rc == KHUB_OK) rc = khub__json_object(&files, root, "files", source);
    if (rc == KHUB_OK && !files)
        rc = khub__fail(source->err, KHUB_E_FORMAT, "%s: has no files", source->file);
    const char *path;
    json_t *entry;
    if (rc == KHUB_OK)
        json_object_foreach ((json_t *)(uintptr_t)files, path, entry) /* reads only */
            if ((rc = read_entry(out, path, entry, source)) != KHUB_OK) break;
    return rc == KHUB_OK ? khub__tree_close(out, source->err) : rc;
}

int khub__trees_parse(khub__tree *out, const char *text, size_t length, const char *file, khub_error *err)
{
    memset(out, 0, sizeof(*out));
    json_t *root = NULL;
    int rc = khub__json_parse(&root, text, length, file, err);
    if (rc == KHUB_OK) rc = read_files(out, root, &(khub__json_source){file, err});
    json_decref(root);
    if (rc != KHUB_OK) khub__tree_free(out);
    return rc;
}

/* The number of a character and its length in bytes; the paths of a tree are valid UTF-8. */
static unsigned long code_point(const unsigned char *at, size_t *length)
{
    static const unsigned char mask[] = {0, 0x7F, 0x1F, 0x0F, 0x07};
    *length = *at < 0x80 ? 1 : *at < 0xE0 ? 2 : *at < 0xF0 ? 3 : 4;
    unsigned long c = *at & mask[*length];
    for (size_t i = 1; i < *length; i++)
        c = c << 6 | (at[i] & 0x3F);
    return c;
}

/* As Python writes it: ASCII alone, the rest as \u and 4 lower-case digits, in pairs beyond 0xFFFF. */
static void add_string(khub__text *out, const char *text)
{
    khub__text_add(out, "\"");
    for (size_t n; *text; text += n) {
        unsigned long c = code_point((const unsigned char *)text, &n);
        if (c >= 0x10000)
            khub__text_addf(out, "\\u%04lx\\u%04lx", 0xD800 + ((c - 0x10000) >> 10),
                            0xDC00 + ((c - 0x10000) & 0x3FF));
        else if (c >= 0x7F)
            khub__text_addf(out, "\\u%04lx", c);
        else if (c == '"' || c == '\\')
            khub__text_addf(out, "\\%c", (char)c);
        else
            khub__text_add_bytes(out, text, 1); /* control characters aren't in paths */
    }
    khub__text_add(out, "\"");
}

static void add_entry(khub__text *out, const khub__tree_file *file)
{
    khub__text_add(out, "\n  ");
    add_string(out, file->path);
    khub__text_addf(out, ": {\n   \"size\": %llu,\n   \"blob_id\": \"%s\"", (unsigned long long)file->size,
                    file->blob_id);
    if (file->sha256[0])
        khub__text_addf(out, ",\n   \"lfs_sha256\": \"%s\",\n   \"lfs_size\": %llu", file->sha256,
                        (unsigned long long)file->size);
    if (is_hex(file->xet_hash, 64)) /* the peer throws the whole list away for one that isn't */
        khub__text_addf(out, ",\n   \"xet_hash\": \"%s\"", file->xet_hash);
    khub__text_add(out, "\n  }");
}

char *khub__trees_text(const khub__tree *tree)
{
    khub__text out = {0};
    khub__text_addf(&out, "{\n \"format_version\": %d,\n \"files\": {", FORMAT_VERSION);
    for (size_t i = 0; i < tree->count && !out.failed; i++) {
        if (i) khub__text_add(&out, ",");
        add_entry(&out, &tree->files[i]);
    }
    khub__text_add(&out, tree->count ? "\n }\n}" : "}\n}");
    return khub__text_take(&out);
}

static int tree_path(char out[KHUB__LAYOUT_MAX], const char *commit, khub_error *err)
{
    int rc = khub__layout_of_commit(out, "trees", commit, NULL, err);
    if (rc == KHUB_OK) memcpy(out + strlen(out), ".json", sizeof(".json"));
    return rc;
}

int khub__store_tree(khub__tree *out, const khub__store *store, const char *commit, khub_error *err)
{
    memset(out, 0, sizeof(*out));
    char path[KHUB__LAYOUT_MAX], *text = NULL;
    size_t length;
    int rc = tree_path(path, commit, err);
    if (rc != KHUB_OK) return rc;
    khub_error why = {0};
    rc = khub__disk_get(&text, &length, NULL, store, path, TREE_MAX, &why);
    if (rc == KHUB_OK) rc = khub__trees_parse(out, text, length, path, &why);
    khub__free(text);
    if (rc == KHUB_OK || rc == KHUB_E_NOMEM || rc == KHUB_E_NOTFOUND)
        return rc == KHUB_OK ? rc : khub__fail(err, rc, "%s", why.message);
    khub__log(KHUB_LOG_NOTICE, "cache", store->folder, "the list of files there isn't used: %s", why.message);
    return khub__fail(err, KHUB_E_NOTFOUND, "%s: %s", store->folder, why.message);
}

int khub__store_set_tree(const khub__store *store, const char *commit, const khub__tree *tree,
                         khub_error *err)
{
    char path[KHUB__LAYOUT_MAX];
    int rc = tree_path(path, commit, err);
    if (rc != KHUB_OK) return rc;
    char *text = khub__trees_text(tree);
    if (!text) return khub__fail_memory(err, "writing the list of files");
    rc = khub__disk_put(store, path, text, strlen(text), err);
    khub__free(text);
    return rc;
}
