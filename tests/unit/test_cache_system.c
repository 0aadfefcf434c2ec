/* What systems do to a cache: umasks, users, full disks, file systems without links or without writing. */
#include "cache.h"

#include <khub/cache.h>

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

START_TEST(permissions_obey_the_umask)
{
    static const struct {
        mode_t umask;
        unsigned file, lock;
    } table[] = {{022, 0644, 0664}, {002, 0664, 0664}, {077, 0600, 0600}};
    khub_error err = {0};
    cache_begin();
    for (size_t i = 0; i < 3; i++) {
        umask(table[i].umask);
        ck_khub_ok(bring(COMMIT, "a", HELLO_GIT, HELLO, &err), &err);
        ck_khub_ok(khub__store_set_ref(&store, "v1", COMMIT, &err), &err);
        ck_assert_uint_eq(mode_of(at(BLOBS "/" HELLO_GIT)), table[i].file);
        ck_assert_uint_eq(mode_of(at(FOLDER "/refs/v1")), table[i].file);
        ck_assert_uint_eq(mode_of(at(".locks/" FOLDER "/" HELLO_GIT ".lock")), table[i].lock);
        char command[128];
        snprintf(command, sizeof(command), "rm -rf %s/%s %s/.locks", cache_root, FOLDER, cache_root);
        ck_assert_int_eq(system(command), 0);
    }
    umask(002);
    ck_assert_int_eq(chmod(cache_root, 02775), 0);
    ck_khub_ok(bring(COMMIT, "a/b", HELLO_GIT, HELLO, &err), &err);
    static const char *const folders[] = {BLOBS, FOLDER, (FOLDER "/snapshots/" COMMIT "/a"),
                                          (".locks/" FOLDER)};
    for (size_t i = 0; i < 4; i++)
        ck_assert_uint_eq(mode_of(at("%s", folders[i])), 02775);
    cache_end();
}
END_TEST

/* The cache on a disk of `kib`, for this process alone. */
static void small_disk(int kib)
{
    char option[32];
    snprintf(option, sizeof(option), "size=%dk", kib);
    int flags = CLONE_NEWNS | (geteuid() == 0 ? 0 : CLONE_NEWUSER);
    ck_assert_msg(unshare(flags) == 0, "no mount of our own: %s", strerror(errno));
    ck_assert_msg(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0, "%s", strerror(errno));
    ck_assert_msg(mount("none", cache_root, "tmpfs", 0, option) == 0, "no small disk: %s", strerror(errno));
}

START_TEST(free_space_is_asked_for_first)
{
    begin_big();
    khub_error err = {0};
    small_disk(128);
    uint64_t have;
    khub__blob *blob = open_blob("big");
    ck_khub_fails(khub__blob_sink.begin(blob, BIG_SHA256, BIG, &have, &err), &err, KHUB_E_NOSPACE,
                  "big needs 300000 bytes, ");
    khub__blob_free(blob);
    ck_assert_int_eq(entries(at(BLOBS), ""), 0);
    ck_khub_ok(bring(COMMIT, "a.txt", HELLO_GIT, HELLO, &err), &err); /* what fits goes on */
    ck_assert_int_eq(umount(cache_root), 0);
    cache_end();
}
END_TEST

START_TEST(a_disk_that_fills_up_is_told)
{
    begin_big();
    khub_error err = {0};
    small_disk(512);
    khub__blob *blob = open_blob("big");
    ck_assert_uint_eq(begin(blob, BIG_SHA256, BIG), 0);
    FILE *other = fopen(at("other"), "w"); /* somebody else is faster */
    for (int i = 0; i < 400; i++)
        fwrite(big, 1, 1000, other);
    fclose(other);
    ck_khub_fails(khub__blob_sink.write(blob, big, BIG, &err), &err, KHUB_E_NOSPACE,
                  "/blobs: the disk is full: big needs ");
    khub__blob_sink.abandon(blob, 1);
    khub__blob_free(blob);
    ck_assert_int_eq(entries(at(BLOBS), ""), 0);
    char fill[4096];
    memset(fill, 0, sizeof(fill));
    other = fopen(at("rest"), "w");
    setvbuf(other, NULL, _IONBF, 0);
    while (fwrite(fill, 1, sizeof(fill), other) == sizeof(fill))
        ;
    fclose(other);
    khub_error_clear(&err);
    ck_khub_fails(khub__store_set_ref(&store, "v1", COMMIT, &err), &err, KHUB_E_NOSPACE, "refs/v1");
    khub__tree tree = {0};
    ck_khub_fails(khub__store_set_tree(&store, COMMIT, &tree, &err), &err, KHUB_E_NOSPACE, "trees/");
    ck_khub_fails(bring(COMMIT, "a.txt", HELLO_GIT, HELLO, &err), &err, KHUB_E_NOSPACE,
                  "a.txt needs 6 bytes");
    ck_assert_int_eq(entries(at(FOLDER), ".tmp"), 0);
    ck_assert(!exists(at(FOLDER "/refs/v1")));
    ck_assert_int_eq(umount(cache_root), 0);
    cache_end();
}
END_TEST

