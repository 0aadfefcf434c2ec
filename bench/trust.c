/* What trust adds to loading a library: with a receipt at most 30 us on top of dlopen, also for one of 200
 * MB; without one it is hashed, at 0.9 of the rate of `openssl dgst -sha256` at least. */
#include "timing.h"

#include "kernel/posix/entrance.h"
#include "trust/proof.h"

#include <khub/khub.h>

#include <dlfcn.h>
#include <unistd.h>

enum { BIG = 200 << 20 };
#define VARIANT "tvm-ffi01-cpu-bench"
#define COMMIT  "0123456789abcdef0123456789abcdef01234567"

static char root[] = "/tmp/khub-bench-XXXXXX";
static char library[600]; /* a library of this machine */

/* A build of one library and its metadata.json in a cache. */
typedef struct job {
    khub__store store;
    khub__tree_file files[2];
    const khub__tree_file *listed[2];
    char build[600], path[700];
} job;

static void stop(const char *what)
{
    fprintf(stderr, "trust: %s\n", what);
    exit(1);
}

static void shell(const char *command)
{
    if (system(command) != 0) stop(command);
}

/* The first library that a built-in kernel has. */
static void find_library(void)
{
    FILE *f = popen("ls build/stage/share/khub/kernels/khub/norm/build/*/*.so 2>/dev/null | head -1", "r");
    if (!f || !fgets(library, sizeof(library), f)) stop("to be run in the repository, which is built");
    library[strcspn(library, "\n")] = 0;
    pclose(f);
}

static void hash_file(char hex[KHUB__HASH_HEX_MAX + 1], uint64_t *size, khub__hash_kind kind,
                      const char *path)
{
    khub__stream stream;
    khub__hash *hash = NULL;
    khub_error err = {0};
    if (khub__stream_open(&stream, path, &err) != KHUB_OK ||
        khub__hash_new(&hash, kind, stream.size, &err) != KHUB_OK ||
        khub__hash_stream(&hash, 1, &stream, &err) != KHUB_OK)
        stop(err.message);
    *size = stream.size;
    khub__hash_end(hash, hex);
    khub__hash_free(hash);
    khub__stream_close(&stream);
}

static void add_file(job *j, int i, const char *name, khub__hash_kind kind)
{
    char command[2400], hex[KHUB__HASH_HEX_MAX + 1], fresh[700], *path = malloc(200);
    snprintf(fresh, sizeof(fresh), "%s/fresh", j->store.folder);
    hash_file(hex, &j->files[i].size, kind, fresh);
    snprintf(command, sizeof(command), "mv %s %s/blobs/%s && ln -s ../../../../blobs/%s %s/%s", fresh,
             j->store.folder, hex, hex, j->build, name);
    shell(command);
    snprintf(path, 200, "build/" VARIANT "/%s", name);
    j->files[i].path = path;
    if (kind == KHUB__HASH_SHA256) {
        memcpy(j->files[i].sha256, hex, 65);
        snprintf(j->files[i].blob_id, 41, "%s", COMMIT);
    } else {
        memcpy(j->files[i].blob_id, hex, 41);
    }
    j->listed[i] = &j->files[i];
}

static void make_job(job *j, const char *name, long bytes)
{
    khub__repo repo = {.kind = KHUB__REPO_KERNEL};
    khub_error err = {0};
    char command[2400];
    memset(j, 0, sizeof(*j));
    snprintf(repo.id, sizeof(repo.id), "bench/%s", name);
    if (khub__store_open(&j->store, &repo, root, &err) != KHUB_OK) stop(err.message);
    snprintf(j->build, sizeof(j->build), "%s/snapshots/" COMMIT "/build/" VARIANT, j->store.folder);
    snprintf(command, sizeof(command),
             "mkdir -p %s %s/blobs && cp '%s' %s/fresh && truncate -s '>%ld' %s/fresh", j->build,
             j->store.folder, library, j->store.folder, bytes, j->store.folder);
    shell(command);
    add_file(j, 0, "bench.so", KHUB__HASH_SHA256);
    snprintf(command, sizeof(command), "echo '{}' > %s/fresh", j->store.folder);
    shell(command);
    add_file(j, 1, "metadata.json", KHUB__HASH_GIT_BLOB);
    snprintf(j->path, sizeof(j->path), "%s/bench.so", j->build);
}

static void load_plain(void *user)
{
    job *j = user;
    void *handle = dlopen(j->path, RTLD_NOW | RTLD_LOCAL);
    if (!handle) stop(dlerror());
    dlclose(handle);
}

