/* Blobs on their way into the cache: whole or not at all. */
#include "cache.h"
#include "failing_memory.h"

#include "cache/lock.h"

#include <khub/log.h>

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#define BLOBS FOLDER "/blobs"

enum { BIG = 300000 };

/* `head -c 300000 /dev/zero | tr '\0' x`, as sha256sum names it. */
#define BIG_SHA256 "29927e273accc68286005017f7fa6e4f27bddb4db3083ff8b8d4c3667905b7fa"

static char big[BIG + 1];

static void begin_big(void)
{
    cache_begin();
    memset(big, 'x', BIG);
}

static khub__blob *open_blob(const char *path)
{
    khub_error err = {0};
    khub__blob *blob;
    ck_khub_ok(khub__blob_new(&blob, &store, COMMIT, path, &err), &err);
    return blob;
}

static uint64_t begin(khub__blob *blob, const char *etag, uint64_t size)
{
    khub_error err = {0};
    uint64_t have;
    ck_khub_ok(khub__blob_sink.begin(blob, etag, size, &have, &err), &err);
    return have;
}

START_TEST(a_blob_is_named_by_its_content)
{
    cache_begin();
    khub_error err = {0};
    ck_khub_ok(bring(COMMIT, "a.txt", HELLO_GIT, HELLO, &err), &err);
    ck_khub_ok(bring(COMMIT, "b.txt", HELLO_SHA256, HELLO, &err), &err);
    ck_khub_ok(bring(COMMIT, "empty", "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391", "", &err), &err);
    ck_assert_str_eq(get(at(BLOBS "/" HELLO_GIT)), HELLO);
    ck_assert_str_eq(get(at(BLOBS "/" HELLO_SHA256)), HELLO);
    ck_assert_int_eq(entries(at(BLOBS), ""), 3);
    ck_assert_int_eq(entries(at(".locks/" FOLDER), ".lock"),
                     3); /* they stay, empty, as the peer leaves them */
    ck_assert_str_eq(get(at(".locks/" FOLDER "/" HELLO_GIT ".lock")), "");
    cache_end();
}
END_TEST

START_TEST(wrong_content_never_gets_the_name)
{
    cache_begin();
    khub_error err = {0};
    ck_khub_fails(bring(COMMIT, "a.txt", HELLO_GIT, "hellO\n", &err), &err, KHUB_E_UNTRUSTED,
                  "its name is " HELLO_GIT);
    ck_khub_fails(bring(COMMIT, "a.txt", HELLO_SHA256, "hello", &err), &err, KHUB_E_UNTRUSTED,
                  "hashes to 2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824");
    static const char *const names[] = {"", "../../x", "W/\"ce01\"",
                                        "CE013625030BA8DBA906F756967F9E9CA394464A", "ce01"};
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        ck_khub_fails(bring(COMMIT, "a.txt", names[i], HELLO, &err), &err, KHUB_E_FORMAT,
                      "isn't the name of a content");
    ck_assert_int_eq(entries(at(BLOBS), ""), 0);
    ck_assert(!exists(at(FOLDER "/snapshots/" COMMIT)));
    cache_end();
}
END_TEST

START_TEST(lengths_are_checked)
{
    cache_begin();
    khub_error err = {0};
    khub__blob *blob = open_blob("a.txt");
    begin(blob, HELLO_GIT, 6);
    ck_khub_fails(khub__blob_sink.write(blob, "hello\n!", 7, &err), &err, KHUB_E_FORMAT,
                  "longer than the 6 bytes");
    khub__blob_sink.abandon(blob, 1);
    khub__blob_free(blob);
    blob = open_blob("a.txt");
    begin(blob, HELLO_GIT, 6);
    ck_khub_ok(khub__blob_sink.write(blob, "hello", 5, &err), &err);
    ck_khub_fails(khub__blob_sink.finish(blob, &err), &err, KHUB_E_FORMAT, "has 5 bytes, 6 were announced");
    khub__blob_free(blob);
    ck_assert_int_eq(entries(at(BLOBS), ""), 0);
    cache_end();
}
END_TEST

