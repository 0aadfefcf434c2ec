/* A cache in a directory of its own, for the tests of src/cache. Everything is removed with the test's
 * process by cache_end. */
#ifndef TESTS_CACHE_H
#define TESTS_CACHE_H

#include "unit.h"

#include "cache/store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define COMMIT  "1111111111111111111111111111111111111111"
#define COMMIT2 "2222222222222222222222222222222222222222"
#define FOLDER  "kernels--org--name"

/* "hello\n", as `git hash-object` and `sha256sum` name it. */
#define HELLO        "hello\n"
#define HELLO_GIT    "ce013625030ba8dba906f756967f9e9ca394464a"
#define HELLO_SHA256 "5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03"

static char cache_root[] = "/tmp/khub-cache-XXXXXX";
static khub__store store;
static const khub__repo cache_repo = {KHUB__REPO_KERNEL, "org/name"};

static inline void cache_begin(void)
{
    khub_error err = {0};
    umask(022);
    ck_assert_ptr_nonnull(mkdtemp(cache_root));
    ck_khub_ok(khub__store_open(&store, &cache_repo, cache_root, &err), &err);
}

static inline void cache_end(void)
{
    char command[64];
    khub__store_close(&store);
    snprintf(command, sizeof(command), "rm -rf %s", cache_root);
    ck_assert_int_eq(system(command), 0);
}

/* CACHE/…, of the moment. */
static inline KHUB_PRINTF(1, 2) const char *at(const char *format, ...)
{
    static char names[8][2048];
    static unsigned next;
    char *out = names[next++ % 8];
    int n = snprintf(out, sizeof(*names), "%s/", cache_root);
    va_list args;
    va_start(args, format);
    vsnprintf(out + n, sizeof(*names) - (size_t)n, format, args);
    va_end(args);
    return out;
}

static inline void put(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    ck_assert_msg(file != NULL, "%s: %s", path, strerror(errno));
    fputs(text, file);
    ck_assert_int_eq(fclose(file), 0);
}

/* A small file's content, of the moment. */
static inline const char *get(const char *path)
{
    static char text[65536];
    FILE *file = fopen(path, "r");
    ck_assert_msg(file != NULL, "%s: %s", path, strerror(errno));
    text[fread(text, 1, sizeof(text) - 1, file)] = 0;
    fclose(file);
    return text;
}

static inline const char *link_text(const char *path)
{
    static char text[2048];
    ssize_t n = readlink(path, text, sizeof(text) - 1);
    ck_assert_msg(n >= 0, "%s: %s", path, strerror(errno));
    text[n] = 0;
    return text;
}

static inline int exists(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0;
}

static inline unsigned mode_of(const char *path)
{
    struct stat st;
    ck_assert_int_eq(stat(path, &st), 0);
    return st.st_mode & 07777;
}

/* How many entries of a directory have `part` in their names. */
static inline int entries(const char *dir, const char *part)
{
    DIR *list = opendir(dir);
    int n = 0;
    for (struct dirent *e; list && (e = readdir(list)) != NULL;)
        n += e->d_name[0] != 0 && strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0 &&
             strstr(e->d_name, part);
    if (list) closedir(list);
    return n;
}

/* Brings one blob the way the client does. */
static inline int bring(const char *commit, const char *path, const char *etag, const char *text,
                        khub_error *err)
{
    khub__blob *blob;
    uint64_t have = 0, size = strlen(text);
    int rc = khub__blob_new(&blob, &store, commit, path, err);
    if (rc != KHUB_OK) return rc;
    rc = khub__blob_sink.begin(blob, etag, size, &have, err);
    if (rc == KHUB_OK && have < size) {
        rc = khub__blob_sink.write(blob, text + have, size - have, err);
        if (rc != KHUB_OK) khub__blob_sink.abandon(blob, 0);
    }
    if (rc == KHUB_OK) rc = khub__blob_sink.finish(blob, err);
    khub__blob_free(blob);
    return rc;
}

#define BLOBS FOLDER "/blobs"

enum { BIG = 300000 };

/* `head -c 300000 /dev/zero | tr '\0' x`, as sha256sum names it. */
#define BIG_SHA256 "29927e273accc68286005017f7fa6e4f27bddb4db3083ff8b8d4c3667905b7fa"
#define BIG_GIT    "78184600f2186f035fb38be57b32552c8659bf50" /* git hash-object */

static char big[BIG + 1];

static inline void begin_big(void)
{
    cache_begin();
    memset(big, 'x', BIG);
}

static inline khub__blob *open_blob(const char *path)
{
    khub_error err = {0};
    khub__blob *blob;
    ck_khub_ok(khub__blob_new(&blob, &store, COMMIT, path, &err), &err);
    return blob;
}

static inline uint64_t begin(khub__blob *blob, const char *etag, uint64_t size)
{
    khub_error err = {0};
    uint64_t have;
    ck_khub_ok(khub__blob_sink.begin(blob, etag, size, &have, &err), &err);
    return have;
}

#endif