START_TEST(a_limit_on_files_is_told)
{
    begin_big();
    khub_error err = {0};
    signal(SIGXFSZ, SIG_IGN);
    const struct rlimit limit = {100000, 100000};
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    khub__blob *blob = open_blob("big");
    ck_assert_uint_eq(begin(blob, BIG_SHA256, BIG), 0);
    ck_khub_fails(khub__blob_sink.write(blob, big, BIG, &err), &err, KHUB_E_NOSPACE, "File too large");
    khub__blob_sink.abandon(blob, 0);
    khub__blob_free(blob);
    ck_assert_int_eq(entries(at(BLOBS), ""), 0);
    cache_end();
}
END_TEST

START_TEST(a_cache_that_cannot_be_written_is_read)
{
    begin_big();
    khub_error err = {0};
    small_disk(512);
    ck_khub_ok(bring(COMMIT, "a.txt", HELLO_GIT, HELLO, &err), &err);
    ck_khub_ok(khub__store_set_ref(&store, "v1", COMMIT, &err), &err);
    ck_assert_msg(mount("none", cache_root, NULL, MS_REMOUNT | MS_RDONLY, NULL) == 0, "%s", strerror(errno));
    char commit[KHUB__COMMIT_MAX + 1];
    ck_assert(khub__store_has(&store, COMMIT, "a.txt", 6));
    ck_khub_ok(khub__store_ref(commit, NULL, &store, "v1", &err), &err);
    ck_khub_ok(khub__store_set_ref(&store, "v1", COMMIT, &err), &err); /* it says so already */
    ck_khub_ok(khub__store_link(&store, COMMIT, "a.txt", HELLO_GIT, &err), &err);
    ck_khub_fails(khub__store_set_ref(&store, "v1", COMMIT2, &err), &err, KHUB_E_IO, "is read-only: ");
    ck_khub_fails(bring(COMMIT, "b.txt", HELLO_SHA256, HELLO, &err), &err, KHUB_E_IO,
                  "Read-only file system; HF_HUB_CACHE or");
    khub_cache *found;
    khub_removed removed;
    ck_khub_ok(khub_cache_read(&found, cache_root, &err), &err);
    ck_khub_fails(khub_cache_remove(&removed, found, "kernel", "org/name", NULL, 0, &err), &err, KHUB_E_IO,
                  "is read-only: ");
    ck_assert_uint_eq(removed.revisions, 0); /* what couldn't be removed wasn't */
    khub_cache_free(found);
    ck_assert_int_eq(umount(cache_root), 0);
    cache_end();
}
END_TEST

START_TEST(another_user_reads_and_adds)
{
    ck_assert_msg(geteuid() == 0, "this test needs root, to be two users");
    begin_big();
    khub_error err = {0};
    umask(002);
    ck_assert(chown(cache_root, 0, 54321) == 0 && chmod(cache_root, 02775) == 0);
    ck_khub_ok(bring(COMMIT, "a.txt", HELLO_GIT, HELLO, &err), &err);
    pid_t child = fork();
    if (child == 0) {
        khub_error own = {0};
        if (setgid(54321) != 0 || setuid(12345) != 0) _exit(1);
        if (!khub__store_has(&store, COMMIT, "a.txt", 6)) _exit(2);
        if (bring(COMMIT, "b.txt", HELLO_SHA256, HELLO, &own) != KHUB_OK) _exit(3);
        if (bring(COMMIT2, "a.txt", HELLO_GIT, HELLO, &own) != KHUB_OK)
            _exit(4); /* under the first one's lock */
        _exit(0);
    }
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    ck_assert(khub__store_has(&store, COMMIT, "b.txt", 6));
    child = fork();
    if (child == 0) { /* one who may not write */
        khub_error own = {0};
        if (setgid(999) != 0 || setuid(12346) != 0) _exit(1);
        if (!khub__store_has(&store, COMMIT, "a.txt", 6)) _exit(2);
        int rc = bring(COMMIT, "c.txt", BIG_SHA256, "", &own);
        _exit(rc == KHUB_E_IO && strstr(own.message, "is read-only for this user: ") &&
                      strstr(own.message, "Permission denied; HF_HUB_CACHE")
                  ? 0
                  : 3);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    cache_end();
}
END_TEST

static void filter(struct sock_filter *code, size_t count)
{
    const struct sock_fprog program = {(unsigned short)count, code};
    ck_assert_int_eq(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
    ck_assert_int_eq(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
}

/* From now on the system calls that make links fail with EPERM, as on a file system that has none. */
static void refuse_links(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_symlinkat, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    filter(code, sizeof(code) / sizeof(*code));
    ck_assert(symlinkat("x", AT_FDCWD, at("probe")) == -1 && errno == EPERM);
}

START_TEST(files_where_links_are_refused)
{
    cache_begin();
    khub_error err = {0};
    ck_khub_ok(bring(COMMIT2, "with a link", HELLO_GIT, HELLO, &err), &err);
    refuse_links();
    ck_khub_ok(bring(COMMIT, "a/copy", HELLO_GIT, HELLO, &err), &err);
    ck_khub_ok(bring(COMMIT, "moved", HELLO_SHA256, HELLO, &err), &err);
    static const char *const paths[] = {"a/copy", "moved"};
    for (size_t i = 0; i < 2; i++) {
        struct stat st;
        ck_assert_int_eq(lstat(at(FOLDER "/snapshots/" COMMIT "/%s", paths[i]), &st), 0);
        ck_assert(S_ISREG(st.st_mode));
        ck_assert_uint_eq(st.st_mode & 07777, 0644);
        ck_assert(khub__store_has(&store, COMMIT, paths[i], 6));
    }
    ck_assert(khub__store_has(&store, COMMIT2, "with a link", 6));
    ck_assert_int_eq(entries(at(BLOBS), ""), 1);
    khub__blob *blob = open_blob("moved"); /* the blob isn't there, the file is */
    ck_assert_uint_eq(begin(blob, HELLO_SHA256, 6), 6);
    ck_khub_ok(khub__blob_sink.finish(blob, &err), &err);
    khub__blob_free(blob);
    cache_end();
}
END_TEST

/* From now on close() of `fd` fails with ENOSPC, as some file systems tell only then. */
static void refuse_close(int fd)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_close, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)fd, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSPC),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    filter(code, sizeof(code) / sizeof(*code));
}