START_TEST(a_length_may_be_unknown)
{
    static const char *const names[] = {HELLO_GIT, HELLO_SHA256};
    cache_begin();
    khub_error err = {0};
    for (size_t i = 0; i < 2; i++) {
        khub__blob *blob = open_blob("a.txt");
        ck_assert_uint_eq(begin(blob, names[i], UINT64_MAX), 0);
        ck_khub_ok(khub__blob_sink.write(blob, "hel", 3, &err), &err);
        ck_khub_ok(khub__blob_sink.write(blob, "lo\n", 3, &err), &err);
        ck_khub_ok(khub__blob_sink.finish(blob, &err), &err);
        khub__blob_free(blob);
        ck_assert_str_eq(get(at(BLOBS "/%s", names[i])), HELLO);
        blob = open_blob("b.txt");
        ck_assert_uint_eq(begin(blob, names[i], UINT64_MAX), 6);
        ck_khub_ok(khub__blob_sink.finish(blob, &err), &err);
        khub__blob_free(blob);
    }
    cache_end();
}
END_TEST

START_TEST(a_blob_that_is_there_is_used)
{
    cache_begin();
    khub_error err = {0};
    ck_khub_ok(bring(COMMIT, "a.txt", HELLO_GIT, HELLO, &err), &err);
    khub__blob *blob = open_blob("b/c.txt");
    ck_assert_uint_eq(begin(blob, HELLO_GIT, 6), 6);
    ck_khub_ok(khub__blob_sink.finish(blob, &err), &err);
    khub__blob_free(blob);
    ck_assert(khub__store_has(&store, COMMIT, "b/c.txt", 6));
    cache_end();
}
END_TEST

START_TEST(a_blob_of_the_wrong_size_is_replaced)
{
    cache_begin();
    khub_error err = {0};
    ck_khub_ok(bring(COMMIT, "a.txt", HELLO_GIT, HELLO, &err), &err);
    ck_assert_int_eq(truncate(at(BLOBS "/" HELLO_GIT), 3), 0);
    ck_assert(!khub__store_has(&store, COMMIT, "a.txt", 6));
    FILE *reader = fopen(at(FOLDER "/snapshots/" COMMIT "/a.txt"), "r");
    ck_khub_ok(bring(COMMIT, "a.txt", HELLO_GIT, HELLO, &err), &err);
    ck_assert_str_eq(get(at(FOLDER "/snapshots/" COMMIT "/a.txt")), HELLO);
    char text[16];
    ck_assert_uint_eq(fread(text, 1, sizeof(text), reader), 3); /* who had it open keeps what he had */
    fclose(reader);
    cache_end();
}
END_TEST

START_TEST(a_blob_that_is_distrusted_is_replaced)
{
    cache_begin();
    khub_error err = {0};
    for (int copies = 0; copies < 2; copies++) {
        if (copies) setenv("HF_HUB_DISABLE_SYMLINKS", "1", 1);
        const char *path = copies ? "b.txt" : "a.txt";
        ck_khub_ok(bring(COMMIT, path, HELLO_GIT, HELLO, &err), &err);
        put(at(FOLDER "/snapshots/" COMMIT "/%s", path), "jello\n"); /* through the link, or the copy */
        khub__blob *blob = open_blob(path);
        khub__blob_distrust(blob);
        ck_assert_uint_eq(begin(blob, HELLO_GIT, 6), 0);
        ck_khub_ok(khub__blob_sink.write(blob, HELLO, 6, &err), &err);
        ck_khub_ok(khub__blob_sink.finish(blob, &err), &err);
        khub__blob_free(blob);
        ck_assert_str_eq(get(at(FOLDER "/snapshots/" COMMIT "/%s", path)), HELLO);
    }
    cache_end();
}
END_TEST

/* A process that is killed while it writes the big blob: `good` bytes of x, then `bad` bytes of y. Its parent
 * hasn't asked after it yet. */