static void load_proven(void *user)
{
    job *j = user;
    khub_error err = {0};
    khub_trust *trust;
    khub__proven proven = {0};
    khub__entrance entrance;
    if (khub__trust_new(&trust, KHUB_TRUST_DEFAULT, &err) != KHUB_OK) stop(err.message);
    khub__proof proof = {.trust = trust,
                         .about = j->store.repo.id,
                         .build = j->build,
                         .store = &j->store,
                         .commit = COMMIT,
                         .variant = VARIANT,
                         .files = j->listed,
                         .file_count = 2};
    if (khub__proof_open(&proof, &err) != KHUB_OK ||
        khub__proof_content(&proven, &proof, NULL, 0, &err) != KHUB_OK ||
        khub__entrance_open(&entrance, &proven, j->build, "bench.so", 1, &err) != KHUB_OK)
        stop(err.message);
    if (!khub__proven_still(&proven)) stop("somebody writes to it");
    void *handle = dlopen(entrance.path, RTLD_NOW | RTLD_LOCAL);
    if (!handle) stop(dlerror());
    khub__entrance_close(&entrance, handle);
    dlclose(handle);
    khub__proven_drop(&proven);
    khub__proof_close(&proof);
    khub_trust_free(trust);
}

static void load_without_receipt(void *user)
{
    job *j = user;
    char path[800];
    snprintf(path, sizeof(path), "%s/receipt." COMMIT "." VARIANT ".txt", j->store.folder);
    unlink(path);
    load_proven(j);
}

static void hash_with_openssl(void *user)
{
    job *j = user;
    char command[900];
    snprintf(command, sizeof(command), "openssl dgst -sha256 '%s' > /dev/null", j->path);
    shell(command);
}

static void nothing_with_openssl(void *user)
{
    (void)user;
    shell("openssl dgst -sha256 /dev/null > /dev/null");
}

static void print(const char *what, timing t)
{
    printf("%-52s %10.1f %10.1f\n", what, 1e6 * t.best, 1e6 * t.median);
}

/* One after the other in turn, so that what else the machine does meanwhile meets both. */
static void measure_both(timing *plain, timing *proven, job *j)
{
    enum { TIMES = 5000 };
    static double taken[2][TIMES];
    load_proven(j); /* which keeps a receipt */
    for (int i = 0; i < TIMES; i++) {
        double start = seconds();
        load_plain(j);
        double between = seconds();
        load_proven(j);
        taken[0][i] = between - start;
        taken[1][i] = seconds() - between;
    }
    for (int k = 0; k < 2; k++)
        qsort(taken[k], TIMES, sizeof(double), by_size);
    *plain = (timing){taken[0][0], taken[0][TIMES / 2]};
    *proven = (timing){taken[1][0], taken[1][TIMES / 2]};
}

static timing bench(const char *size, job *j)
{
    char what[100];
    timing plain, with;
    measure_both(&plain, &with, j);
    snprintf(what, sizeof(what), "dlopen and dlclose of %s", size);
    print(what, plain);
    print("the same, proven by a receipt", with);
    printf("%-52s %10.1f %10.1f   (at most 30)\n", "  on top", 1e6 * (with.best - plain.best),
           1e6 * (with.median - plain.median));
    timing without = measure(load_without_receipt, j, 2);
    print("the same, hashed", without);
    return without;
}

int main(void)
{
    static job small, big;
    char command[700];
    if (!mkdtemp(root)) stop(root);
    find_library();
    if (!dlopen("build/stage/lib/libtvm_ffi.so", RTLD_LAZY | RTLD_GLOBAL)) stop(dlerror());
    make_job(&small, "small", 0);
    make_job(&big, "big", BIG);
    sleep(3); /* until the times of the directories are old enough for a receipt */
    printf("microseconds%40s %10s %10s\n", "", "best", "median");
    bench("a small library", &small);
    timing hashed = bench("a library of 200 MB", &big);
    timing openssl = measure(hash_with_openssl, &big, 3), start = measure(nothing_with_openssl, NULL, 1);
    double theirs = openssl.best - start.best;
    print("openssl dgst -sha256 of it, less its start", (timing){theirs, openssl.median - start.median});
    printf("%-52s %10.2f              (at least 0.9)\n", "the rate of ours against it", theirs / hashed.best);
    snprintf(command, sizeof(command), "rm -rf %s", root);
    shell(command);
    return 0;
}
