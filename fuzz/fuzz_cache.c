/* What other programs write into a cache: trees/COMMIT.json, refs, notes in lock files. The first byte
 * chooses. */
#include "base/memory.h"
#include "cache/layout.h"
#include "cache/link.h"
#include "cache/trees.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(int holds)
{
    if (!holds) abort();
}

/* What is read is written and read again as the same. */
static void fuzz_tree(const char *text, size_t size)
{
    khub__tree tree, again;
    khub_error err = {0};
    int rc = khub__trees_parse(&tree, text, size, "x.json", &err);
    check((rc == KHUB_OK) == (err.code == KHUB_OK) && (rc == KHUB_OK || err.message[0]));
    if (rc != KHUB_OK) return;
    char *out = khub__trees_text(&tree);
    check(out != NULL);
    check(khub__trees_parse(&again, out, strlen(out), "x.json", NULL) == KHUB_OK &&
          again.count == tree.count);
    for (size_t i = 0; i < tree.count; i++) {
        const khub__tree_file *a = &tree.files[i], *b = &again.files[i];
        check(khub__is_repo_path(a->path, strlen(a->path)));
        check(!strcmp(a->path, b->path) && a->size == b->size && !strcmp(a->blob_id, b->blob_id) &&
              !strcmp(a->sha256, b->sha256));
    }
    khub_free(out);
    khub__tree_free(&again);
    khub__tree_free(&tree);
}

static void put(const char *folder, const char *name, const char *text, size_t size)
{
    char path[4096];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *file = fopen(path, "wb");
    check(file && fwrite(text, 1, size, file) == size && fclose(file) == 0);
}

static khub__store store;
static char root[] = "/tmp/khub-fuzz-XXXXXX";

static void remove_root(void)
{
    char command[64];
    snprintf(command, sizeof(command), "rm -rf %s", root);
    check(system(command) == 0);
    khub__store_close(&store);
}

static khub__store *open_store(void)
{
    static const khub__repo repo = {KHUB__REPO_KERNEL, "org/name"};
    if (store.folder) return &store;
    check(mkdtemp(root) && atexit(remove_root) == 0 &&
          khub__store_open(&store, &repo, root, NULL) == KHUB_OK);
    check(khub__store_set_ref(&store, "v1", "1111111111111111111111111111111111111111", NULL) == KHUB_OK);
    return &store;
}

/* A ref of any bytes is a commit or an error with words. */
static void fuzz_ref(const char *text, size_t size)
{
    const khub__store *cache = open_store();
    char commit[KHUB__COMMIT_MAX + 1], refs[4096];
    khub_error err = {0};
    snprintf(refs, sizeof(refs), "%s/refs", cache->folder);
    put(refs, "v1", text, size);
    int rc = khub__store_ref(commit, NULL, cache, "v1", &err);
    check(rc == KHUB_OK ? khub__is_commit(commit) : rc == err.code && err.message[0]);
}

/* A lock's file of any bytes doesn't keep a blob from being brought. */
static void fuzz_note(const char *text, size_t size)
{
    static const char name[] = "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"; /* the empty file's */
    const khub__store *cache = open_store();
    khub__blob *blob;
    khub_error err = {0};
    char locks[4096];
    uint64_t have;
    snprintf(locks, sizeof(locks), "%s/.locks", cache->cache);
    mkdir(locks, 0777);
    snprintf(locks, sizeof(locks), "%s/.locks/kernels--org--name", cache->cache);
    mkdir(locks, 0777);
    put(locks, "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391.lock", text, size);
    check(khub__blob_new(&blob, cache, "1111111111111111111111111111111111111111", "f", &err) == KHUB_OK);
    khub__blob_distrust(blob); /* so that it is brought each time */
    check(khub__blob_sink.begin(blob, name, 0, &have, &err) == KHUB_OK && have == 0);
    check(khub__blob_sink.finish(blob, &err) == KHUB_OK);
    khub__blob_free(blob);
}

/* A link's words lead to a blob of the repository, or nowhere. */
static void fuzz_link(const char *text, size_t size)
{
    char target[1024];
    if (size >= sizeof(target)) size = sizeof(target) - 1;
    memcpy(target, text, size);
    target[size] = 0;
    const char *name = khub__link_blob("/c/repo", "/c/repo/snapshots/x/d/f", target);
    check(!name || (name >= target && name[0] && !strchr(name, '/') && strcmp(name, "..") != 0));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static void (*const targets[])(const char *, size_t) = {fuzz_tree, fuzz_ref, fuzz_note, fuzz_link};
    if (size == 0) return 0;
    char *copy = malloc(size); /* of exactly its size, so that reading behind it is seen */
    check(copy != NULL);
    memcpy(copy, data + 1, size - 1);
    targets[data[0] % 4](copy, size - 1);
    free(copy);
    return 0;
}