static pid_t killed_writer(size_t good, size_t bad)
{
    pid_t child = fork();
    if (child == 0) {
        khub_error err = {0};
        uint64_t have;
        khub__blob *blob;
        if (khub__blob_new(&blob, &store, COMMIT, "big", &err) != KHUB_OK ||
            khub__blob_sink.begin(blob, BIG_SHA256, BIG, &have, &err) != KHUB_OK ||
            khub__blob_sink.write(blob, big, good, &err) != KHUB_OK)
            _exit(1);
        memset(big, 'y', bad);
        if (bad && khub__blob_sink.write(blob, big, bad, &err) != KHUB_OK) _exit(1);
        kill(getpid(), SIGKILL);
    }
    siginfo_t how;
    ck_assert_int_eq(waitid(P_PID, (id_t)child, &how, WEXITED | WNOWAIT), 0);
    ck_assert(how.si_code == CLD_KILLED && how.si_status == SIGKILL);
    ck_assert_int_eq(entries(at(BLOBS), ".incomplete"), 1);
    return child;
}

START_TEST(what_a_killed_process_left_is_used)
{
    begin_big();
    khub_error err = {0};
    for (int asked = 0; asked < 2; asked++) {
        pid_t child = killed_writer(200000, 0);
        if (asked) ck_assert_int_eq(waitpid(child, NULL, 0), child);
        khub__blob *blob = open_blob("big");
        ck_assert_uint_eq(begin(blob, BIG_SHA256, BIG), 200000);
        ck_khub_ok(khub__blob_sink.write(blob, big, 100000, &err), &err);
        ck_khub_ok(khub__blob_sink.finish(blob, &err), &err);
        khub__blob_free(blob);
        ck_assert_int_eq(entries(at(BLOBS), ""), 1);
        ck_assert(khub__store_has(&store, COMMIT, "big", BIG));
        ck_assert_int_eq(unlink(at(BLOBS "/" BIG_SHA256)), 0);
    }
    cache_end();
}
END_TEST

/* As the one before it, killed when it has said that it takes the file over and hasn't yet. */
START_TEST(a_take_over_that_is_interrupted_loses_nothing)
{
    begin_big();
    killed_writer(200000, 0);
    const char *lock = at(".locks/" FOLDER "/" BIG_SHA256 ".lock");
    char word[16], host[64], text[128];
    long pid;
    ck_assert_int_eq(sscanf(get(lock), "%15s %ld %63s", word, &pid, host), 3);
    snprintf(text, sizeof(text), "khub-0a1b2c3d %ld %s %s\n", pid, host, word);
    put(lock, text);
    khub__blob *blob = open_blob("big");
    ck_assert_uint_eq(begin(blob, BIG_SHA256, BIG), 200000);
    khub__blob_sink.abandon(blob, 0);
    khub__blob_free(blob);
    ck_assert_int_eq(entries(at(BLOBS), ""), 0);
    cache_end();
}
END_TEST

START_TEST(damaged_leftovers_are_thrown_away)
{
    begin_big();
    khub_error err = {0};
    killed_writer(100000, 100000);
    khub__blob *blob = open_blob("big");
    ck_assert_uint_eq(begin(blob, BIG_SHA256, BIG), 200000);
    ck_khub_ok(khub__blob_sink.write(blob, big, 100000, &err), &err);
    ck_assert_int_eq(khub__blob_sink.finish(blob, &err), KHUB__SINK_AGAIN);
    ck_khub_ok(khub__blob_sink.write(blob, big, BIG, &err), &err);
    ck_khub_ok(khub__blob_sink.finish(blob, &err), &err);
    khub__blob_free(blob);
    ck_assert_int_eq(entries(at(BLOBS), ""), 1);
    cache_end();
}
END_TEST

START_TEST(leftovers_that_are_too_long_are_thrown_away)
{
    begin_big();
    killed_writer(200000, 0);
    khub__blob *blob = open_blob("big");
    ck_assert_uint_eq(begin(blob, BIG_SHA256, 100), 0); /* the tree says another size now */
    khub__blob_sink.abandon(blob, 0);
    khub__blob_free(blob);
    ck_assert_int_eq(entries(at(BLOBS), ""), 0);
    cache_end();
}
END_TEST

