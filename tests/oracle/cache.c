/* Does to one repository of a cache what its lines say: `oracle_cache CACHE KIND ORG/NAME`, one answer a
 * line. */
#include "cache/store.h"

#include <stdio.h>
#include <stdlib.h>

enum { WORDS = 5, LINE = 8192, PIECE = 16384 };

static khub__store store;
static char *word[WORDS];
static khub__blob *held; /* by begin */

/* bring COMMIT PATH ETAG FILE */
static int bring(khub_error *err)
{
    static char data[1 << 20];
    FILE *file = fopen(word[4], "rb");
    size_t size = file ? fread(data, 1, sizeof(data), file) : 0;
    if (file) fclose(file);
    khub__blob *blob;
    uint64_t have = 0;
    int rc = khub__blob_new(&blob, &store, word[1], word[2], err);
    if (rc != KHUB_OK) return rc;
    rc = khub__blob_sink.begin(blob, word[3], size, &have, err);
    for (uint64_t done = have; rc == KHUB_OK && done < size; done += PIECE)
        rc = khub__blob_sink.write(blob, data + done, size - done < PIECE ? size - done : PIECE, err);
    if (rc == KHUB_OK) rc = khub__blob_sink.finish(blob, err);
    if (rc == KHUB_OK) printf("%llu\n", (unsigned long long)have);
    if (rc == KHUB__SINK_BUSY) puts("busy");
    khub__blob_free(blob);
    return rc;
}

/* begin COMMIT PATH ETAG: and holds the lock until the end. */
static int begin(khub_error *err)
{
    uint64_t have;
    khub__blob_free(held);
    int rc = khub__blob_new(&held, &store, word[1], word[2], err);
    if (rc == KHUB_OK) rc = khub__blob_sink.begin(held, word[3], UINT64_MAX, &have, err);
    if (rc == KHUB_OK) puts("begun");
    return rc;
}

static int ref(khub_error *err)
{
    char commit[KHUB__COMMIT_MAX + 1];
    int rc = khub__store_ref(commit, NULL, &store, word[1], err);
    if (rc == KHUB_OK) puts(commit);
    return rc;
}

static int set_ref(khub_error *err)
{
    int rc = khub__store_set_ref(&store, word[1], word[2], err);
    if (rc == KHUB_OK) puts("ok");
    return rc;
}

static int has(khub_error *err)
{
    (void)err;
    printf("%d\n", khub__store_has(&store, word[1], word[2], UINT64_MAX));
    return KHUB_OK;
}

static int absent(khub_error *err)
{
    (void)err;
    printf("%d\n", khub__store_is_absent(&store, word[1], word[2]));
    return KHUB_OK;
}

static int set_absent(khub_error *err)
{
    int rc = khub__store_set_absent(&store, word[1], word[2], err);
    if (rc == KHUB_OK) puts("ok");
    return rc;
}

/* tree COMMIT: "PATH SIZE BLOB_ID SHA256 XET" of each file between "|" */
static int tree(khub_error *err)
{
    khub__tree t;
    int rc = khub__store_tree(&t, &store, word[1], err);
    if (rc != KHUB_OK) return rc;
    for (size_t i = 0; i < t.count; i++)
        printf("%s %llu %s %s %s|", t.files[i].path, (unsigned long long)t.files[i].size, t.files[i].blob_id,
               t.files[i].sha256[0] ? t.files[i].sha256 : "-",
               t.files[i].xet_hash ? t.files[i].xet_hash : "-");
    puts("");
    khub__tree_free(&t);
    return rc;
}

/* copy_tree COMMIT COMMIT2: reads one and writes it as the other. */
static int copy_tree(khub_error *err)
{
    khub__tree t;
    int rc = khub__store_tree(&t, &store, word[1], err);
    if (rc != KHUB_OK) return rc;
    rc = khub__store_set_tree(&store, word[2], &t, err);
    khub__tree_free(&t);
    if (rc == KHUB_OK) puts("ok");
    return rc;
}

static const struct {
    const char *name;
    int (*run)(khub_error *err);
    int words;
} commands[] = {{"bring", bring, 5},           {"begin", begin, 4}, {"ref", ref, 2},
                {"set_ref", set_ref, 3},       {"has", has, 3},     {"absent", absent, 3},
                {"set_absent", set_absent, 3}, {"tree", tree, 2},   {"copy_tree", copy_tree, 3}};

static int run(char *line)
{
    khub_error err = {0};
    int n = 0, rc = KHUB_E_INVAL;
    for (char *at = strtok(line, "\t\n"); at && n < WORDS; at = strtok(NULL, "\t\n"))
        word[n++] = at;
    for (size_t i = 0; i < sizeof(commands) / sizeof(*commands); i++)
        if (n == commands[i].words && !strcmp(word[0], commands[i].name)) rc = commands[i].run(&err);
    if (rc < 0) printf("%s: %s\n", khub_status_name(rc), err.message);
    fflush(stdout);
    return rc;
}

int main(int argc, char **argv)
{
    khub__repo repo = {KHUB__REPO_KERNEL, ""};
    khub_error err = {0};
    static char line[LINE];
    if (argc != 4) return 2;
    if (!strcmp(argv[2], "model")) repo.kind = KHUB__REPO_MODEL;
    snprintf(repo.id, sizeof(repo.id), "%s", argv[3]);
    if (khub__store_open(&store, &repo, argv[1], &err) != KHUB_OK) {
        fprintf(stderr, "%s\n", err.message);
        return 1;
    }
    while (fgets(line, sizeof(line), stdin))
        run(line);
    khub__blob_free(held);
    khub__store_close(&store);
    return 0;
}
