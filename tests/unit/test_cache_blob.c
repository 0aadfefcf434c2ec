/* Blobs on their way into the cache: whole or not at all. */
#include "cache.h"
#include "failing_memory.h"

#include "cache/lock.h"

#include <khub/log.h>

#include <signal.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <time.h>

/* A blob that begins with `have` bytes there. */
static khub__blob *begun(const char *path, const char *etag, uint64_t size, uint64_t have)
{
    khub__blob *blob = open_blob(path);
    ck_assert_uint_eq(begin(blob, etag, size), have);
    return blob;
}

/* Writes what it lacks. */
static void finish(khub__blob *blob, const char *data, size_t bytes)
{
    khub_error err = {0};
    if (bytes) ck_khub_ok(khub__blob_sink.write(blob, data, bytes, &err), &err);
    ck_khub_ok(khub__blob_sink.finish(blob, &err), &err);
    khub__blob_free(blob);
}

static void abandon(khub__blob *blob, int keep)
{
    khub__blob_sink.abandon(blob, keep);
    khub__blob_free(blob);
}

/* What is there turns out to be damaged only at the end; then all of it comes again. */
static void finish_again(khub__blob *blob, size_t rest)
{
    khub_error err = {0};
    ck_khub_ok(khub__blob_sink.write(blob, big, rest, &err), &err);
    ck_assert_int_eq(khub__blob_sink.finish(blob, &err), KHUB__SINK_AGAIN);
    finish(blob, big, BIG);
    ck_assert_int_eq(entries(at(BLOBS), ""), 1);
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
    khub__blob *blob = begun("a.txt", HELLO_GIT, 6, 0);
    ck_khub_fails(khub__blob_sink.write(blob, "hello\n!", 7, &err), &err, KHUB_E_FORMAT,
                  "longer than the 6 bytes");
    abandon(blob, 1);
    blob = begun("a.txt", HELLO_GIT, 6, 0);
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
        khub__blob *blob = begun("a.txt", names[i], UINT64_MAX, 0);
        ck_khub_ok(khub__blob_sink.write(blob, "hel", 3, &err), &err);
        finish(blob, "lo\n", 3);
        ck_assert_str_eq(get(at(BLOBS "/%s", names[i])), HELLO);
        finish(begun("b.txt", names[i], UINT64_MAX, 6), NULL, 0);
    }
    cache_end();
}
END_TEST

START_TEST(a_blob_that_is_there_is_used)
{
    cache_begin();
    khub_error err = {0};
    ck_khub_ok(bring(COMMIT, "a.txt", HELLO_GIT, HELLO, &err), &err);
    finish(begun("b/c.txt", HELLO_GIT, 6, 6), NULL, 0);
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
        finish(blob, HELLO, 6);
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
    for (int asked = 0; asked < 2; asked++) {
        pid_t child = killed_writer(200000, 0);
        if (asked) ck_assert_int_eq(waitpid(child, NULL, 0), child);
        finish(begun("big", BIG_SHA256, BIG, 200000), big, 100000);
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
    abandon(begun("big", BIG_SHA256, BIG, 200000), 0);
    ck_assert_int_eq(entries(at(BLOBS), ""), 0);
    cache_end();
}
END_TEST

START_TEST(damaged_leftovers_are_thrown_away)
{
    begin_big();
    killed_writer(100000, 100000);
    finish_again(begun("big", BIG_SHA256, BIG, 200000), 100000);
    cache_end();
}
END_TEST

static void take_out(const char *what)
{
    char command[300];
    snprintf(command, sizeof(command), "rm -r %s", at("%s", what));
    ck_assert_int_eq(system(command), 0);
}

/* All of it comes, and then `gone` is taken out, so often. What the last finish said. */
static int finish_without(khub__blob *blob, const char *data, size_t size, const char *gone, int times,
                          khub_error *err)
{
    int rc = KHUB__SINK_AGAIN;
    for (int i = 0; i < times; i++) {
        ck_assert_int_eq(rc, KHUB__SINK_AGAIN);
        ck_khub_ok(khub__blob_sink.write(blob, data, size, err), err);
        take_out(gone);
        rc = khub__blob_sink.finish(blob, err);
    }
    return rc;
}

/* The repository's folder, blobs/, or the file alone; a small file may have no name that could be removed. */
START_TEST(what_is_taken_out_comes_again_three_times)
{
    const struct {
        const char *gone, *etag, *data;
        size_t size;
    } table[] = {{FOLDER, BIG_SHA256, big, BIG},
                 {BLOBS, BIG_SHA256, big, BIG},
                 {BLOBS "/*", BIG_SHA256, big, BIG},
                 {FOLDER, HELLO_SHA256, HELLO, 6},
                 {BLOBS, HELLO_SHA256, HELLO, 6}};
    begin_big();
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
        khub_error err = {0};
        size_t size = table[i].size;
        khub__blob *blob = begun("file", table[i].etag, size, 0);
        ck_assert_int_eq(finish_without(blob, table[i].data, size, table[i].gone, 3, &err), KHUB__SINK_AGAIN);
        finish(blob, table[i].data, size);
        ck_assert(khub__store_has(&store, COMMIT, "file", size));
        take_out(FOLDER);
        blob = begun("file", table[i].etag, size, 0);
        ck_khub_fails(finish_without(blob, table[i].data, size, table[i].gone, 4, &err), &err, KHUB_E_IO,
                      "/blobs: the file of file was removed 4 times");
        khub__blob_free(blob);
    }
    cache_end();
}
END_TEST

