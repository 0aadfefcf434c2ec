/* kernels.lock and pyproject.toml: any bytes. What is accepted is sound, and is written in one form that
 * reads as the same. */
#include "base/memory.h"
#include "fetch/lockfile.h"
#include "kernel/project.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(int holds)
{
    if (!holds) abort();
}

static int is_older(const khub__lockfile *lock)
{
    for (size_t i = 0; i < lock->count; i++)
        if (!*lock->kernels[i].wanted.revision) return 1;
    return 0;
}

static void check_accepted(khub__lockfile *lock)
{
    khub__tree tree = {0};
    khub__lockfile again;
    char *text, *twice;
    for (size_t i = 0; i < lock->count; i++) {
        khub__locked *kernel = &lock->kernels[i];
        khub__wanted wanted = kernel->wanted;
        check(khub__is_commit(kernel->commit) && strchr(wanted.repo.id, '/') && !wanted.is_range);
        check(khub__lockfile_find(lock, &wanted) != NULL);
        check(khub__lockfile_pin(lock, &wanted, NULL) == KHUB_OK && wanted.is_commit);
        khub__lockfile_check(lock, wanted.repo.id, kernel->commit, NULL, &tree, NULL, NULL);
    }
    int rc = khub__lockfile_text(&text, lock, NULL);
    check((rc != KHUB_OK) == is_older(lock));
    if (rc != KHUB_OK) return;
    check(khub__lockfile_parse(&again, text, strlen(text), "again", NULL) == KHUB_OK);
    check(again.count == lock->count);
    check(khub__lockfile_text(&twice, &again, NULL) == KHUB_OK && !strcmp(text, twice));
    khub__lockfile_free(&again);
    khub__free(text);
    khub__free(twice);
}

static void read_lock(const char *text, size_t size)
{
    khub__lockfile lock;
    khub_error err = {0};
    int rc = khub__lockfile_parse(&lock, text, size, "kernels.lock", &err);
    check((rc == KHUB_OK) == !err.message[0]);
    if (rc == KHUB_OK)
        check_accepted(&lock);
    else
        check(!lock.kernels && !lock.count);
    khub__lockfile_free(&lock);
}

static void read_project(const char *text, size_t size)
{
    khub__text names = {0};
    khub_error err = {0};
    size_t count = 0, n = 0;
    int rc = khub__project_parse(&names, &count, text, size, "pyproject.toml", &err);
    check((rc == KHUB_OK) == !err.message[0]);
    for (size_t at = 0; rc == KHUB_OK && at < names.length; at += strlen(names.data + at) + 1, n++) {
        khub__wanted wanted;
        check(khub__wanted_parse(&wanted, KHUB__REPO_KERNEL, names.data + at, NULL) == KHUB_OK);
        check(wanted.version >= 0);
    }
    check(rc != KHUB_OK || n == count);
    khub__text_free(&names);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size); /* exactly: a byte read past the end is noticed */
    if (size) memcpy(text, data, size);
    read_lock(text, size);
    read_project(text, size);
    free(text);
    return 0;
}