/* The descriptor of the file whose name ends with `end`. */
static int find_fd(const char *end)
{
    for (int fd = 3; fd < 100; fd++) {
        char path[40], text[1024];
        snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        ssize_t n = readlink(path, text, sizeof(text) - 1);
        text[n > 0 ? n : 0] = 0;
        if (strlen(text) >= strlen(end) && !strcmp(text + strlen(text) - strlen(end), end)) return fd;
    }
    ck_abort_msg("no file %s is open", end);
    return -1;
}

START_TEST(a_disk_that_is_full_when_the_file_is_closed)
{
    begin_big();
    khub_error err = {0};
    khub__blob *blob = open_blob("big");
    ck_assert_uint_eq(begin(blob, BIG_SHA256, BIG), 0);
    ck_khub_ok(khub__blob_sink.write(blob, big, BIG, &err), &err);
    refuse_close(find_fd(".incomplete"));
    ck_khub_fails(khub__blob_sink.finish(blob, &err), &err, KHUB_E_NOSPACE, "the disk is full");
    khub__blob_free(blob);
    ck_assert_int_eq(entries(at(BLOBS), ""), 0);
    ck_assert(!exists(at(FOLDER "/snapshots/" COMMIT)));
    cache_end();
}
END_TEST

/* A home that isn't there, under a directory that can't be written. */
START_TEST(a_home_that_is_not_there)
{
    ck_assert_msg(geteuid() == 0, "this test needs root, to be another user");
    cache_begin();
    ck_assert_int_eq(chmod(cache_root, 0755), 0);
    static const char *const variables[] = {"KERNELS_CACHE", "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE",
                                            "HF_HOME", "XDG_CACHE_HOME"};
    for (size_t i = 0; i < sizeof(variables) / sizeof(*variables); i++)
        unsetenv(variables[i]);
    setenv("HOME", at("nobody"), 1);
    pid_t child = fork();
    if (child == 0) {
        khub_error err = {0};
        char commit[KHUB__COMMIT_MAX + 1];
        if (setgid(999) != 0 || setuid(12346) != 0) _exit(1);
        khub__store_close(&store);
        if (khub__store_open(&store, &cache_repo, NULL, &err) != KHUB_OK) _exit(2);
        if (khub__store_ref(commit, NULL, &store, "v1", &err) != KHUB_E_NOTFOUND) _exit(3);
        khub_error_clear(&err);
        int rc = bring(COMMIT, "a", HELLO_GIT, HELLO, &err);
        _exit(rc == KHUB_E_IO && strstr(err.message, "the cache ") &&
                      strstr(err.message,
                             "nobody/.cache/huggingface/hub can't be made: Permission denied; HF_HUB_CACHE")
                  ? 0
                  : 4);
    }
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    cache_end();
}
END_TEST

UNIT("cache.system", permissions_obey_the_umask, free_space_is_asked_for_first, a_disk_that_fills_up_is_told,
     a_limit_on_files_is_told, a_cache_that_cannot_be_written_is_read, another_user_reads_and_adds,
     files_where_links_are_refused, a_disk_that_is_full_when_the_file_is_closed, a_home_that_is_not_there)