/* It was there when it was looked for, and isn't when it is linked to. */
START_TEST(a_blob_that_is_taken_out_before_it_is_shown_comes_again)
{
    static const char *const gone[] = {FOLDER, BLOBS, BLOBS "/" HELLO_SHA256};
    cache_begin();
    for (size_t i = 0; i < sizeof(gone) / sizeof(*gone); i++) {
        khub_error err = {0};
        ck_khub_ok(bring(COMMIT, "a.txt", HELLO_SHA256, HELLO, &err), &err);
        khub__blob *blob = begun("b.txt", HELLO_SHA256, 6, 6);
        take_out(gone[i]);
        ck_assert_int_eq(khub__blob_sink.finish(blob, &err), KHUB__SINK_AGAIN);
        finish(blob, HELLO, 6);
        ck_assert(khub__store_has(&store, COMMIT, "b.txt", 6));
        take_out(FOLDER);
    }
    cache_end();
}
END_TEST

START_TEST(damaged_leftovers_of_unknown_length)
{
    begin_big();
    killed_writer(100000, 100000);
    char path[128];
    ck_assert_int_eq(chdir(at(BLOBS)), 0);
    ck_assert_int_eq(system("mv " BIG_SHA256 ".khub-*.incomplete $(ls | sed s/" BIG_SHA256 "/" BIG_GIT "/)"),
                     0);
    snprintf(path, sizeof(path), "%s", at(".locks/" FOLDER "/" BIG_SHA256 ".lock"));
    ck_assert_int_eq(rename(path, at(".locks/" FOLDER "/" BIG_GIT ".lock")), 0);
    finish_again(begun("big", BIG_GIT, UINT64_MAX, 200000), 50000);
    cache_end();
}
END_TEST

START_TEST(leftovers_that_are_too_long_are_thrown_away)
{
    begin_big();
    killed_writer(200000, 0);
    khub__blob *blob = begun("big", BIG_SHA256, 100, 0); /* the tree says another size now */
    abandon(blob, 0);
    ck_assert_int_eq(entries(at(BLOBS), ""), 0);
    cache_end();
}
END_TEST

