/* Proving a build's files one by one, with and without a receipt. What an attacker may try is in
 * tests/hub/test_attacks.py. */
#include "failing_memory.h"
#include "fakes.h"
#include "root.h"

#include "trust/proof.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#define COMMIT  "0123456789abcdef0123456789abcdef01234567"
#define VARIANT "tvm-ffi01-cpu-x86_64-linux"

enum { FILES = 4 };
static const char *const names[FILES] = {"a.so", "layers/b.py", "lib/c.so.1", "metadata.json"};

static khub__store store;
static char build[600], paths[FILES][100];
static khub__tree_file files[FILES];
static const khub__tree_file *listed[FILES];
static json_t *digest;
static khub__digest_claim claim;

static const char *below(const char *format, const char *name)
{
    static char path[1200];
    snprintf(path, sizeof(path), format, store.folder, name);
    return path;
}

static void name_content(char hex[KHUB__HASH_HEX_MAX + 1], khub__hash_kind kind, const char *text)
{
    khub__hash *hash;
    khub_error err = {0};
    ck_khub_ok(khub__hash_new(&hash, kind, strlen(text), &err), &err);
    khub__hash_add(hash, text, strlen(text));
    khub__hash_end(hash, hex);
    khub__hash_free(hash);
}

/* ROOT/kernels--org--name with a snapshot of files that hold their own names, the first two as LFS has them.
 */
static void make_store(void)
{
    khub__repo repo = {.kind = KHUB__REPO_KERNEL, .id = "org/name"};
    khub_error err = {0};
    make_root();
    chmod(root, 0755);
    ck_khub_ok(khub__store_open(&store, &repo, root, &err), &err);
    snprintf(build, sizeof(build), "%s/snapshots/" COMMIT "/build/" VARIANT, store.folder);
    for (int i = 0; i < FILES; i++) {
        char hex[KHUB__HASH_HEX_MAX + 1], inside[300], command[2000];
        name_content(hex, i < 2 ? KHUB__HASH_SHA256 : KHUB__HASH_GIT_BLOB, names[i]);
        snprintf(inside, sizeof(inside), "%s/blobs/%s", store.folder + strlen(root), hex);
        put(inside, names[i]);
        snprintf(command, sizeof(command), "mkdir -p $(dirname %s/%s); ln -s %s%s %s/%s", build, names[i],
                 root, inside, build, names[i]);
        ck_assert_int_eq(system(command), 0);
        snprintf(paths[i], sizeof(paths[i]), "build/" VARIANT "/%s", names[i]);
        files[i] = (khub__tree_file){.path = paths[i], .size = strlen(names[i])};
        memcpy(i < 2 ? files[i].sha256 : files[i].blob_id, hex, strlen(hex) + 1);
        listed[i] = &files[i];
    }
    ck_khub_ok(khub__digest_make(&digest, KHUB__HASH_SHA256, build, below("%s/%s", "blobs"), &err), &err);
    ck_khub_ok(khub__digest_read(&claim, digest, "metadata.json", &err), &err);
}

/* Proves; what was decided about the content goes into `words`. */
static int prove(khub__proven *proven, char words[1000], int copy, khub_error *err)
{
    khub_trust *trust;
    int rc = khub__trust_new(&trust, KHUB_TRUST_DEFAULT, err);
    if (rc != KHUB_OK) return rc;
    khub__proof proof = {.trust = trust,
                         .about = "org/name",
                         .build = build,
                         .store = &store,
                         .commit = COMMIT,
                         .variant = VARIANT,
                         .files = listed,
                         .file_count = FILES};
    rc = khub__proof_open(&proof, err);
    if (rc == KHUB_OK) rc = khub__proof_content(proven, &proof, &claim, copy, err);
    const khub_trust_reason *first = khub_trust_at(trust, 0);
    if (words) snprintf(words, 1000, "%s", first ? first->words : "");
    khub__proof_close(&proof);
    khub_trust_free(trust);
    return rc;
}

static void check_proven(int copied)
{
    khub__proven proven = {0};
    khub_error err = {0};
    ck_khub_ok(prove(&proven, NULL, copied, &err), &err);
    ck_assert_int_eq(proven.count, 2); /* the libraries */
    for (size_t i = 0; i < 2; i++) {
        ck_assert_str_eq(proven.files[i].name, names[2 * i]);
        ck_assert_int_eq(proven.files[i].held.copied, copied);
        ck_assert_str_eq(proven.files[i].content, i ? files[2].blob_id : files[0].sha256);
    }
    ck_assert(khub__proven_still(&proven));
    khub__proven_drop(&proven);
}

static int has_receipt(void)
{
    return access(below("%s/receipt." COMMIT ".%s", VARIANT ".txt"), F_OK) == 0;
}

/* Lets the times of all files and directories grow old enough to be relied on. */
static void settle(void)
{
    usleep(2300000);
}

