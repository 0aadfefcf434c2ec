#include "hub/listing.h"

#include "base/error.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/text.h"

static int fail_missing(const char *key, const khub__json_source *source)
{
    return khub__fail(source->err, KHUB_E_FORMAT, "%s: \"%s\" is missing", source->file, key);
}

static int fail_commit(const char *key, const khub__json_source *source)
{
    return khub__fail(source->err, KHUB_E_FORMAT, "%s: \"%s\" isn't a commit of 40 hex digits", source->file,
                      key);
}

/* One branch or tag. A name that can't be asked for is passed over: *taken is 0. */
static int read_ref(khub__ref *out, int *taken, const json_t *object, const khub__json_source *source)
{
    const char *name = NULL, *commit = NULL;
    *taken = 0;
    if (!json_is_object(object))
        return khub__fail(source->err, KHUB_E_FORMAT, "%s: a ref is %s, an object is expected", source->file,
                          khub__json_type_name(object));
    int rc = khub__json_string(&name, object, "name", source);
    if (rc == KHUB_OK) rc = khub__json_string(&commit, object, "targetCommit", source);
    if (rc != KHUB_OK) return rc;
    if (!name || !commit) return fail_missing(name ? "targetCommit" : "name", source);
    if (!khub__is_commit(commit)) return fail_commit("targetCommit", source);
    if (strlen(name) > KHUB__REVISION_MAX || !khub__is_repo_path(name, strlen(name))) return KHUB_OK;
    khub__copy(out->name, sizeof(out->name), name);
    khub__copy(out->commit, sizeof(out->commit), commit);
    *taken = 1;
    return KHUB_OK;
}

static int read_refs(khub__ref **out, size_t *count, const json_t *root, const char *key,
                     const khub__json_source *source)
{
    const json_t *array = NULL, *object;
    int rc = khub__json_array(&array, root, key, source), taken;
    if (rc != KHUB_OK || json_array_size(array) == 0) return rc;
    *out = khub__calloc(json_array_size(array), sizeof(**out));
    if (!*out) return khub__fail_memory(source->err, "listing branches");
    size_t i;
    json_array_foreach (array, i, object) {
        rc = read_ref(&(*out)[*count], &taken, object, source);
        if (rc != KHUB_OK) return rc;
        *count += (size_t)taken;
    }
    return KHUB_OK;
}

int khub__listing_refs(khub__refs *out, const char *text, size_t length, const char *address, khub_error *err)
{
    khub__json_source source = {address, err};
    json_t *root;
    memset(out, 0, sizeof(*out));
    int rc = khub__json_parse(&root, text, length, address, err);
    if (rc != KHUB_OK) return rc;
    if (!json_object_get(root, "branches")) rc = fail_missing("branches", &source);
    if (rc == KHUB_OK) rc = read_refs(&out->branches, &out->branch_count, root, "branches", &source);
    if (rc == KHUB_OK) rc = read_refs(&out->tags, &out->tag_count, root, "tags", &source);
    json_decref(root);
    if (rc != KHUB_OK) khub__refs_free(out);
    return rc;
}

void khub__refs_free(khub__refs *refs)
{
    khub__free(refs->branches);
    khub__free(refs->tags);
    memset(refs, 0, sizeof(*refs));
}

/* Copies a hash of `digits` hex digits; NULL is "". */
static int put_hash(char *out, const char *hash, size_t digits, const char *path,
                    const khub__json_source *source)
{
    out[0] = 0;
    if (!hash) return KHUB_OK;
    if (strlen(hash) != digits || strspn(hash, "0123456789abcdef") != digits)
        return khub__fail(source->err, KHUB_E_FORMAT, "%s: the hash of %.200s isn't %zu hex digits",
                          source->file, path, digits);
    memcpy(out, hash, digits + 1);
    return KHUB_OK;
}

