/* A root directory that stands for another machine's, with the files that a test puts there. */
#ifndef TESTS_ROOT_H
#define TESTS_ROOT_H

#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

static char root[] = "/tmp/khub-root-XXXXXX";

static inline void make_root(void)
{
    strcpy(root + sizeof(root) - 7, "XXXXXX"); /* it may be the second one */
    ck_assert_ptr_nonnull(mkdtemp(root));
}

static inline void remove_root(void)
{
    char command[100];
    snprintf(command, sizeof(command), "rm -rf '%s'", root);
    ck_assert_int_eq(system(command), 0);
}

/* Makes ROOT/path and the directories on the way to it; `path` starts with "/". */
static inline void put_bytes(const char *path, const void *bytes, size_t length)
{
    char full[512];
    snprintf(full, sizeof(full), "%s%s", root, path);
    for (char *slash = full + strlen(root) + 1; (slash = strchr(slash, '/')) != NULL; slash++) {
        *slash = 0;
        mkdir(full, 0777);
        *slash = '/';
    }
    FILE *file = fopen(full, "w");
    ck_assert_ptr_nonnull(file);
    fwrite(bytes, 1, length, file);
    fclose(file);
}

static inline void put(const char *path, const char *text)
{
    put_bytes(path, text, strlen(text));
}

#endif