START_TEST(an_abandoned_blob_can_be_kept)
{
    begin_big();
    khub_error err = {0};
    for (int keep = 0; keep < 2; keep++) {
        khub__blob *blob = open_blob("big");
        ck_assert_uint_eq(begin(blob, BIG_SHA256, BIG), 0);
        ck_khub_ok(khub__blob_sink.write(blob, big, 200000, &err), &err);
        khub__blob_sink.abandon(blob, keep);
        khub__blob_free(blob);
        ck_assert_int_eq(entries(at(BLOBS), ""), keep);
    }
    khub__blob *blob = open_blob("big");
    ck_assert_uint_eq(begin(blob, BIG_SHA256, BIG), 200000);
    ck_khub_ok(khub__blob_sink.restart(blob, &err), &err); /* the server doesn't do ranges */
    ck_khub_ok(khub__blob_sink.write(blob, big, BIG, &err), &err);
    ck_khub_ok(khub__blob_sink.finish(blob, &err), &err);
    khub__blob_free(blob);
    ck_assert_int_eq(entries(at(BLOBS), ""), 1);
    cache_end();
}
END_TEST

START_TEST(a_note_of_another_host_is_left_alone)
{
    begin_big();
    killed_writer(200000, 0);
    const char *lock = at(".locks/" FOLDER "/" BIG_SHA256 ".lock");
    char word[16];
    ck_assert_int_eq(sscanf(get(lock), "%15s", word), 1);
    put(lock, "");
    FILE *file = fopen(lock, "w");
    fprintf(file, "%s 1 elsewhere\n", word);
    fclose(file);
    khub__blob *blob = open_blob("big");
    ck_assert_uint_eq(begin(blob, BIG_SHA256, BIG), 0); /* it may be at work, where locks don't reach */
    khub__blob_sink.abandon(blob, 0);
    khub__blob_free(blob);
    ck_assert_int_eq(entries(at(BLOBS), ".incomplete"), 1);
    static const char *const notes[] = {"garbage", "khub-../../etc 1 x", "khub-zzzzzzzz 1 x", "123\nhost\n",
                                        "khub-"};
    for (size_t i = 0; i < sizeof(notes) / sizeof(*notes); i++) {
        put(at(".locks/" FOLDER "/" HELLO_GIT ".lock"), notes[i]);
        khub_error err = {0};
        ck_khub_ok(bring(COMMIT, "a.txt", HELLO_GIT, HELLO, &err), &err);
        ck_assert_int_eq(unlink(at(BLOBS "/" HELLO_GIT)), 0);
    }
    cache_end();
}
END_TEST

/* A process that holds the lock of HELLO_GIT until it is told to end. */
static pid_t holder(int *go)
{
    int ends[2], told[2];
    ck_assert(pipe(ends) == 0 && pipe(told) == 0);
    pid_t child = fork();
    if (child == 0) {
        char c;
        close(told[1]);
        int fd = open(at(".locks/" FOLDER "/" HELLO_GIT ".lock"), O_RDWR | O_CREAT, 0666);
        if (fd < 0 || flock(fd, LOCK_EX) != 0 || write(ends[1], "x", 1) != 1) _exit(1);
        _exit(read(told[0], &c, 1) != 0);
    }
    char c;
    close(told[0]);
    ck_assert_int_eq(read(ends[0], &c, 1), 1);
    close(ends[0]);
    close(ends[1]);
    *go = told[1];
    return child;
}

static int notices;
static char last_notice[1200];

static void count_notice(void *user, const khub_log_record *record)
{
    (void)user;
    if (record->level != KHUB_LOG_NOTICE) return;
    notices++;
    snprintf(last_notice, sizeof(last_notice), "%s: %s", record->object, record->text);
}

static int ask(khub__blob *blob, khub_error *err)
{
    uint64_t have;
    return khub__blob_sink.begin(blob, HELLO_GIT, 6, &have, err);
}