static int is_believed(void)
{
    char words[1000];
    khub_error err = {0};
    ck_khub_ok(prove(NULL, words, 0, &err), &err);
    return strstr(words, "as a receipt says") != NULL;
}

START_TEST(a_receipt_is_kept_and_counts)
{
    make_store();
    check_proven(0);
    settle();
    check_proven(0);
    ck_assert(has_receipt() && is_believed());
    check_proven(0);
    check_proven(1);
    ck_assert(is_believed());
    unlink(below("%s/receipt." COMMIT ".%s", VARIANT ".txt"));
    ck_assert(!is_believed() && is_believed());
    json_object_set_new(json_object_get(digest, "files"), "a.so", json_string("other")); /* of another time */
    ck_assert(is_believed()); /* the digest is metadata.json's, whose name the receipt has */
    files[3].blob_id[0] ^= 1;
    khub_error err = {0};
    ck_khub_fails(prove(NULL, NULL, 0, &err), &err, KHUB_E_UNTRUSTED,
                  "metadata.json: its content doesn't match");
    remove_root();
}
END_TEST

START_TEST(a_receipt_of_something_else)
{
    make_store();
    settle();
    check_proven(0);
    ck_assert(is_believed());
    const char *path = below("%s/receipt." COMMIT ".%s", VARIANT ".txt");
    static const char *const changes[] = {"s/^repository .*/repository org\\/other/",
                                          "s/^commit ./commit f/",
                                          "s/^build ./build x/",
                                          "s/^khub receipt 3/khub receipt 1/",
                                          "s/^file \\(.\\).\\(.*a.so\\)/file \\1x\\2/",
                                          "/lib\\/c.so.1$/d",
                                          "/^digest/d",
                                          "s/ metadata.json$/ metadata.jsoN/",
                                          "2,$d",
                                          "1,$d"};
    for (size_t i = 0; i < sizeof(changes) / sizeof(*changes); i++) {
        char command[3000];
        snprintf(command, sizeof(command), "cp %s %s/kept; sed -i '%s' %s", path, root, changes[i], path);
        ck_assert_int_eq(system(command), 0);
        ck_assert_msg(!is_believed(), "%s", changes[i]);
        snprintf(command, sizeof(command), "cp %s/kept %s", root, path);
        ck_assert_int_eq(system(command), 0);
        ck_assert(is_believed());
    }
    remove_root();
}
END_TEST

static int prove_once(void *user, khub_error *err)
{
    khub__proven proven = {0};
    int rc = prove(&proven, NULL, user != NULL, err);
    khub__proven_drop(&proven);
    return rc;
}

START_TEST(each_allocation_fails)
{
    make_store();
    settle();
    fm_install_own();
    fm_fail_each_installed(prove_once, NULL);   /* with a receipt, but for the first */
    fm_fail_each_installed(prove_once, &store); /* copied, and so hashed */
    remove_root();
}
END_TEST

static void *prove_in_thread(void *user)
{
    for (int i = 0; i < 20; i++) {
        khub__proven proven = {0};
        if (prove(&proven, NULL, i % 3 == 0, NULL) == KHUB_OK && khub__proven_still(&proven)) ++*(int *)user;
        khub__proven_drop(&proven);
    }
    return NULL;
}

static int count_fds(void)
{
    int count = 0;
    DIR *dir = opendir("/proc/self/fd");
    while (readdir(dir))
        count++;
    closedir(dir);
    return count;
}

START_TEST(eight_threads)
{
    enum { THREADS = 8 };
    pthread_t threads[THREADS];
    int good[THREADS] = {0};
    make_store();
    int before = count_fds();
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, prove_in_thread, &good[i]), 0);
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(good[i], 20);
    ck_assert_int_eq(count_fds(), before);
    remove_root();
}
END_TEST

/* Another user than the cache's, root: no leases, and nothing can be written. */
START_TEST(somebody_who_may_only_read)
{
    make_store();
    ck_assert_msg(geteuid() == 0, "this test needs root, to be another user");
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        if (setgid(12345) != 0 || setuid(12345) != 0) _exit(1);
        khub__proven proven = {0};
        khub_error err = {0};
        int rc = prove(&proven, NULL, 0, &err);
        if (rc != KHUB_OK) fprintf(stderr, "%s\n", err.message);
        _exit(rc == KHUB_OK && proven.count == 2 && proven.files[0].held.copied && !has_receipt() ? 0 : 2);
    }
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%#x", (unsigned)status);
    remove_root();
}
END_TEST

/* A program that closed its standard streams gets 0 for a file. */
START_TEST(without_standard_input)
{
    make_store();
    close(0);
    check_proven(0);
    check_proven(1);
    ck_assert_int_lt(fcntl(0, F_GETFD), 0);
    remove_root();
}
END_TEST

UNIT("proof", a_receipt_is_kept_and_counts, a_receipt_of_something_else, each_allocation_fails, eight_threads,
     somebody_who_may_only_read, without_standard_input)