static int read_size(uint64_t *out, const json_t *object, const char *path, const khub__json_source *source)
{
    int64_t size = -1;
    int rc = khub__json_integer(&size, object, "size", source);
    if (rc == KHUB_OK && size < 0)
        rc = khub__fail(source->err, KHUB_E_FORMAT, "%s: the size of %.200s is missing or negative",
                        source->file, path);
    *out = (uint64_t)size;
    return rc;
}

static int read_file(khub__tree_file *file, const json_t *object, const khub__json_source *source)
{
    const char *oid = NULL, *sha256 = NULL;
    const json_t *lfs = NULL;
    int rc = khub__json_string(&file->path, object, "path", source);
    if (rc == KHUB_OK && !file->path) rc = fail_missing("path", source);
    if (rc == KHUB_OK) rc = read_size(&file->size, object, file->path, source);
    if (rc == KHUB_OK) rc = khub__json_string(&oid, object, "oid", source);
    if (rc == KHUB_OK) rc = khub__json_object(&lfs, object, "lfs", source);
    if (rc == KHUB_OK && lfs) rc = khub__json_string(&sha256, lfs, "oid", source);
    if (rc == KHUB_OK && lfs && json_object_get(lfs, "size"))
        rc = read_size(&file->size, lfs, file->path, source);
    if (rc == KHUB_OK) rc = khub__json_string(&file->xet_hash, object, "xetHash", source);
    if (rc == KHUB_OK) rc = put_hash(file->blob_id, oid, 40, file->path, source);
    if (rc == KHUB_OK) rc = put_hash(file->sha256, sha256, 64, file->path, source);
    return rc;
}

static int read_entry(khub__tree *tree, const json_t *object, const khub__json_source *source)
{
    const char *type = NULL;
    khub__tree_file file = {0};
    if (!json_is_object(object))
        return khub__fail(source->err, KHUB_E_FORMAT, "%s: an entry is %s, an object is expected",
                          source->file, khub__json_type_name(object));
    int rc = khub__json_string(&type, object, "type", source);
    if (rc != KHUB_OK || !type) return rc != KHUB_OK ? rc : fail_missing("type", source);
    if (strcmp(type, "file") != 0) return KHUB_OK; /* folders come with their files */
    rc = read_file(&file, object, source);
    return rc == KHUB_OK ? khub__tree_add(tree, &file, source->err) : rc;
}

int khub__listing_page(khub__tree *tree, const char *text, size_t length, const char *address,
                       khub_error *err)
{
    khub__json_source source = {address, err};
    json_t *root, *object;
    size_t i;
    int rc = khub__json_parse_array(&root, text, length, address, err);
    if (rc != KHUB_OK) return rc;
    json_array_foreach (root, i, object) {
        rc = read_entry(tree, object, &source);
        if (rc != KHUB_OK) break;
    }
    json_decref(root);
    return rc;
}

int khub__listing_commit(char commit[KHUB__COMMIT_MAX + 1], const char *text, size_t length,
                         const char *address, khub_error *err)
{
    khub__json_source source = {address, err};
    const char *sha = NULL;
    json_t *root;
    int rc = khub__json_parse(&root, text, length, address, err);
    if (rc != KHUB_OK) return rc;
    rc = khub__json_string(&sha, root, "sha", &source);
    if (rc == KHUB_OK && !sha) rc = fail_missing("sha", &source);
    if (rc == KHUB_OK && !khub__is_commit(sha)) rc = fail_commit("sha", &source);
    if (rc == KHUB_OK) khub__copy(commit, KHUB__COMMIT_MAX + 1, sha);
    json_decref(root);
    return rc;
}

int khub__listing_publisher(int *trusted, const char *text, size_t length, const char *address,
                            khub_error *err)
{
    khub__json_source source = {address, err};
    json_t *root;
    *trusted = 0;
    int rc = khub__json_parse(&root, text, length, address, err);
    if (rc != KHUB_OK) return rc;
    rc = khub__json_bool(trusted, root, "trustedKernelPublisher", &source);
    json_decref(root);
    return rc;
}