START_TEST(a_lock_that_is_held_is_waited_for)
{
    cache_begin();
    khub_error err = {0};
    ck_khub_ok(bring(COMMIT, "first", HELLO_SHA256, HELLO, &err), &err);
    int go;
    pid_t child = holder(&go);
    khub_set_log(count_notice, NULL);
    khub__blob *blob = open_blob("a.txt"), *other = open_blob("b.txt");
    while (notices == 0) { /* after 5 s */
        ck_assert_int_eq(ask(blob, &err), KHUB__SINK_BUSY);
        ck_assert_int_eq(ask(other, &err), KHUB__SINK_BUSY);
        usleep(50000);
    }
    for (int i = 0; i < 10; i++)
        ck_assert_int_eq(ask(i % 2 ? blob : other, &err), KHUB__SINK_BUSY);
    ck_assert_int_eq(notices, 1); /* for both */
    char pid[32];
    snprintf(pid, sizeof(pid), "process %ld (", (long)child);
    ck_assert_ptr_nonnull(strstr(last_notice, pid));
    ck_assert_ptr_nonnull(strstr(last_notice, HELLO_GIT ".lock"));
    kill(child, SIGKILL);
    ck_assert_int_eq(waitpid(child, NULL, 0), child);
    ck_assert_int_eq(ask(blob, &err), KHUB_OK);          /* at once */
    ck_assert_int_eq(ask(other, &err), KHUB__SINK_BUSY); /* now for ourselves */
    ck_khub_ok(khub__blob_sink.write(blob, HELLO, 6, &err), &err);
    ck_khub_ok(khub__blob_sink.finish(blob, &err), &err);
    uint64_t have;
    ck_khub_ok(khub__blob_sink.begin(other, HELLO_GIT, 6, &have, &err), &err);
    ck_assert_uint_eq(have, 6);
    ck_khub_ok(khub__blob_sink.finish(other, &err), &err);
    khub__blob_free(blob);
    khub__blob_free(other);
    close(go);
    cache_end();
}
END_TEST

START_TEST(the_wait_can_be_limited)
{
    cache_begin();
    khub_error err = {0};
    ck_khub_ok(bring(COMMIT, "first", HELLO_SHA256, HELLO, &err), &err);
    int go, rc;
    pid_t child = holder(&go);
    setenv("KHUB_LOCK_SECONDS", "0.2", 1);
    khub__blob *blob = open_blob("a.txt");
    while ((rc = ask(blob, &err)) == KHUB__SINK_BUSY)
        usleep(10000);
    char words[64];
    snprintf(words, sizeof(words), "is held by process %ld (", (long)child);
    ck_khub_fails(rc, &err, KHUB_E_IO, words);
    khub__blob_free(blob);
    /* our own hold isn't limited */
    close(go);
    ck_assert_int_eq(waitpid(child, NULL, 0), child);
    khub__blob *one = open_blob("a.txt"), *two = open_blob("b.txt");
    ck_assert_int_eq(ask(one, &err), KHUB_OK);
    for (int i = 0; i < 30; i++, usleep(10000))
        ck_assert_int_eq(ask(two, &err), KHUB__SINK_BUSY);
    khub__blob_free(one);
    ck_assert_int_eq(ask(two, &err), KHUB_OK);
    khub__blob_free(two);
    cache_end();
}
END_TEST

START_TEST(a_lock_that_was_removed_is_none)
{
    cache_begin();
    khub_error err = {0};
    khub__lock one = {.fd = -1}, two = {.fd = -1};
    ck_khub_ok(bring(COMMIT, "first", HELLO_SHA256, HELLO, &err), &err);
    ck_assert_int_eq(khub__lock_try(&one, &store, HELLO_GIT, &err), 0);
    ck_assert(one.created);
    ck_assert_int_eq(khub__lock_try(&two, &store, HELLO_GIT, &err), 1); /* has the file open */
    khub__lock_release(&one, 1);
    ck_assert(!exists(at(".locks/" FOLDER "/" HELLO_GIT ".lock")));
    ck_assert_int_eq(khub__lock_try(&one, &store, HELLO_GIT, &err), 0);
    ck_assert_int_eq(khub__lock_try(&two, &store, HELLO_GIT, &err), 1); /* its file isn't the lock any more */
    khub__lock_release(&one, 0);
    ck_assert_int_eq(khub__lock_try(&two, &store, HELLO_GIT, &err), 0);
    khub__lock_release(&two, 1);
    ck_assert(exists(at(".locks/" FOLDER "/" HELLO_GIT ".lock"))); /* not made by two */
    cache_end();
}
END_TEST

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
    ck_khub_fails(khub__store_set_ref(&store, "v1", COMMIT2, &err), &err, KHUB_E_IO, "KERNELS_CACHE");
    ck_khub_fails(bring(COMMIT, "b.txt", HELLO_SHA256, HELLO, &err), &err, KHUB_E_IO,
                  "Read-only file system; KERNELS_CACHE");
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
        _exit(rc == KHUB_E_IO && strstr(own.message, "Permission denied; KERNELS_CACHE") ? 0 : 3);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    cache_end();
}
END_TEST