START_TEST(an_abandoned_blob_can_be_kept)
{
    begin_big();
    khub_error err = {0};
    for (int keep = 0; keep < 2; keep++) {
        khub__blob *blob = begun("big", BIG_SHA256, BIG, 0);
        ck_khub_ok(khub__blob_sink.write(blob, big, 200000, &err), &err);
        abandon(blob, keep);
        ck_assert_int_eq(entries(at(BLOBS), ""), keep);
    }
    khub__blob *blob = begun("big", BIG_SHA256, BIG, 200000);
    ck_khub_ok(khub__blob_sink.restart(blob, &err), &err); /* the server doesn't do ranges */
    finish(blob, big, BIG);
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
    for (int ahead_s = 0; ahead_s <= 60; ahead_s += 60) { /* by its clock */
        const struct timespec now = {time(NULL) + ahead_s, 0}, times[] = {now, now};
        const char *left = at(BLOBS "/" BIG_SHA256 ".%s.incomplete", word);
        ck_assert_int_eq(utimensat(AT_FDCWD, left, times, 0), 0);
        FILE *file = fopen(lock, "w");
        fprintf(file, "%s 1 elsewhere\n", word);
        fclose(file);
        /* it may be at work, where locks don't reach */
        abandon(begun("big", BIG_SHA256, BIG, 0), 0);
        ck_assert(exists(left));
    }
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

START_TEST(thousands_can_wait)
{
    enum { MANY = 500 };
    cache_begin();
    khub_error err = {0};
    ck_khub_ok(bring(COMMIT, "first", HELLO_SHA256, HELLO, &err), &err);
    int go;
    pid_t child = holder(&go);
    const struct rlimit few = {40, 40};
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
    static khub__blob *blobs[MANY];
    for (int i = 0; i < MANY; i++) {
        blobs[i] = open_blob("a.txt");
        ck_assert_int_eq(ask(blobs[i], &err), KHUB__SINK_BUSY);
    }
    close(go);
    ck_assert_int_eq(waitpid(child, NULL, 0), child);
    ck_assert_int_eq(ask(blobs[0], &err), KHUB_OK);
    for (int i = 0; i < MANY; i++)
        khub__blob_free(blobs[i]);
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

START_TEST(a_lock_is_removed_through_no_link)
{
    cache_begin();
    khub_error err = {0};
    khub__lock lock = {.fd = -1};
    ck_khub_ok(bring(COMMIT, "first", HELLO_SHA256, HELLO, &err), &err);
    ck_assert_int_eq(khub__lock_try(&lock, &store, HELLO_GIT, &err), 0);
    ck_assert(lock.created);
    ck_assert_int_eq(rename(at(".locks/" FOLDER), at("moved")), 0);
    ck_assert_int_eq(mkdir(at("elsewhere"), 0777), 0);
    put(at("elsewhere/" HELLO_GIT ".lock"), "");
    ck_assert_int_eq(symlink(at("elsewhere"), at(".locks/" FOLDER)), 0);
    khub__lock_release(&lock, 1);
    ck_assert(exists(at("elsewhere/" HELLO_GIT ".lock")));
    cache_end();
}
END_TEST

START_TEST(a_lock_is_made_through_no_link)
{
    static const char *const links[] = {".locks/" FOLDER, ".locks"};
    khub_error err = {0};
    cache_begin();
    ck_khub_ok(bring(COMMIT, "first", HELLO_SHA256, HELLO, &err), &err);
    ck_assert_int_eq(mkdir(at("elsewhere"), 0777), 0);
    for (size_t i = 0; i < sizeof(links) / sizeof(*links); i++) {
        khub__lock lock = {.fd = -1};
        khub_error why = {0};
        char moved[16];
        snprintf(moved, sizeof(moved), "moved%zu", i);
        ck_assert_int_eq(rename(at("%s", links[i]), at("%s", moved)), 0);
        ck_assert_int_eq(symlink(at("elsewhere"), at("%s", links[i])), 0);
        ck_khub_fails(khub__lock_try(&lock, &store, HELLO_GIT, &why), &why, KHUB_E_IO,
                      "a link or a file stands where a directory should be");
        khub__lock_release(&lock, 1);
        ck_khub_fails(bring(COMMIT, "b.txt", HELLO_GIT, HELLO, &why), &why, KHUB_E_IO, FOLDER);
        ck_assert(!exists(at(FOLDER "/blobs/" HELLO_GIT)));
    }
    /* nor is a new repository made there */
    ck_assert_int_eq(rename(at(FOLDER), at("moved")), 0);
    ck_khub_fails(bring(COMMIT, "b.txt", HELLO_GIT, HELLO, &err), &err, KHUB_E_IO, "/.locks/" FOLDER);
    ck_assert_int_eq(rmdir(at("elsewhere")), 0); /* nothing was made in it */
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
     what_is_taken_out_comes_again_three_times, a_blob_that_is_taken_out_before_it_is_shown_comes_again,
     damaged_leftovers_of_unknown_length, leftovers_that_are_too_long_are_thrown_away,
     an_abandoned_blob_can_be_kept, a_note_of_another_host_is_left_alone, a_lock_that_is_held_is_waited_for,
     thousands_can_wait, the_wait_can_be_limited, a_lock_that_was_removed_is_none,
     a_lock_is_removed_through_no_link, a_lock_is_made_through_no_link, without_memory_nothing_is_lost)
