/* A page of a tree of any bytes: paths that are safe on disk, hashes that are hashes. */
#include "hub/listing.h"
#include "hub/repo.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(int holds)
{
    if (!holds) abort();
}

static void check_file(const khub__tree_file *file)
{
    khub__hash_kind kind;
    check(khub__is_repo_path(file->path, strlen(file->path)));
    check(!file->blob_id[0] ||
          (khub__hash_kind_of(&kind, file->blob_id) == 0 && kind == KHUB__HASH_GIT_BLOB));
    check(!file->sha256[0] || (khub__hash_kind_of(&kind, file->sha256) == 0 && kind == KHUB__HASH_SHA256));
    check(file->size <= INT64_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    khub__tree tree = {0};
    khub_error err = {0};
    int rc = khub__listing_page(&tree, (const char *)data, size, "page", &err);
    check((rc == KHUB_OK) == !err.message[0]);
    if (rc == KHUB_OK) rc = khub__tree_close(&tree, &err);
    for (size_t i = 0; i < tree.count; i++)
        check_file(&tree.files[i]);
    for (size_t i = 0; rc == KHUB_OK && i < tree.count; i++)
        check(khub__tree_find(&tree, tree.files[i].path) == &tree.files[i]);
    khub__tree_free(&tree);
    return 0;
}