/* From now on the system calls that make links fail with EPERM, as on a file system that has none. */
static void refuse_links(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_symlinkat, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = {sizeof(code) / sizeof(*code), code};
    ck_assert_int_eq(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
    ck_assert_int_eq(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
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
        _exit(rc == KHUB_E_IO && strstr(err.message, "nobody/.cache/huggingface/hub/kernels--org--name") &&
                      strstr(err.message, "Permission denied; KERNELS_CACHE")
                  ? 0
                  : 4);
    }
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    cache_end();
}
END_TEST

static int everything(void *user, khub_error *err)
{
    (void)user;
    char command[64], commit[KHUB__COMMIT_MAX + 1], **names;
    size_t count;
    khub__store one;
    khub__tree tree;
    snprintf(command, sizeof(command), "rm -rf %s/kernels*", cache_root);
    if (system(command) != 0) return KHUB_E_IO;
    int rc = khub__store_open(&one, &cache_repo, cache_root, err);
    if (rc == KHUB_OK) rc = bring(COMMIT, "a/b.txt", HELLO_GIT, HELLO, err);
    if (rc == KHUB_OK) rc = khub__store_set_ref(&one, "refs/pr/1", COMMIT, err);
    if (rc == KHUB_OK) rc = khub__store_set_ref(&one, "refs/pr/1", COMMIT, err);
    if (rc == KHUB_OK) rc = khub__store_ref(commit, NULL, &one, "refs/pr/1", err);
    memset(&tree, 0, sizeof(tree));
    if (rc == KHUB_OK) rc = khub__store_set_tree(&one, COMMIT, &tree, err);
    if (rc == KHUB_OK) rc = khub__store_tree(&tree, &one, COMMIT, err);
    khub__tree_free(&tree);
    if (rc == KHUB_OK) rc = khub__store_set_absent(&one, COMMIT, "x", err);
    if (rc == KHUB_OK && (rc = khub__store_commits(&names, &count, &one, err)) == KHUB_OK) khub_free(names);
    if (rc == KHUB_OK && (rc = khub__store_refs(&names, &count, &one, err)) == KHUB_OK) khub_free(names);
    khub__store_close(&one);
    return rc;
}

START_TEST(without_memory_nothing_is_lost)
{
    cache_begin();
    khub__store_close(&store); /* its blocks would be counted */
    fm_install_own();
    khub_error err = {0};
    ck_khub_ok(khub__store_open(&store, &cache_repo, cache_root, &err), &err);
    fm_fail_each_own(everything, NULL);
    ck_assert_int_eq(entries(at(BLOBS), ".incomplete"), 0);
    ck_assert_int_eq(entries(at(FOLDER), ".tmp"), 0);
    cache_end();
}
END_TEST

UNIT("cache.blob", a_blob_is_named_by_its_content, wrong_content_never_gets_the_name, lengths_are_checked,
     a_length_may_be_unknown, a_blob_that_is_there_is_used, a_blob_of_the_wrong_size_is_replaced,
     a_blob_that_is_distrusted_is_replaced, what_a_killed_process_left_is_used,
     a_take_over_that_is_interrupted_loses_nothing, damaged_leftovers_are_thrown_away,
     leftovers_that_are_too_long_are_thrown_away, an_abandoned_blob_can_be_kept,
     a_note_of_another_host_is_left_alone, a_lock_that_is_held_is_waited_for, the_wait_can_be_limited,
     a_lock_that_was_removed_is_none, permissions_obey_the_umask, free_space_is_asked_for_first,
     a_disk_that_fills_up_is_told, a_limit_on_files_is_told, a_cache_that_cannot_be_written_is_read,
     another_user_reads_and_adds, files_where_links_are_refused, a_home_that_is_not_there,
     without_memory_nothing_is_lost)
