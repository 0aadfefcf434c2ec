/* The ground that everything stands on: errors, text, files, JSON. */
#include "unit.h"

#include "base/base64.h"
#include "base/both.h"
#include "base/error.h"
#include "base/file.h"
#include "base/index.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/path.h"
#include "base/text.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

START_TEST(error_first_message_wins)
{
    khub_error err = {0};
    ck_assert_int_eq(khub__fail(&err, KHUB_E_IO, "first %d", 1), KHUB_E_IO);
    ck_assert_int_eq(khub__fail(&err, KHUB_E_NOMEM, "second"), KHUB_E_NOMEM);
    ck_assert_str_eq(err.message, "first 1");
    ck_assert_int_eq(err.code, KHUB_E_IO);
    ck_assert_int_eq(khub__fail(NULL, KHUB_E_IO, "nobody listens"), KHUB_E_IO);
}
END_TEST

START_TEST(error_long_text_is_cut_between_characters)
{
    char text[2001];
    for (int i = 0; i < 1000; i++)
        memcpy(text + 2 * i, "\xC3\xA4", 2);
    text[2000] = 0;
    khub_error err = {0};
    khub__fail(&err, KHUB_E_IO, "%s", text);
    size_t n = strlen(err.message);
    ck_assert_uint_lt(n, sizeof(err.message));
    ck_assert_str_eq(err.message + n - 3, "...");
    ck_assert_uint_eq((n - 3) % 2, 0);
}
END_TEST

START_TEST(status_names)
{
    ck_assert_str_eq(khub_status_name(KHUB_OK), "KHUB_OK");
    ck_assert_str_eq(khub_status_name(KHUB_E_UNSUPPORTED), "KHUB_E_UNSUPPORTED");
    ck_assert_str_eq(khub_status_name(-17), "KHUB_E_?");
    ck_assert_str_eq(khub_status_name(1), "KHUB_E_?");
    ck_assert_str_eq(khub_status_name(-2147483647 - 1), "KHUB_E_?");
}
END_TEST

START_TEST(paths)
{
    static const struct {
        const char *dir, *name, *joined;
    } table[] = {{"a", "b", "a/b"}, {"a/", "b", "a/b"}, {"", "b", "b"}, {"a", "/b", "/b"}, {"/", "b", "/b"}};
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
        char *joined = khub__path_join(table[i].dir, table[i].name);
        ck_assert_str_eq(joined, table[i].joined);
        khub_free(joined);
    }
    char *parent = khub__path_parent("/a");
    ck_assert_str_eq(parent, "/");
    khub_free(parent);
    ck_assert_str_eq(khub__path_name("/x/y.so"), "y.so");
    ck_assert(khub__path_is_local("../x"));
    ck_assert(!khub__path_is_local("khub/norm"));
}
END_TEST

static int has_nameless_files(const char *dir)
{
#ifdef O_TMPFILE
    int fd = open(dir, O_TMPFILE | O_WRONLY, 0666);
    if (fd >= 0) close(fd);
    return fd >= 0;
#else
    (void)dir;
    return 0;
#endif
}

START_TEST(draft_leaves_nothing_behind)
{
    char dir[] = "/tmp/khub-base-XXXXXX";
    ck_assert_ptr_nonnull(mkdtemp(dir));
    char *path = khub__path_join(dir, "file");
    khub_error err = {0};
    khub__draft *draft;
    char **names;
    size_t count;
    ck_khub_ok(khub__draft_open(&draft, path, &err), &err);
    ck_khub_ok(khub__draft_write(draft, "abc", 3, &err), &err);
    ck_khub_ok(khub__dir_list(&names, &count, dir, &err), &err);
    ck_assert_uint_eq(count, has_nameless_files(dir) ? 0 : 1); /* what a kill would leave */
    khub_free(names);
    khub__draft_discard(draft);
    ck_khub_ok(khub__dir_list(&names, &count, dir, &err), &err);
    ck_assert_uint_eq(count, 0);
    khub_free(names);
    ck_khub_ok(khub__draft_open(&draft, path, &err), &err);
    ck_khub_ok(khub__draft_write(draft, "abc", 3, &err), &err);
    ck_khub_ok(khub__draft_commit(draft, &err), &err);
    khub__bytes bytes;
    ck_khub_ok(khub__file_read(&bytes, path, 3, &err), &err);
    ck_assert_str_eq(bytes.data, "abc");
    khub__bytes_free(&bytes);
    ck_khub_fails(khub__file_read(&bytes, path, 2, &err), &err, KHUB_E_FORMAT, "3 bytes long");
    ck_khub_fails(khub__file_read(&bytes, dir, 2, &err), &err, KHUB_E_FORMAT, "directory");
    unlink(path);
    ck_khub_fails(khub__file_map(&bytes, path, &err), &err, KHUB_E_NOTFOUND, "No such file");
    ck_assert_int_eq(rmdir(dir), 0);
    khub_free(path);
}
END_TEST

/* With the permissions that the umask leaves, over a file, over a link; not over a directory. */
START_TEST(draft_in_place_of_something)
{
    char dir[] = "/tmp/khub-base-XXXXXX";
    ck_assert_ptr_nonnull(mkdtemp(dir));
    char *path = khub__path_join(dir, "file");
    khub_error err = {0};
    khub__draft *draft;
    struct stat st;
    mode_t before = umask(027);
    ck_assert_int_eq(symlink("nowhere", path), 0);
    for (int i = 0; i < 2; i++) {
        ck_khub_ok(khub__draft_open(&draft, path, &err), &err);
        ck_khub_ok(khub__draft_sync(draft, &err), &err);
        ck_khub_ok(khub__draft_commit(draft, &err), &err);
        ck_assert_int_eq(lstat(path, &st), 0);
        ck_assert_uint_eq(st.st_mode, S_IFREG | 0640);
    }
    umask(before);
    unlink(path);
    ck_assert_int_eq(mkdir(path, 0777), 0);
    ck_khub_fails(khub__draft_open(&draft, path, &err), &err, KHUB_E_IO,
                  "file: can't create it: Is a directory");
    ck_assert_int_eq(rmdir(path), 0);
    ck_assert_int_eq(rmdir(dir), 0);
    khub_free(path);
}
END_TEST

/* A link that leads nowhere was meant to lead somewhere. */
START_TEST(kinds_of_files)
{
    char dir[] = "/tmp/khub-base-XXXXXX";
    ck_assert_ptr_nonnull(mkdtemp(dir));
    char *path = khub__path_join(dir, "link"), *below = khub__path_join(dir, "link/below");
    ck_assert_int_eq(khub__file_kind(path), KHUB__FILE_NONE);
    ck_assert_int_eq(symlink("nowhere", path), 0);
    ck_assert_int_eq(khub__file_kind(path), KHUB__FILE_BROKEN);
    ck_assert_int_eq(khub__file_kind(below), KHUB__FILE_NONE);
    unlink(path);
    ck_assert_int_eq(symlink("link", path), 0);
    ck_assert_int_eq(khub__file_kind(path), KHUB__FILE_BROKEN);
    unlink(path);
    ck_assert_int_eq(symlink(".", path), 0);
    ck_assert_int_eq(khub__file_kind(path), KHUB__FILE_DIRECTORY);
    unlink(path);
    ck_assert_int_eq(rmdir(dir), 0);
    khub_free(path);
    khub_free(below);
}
END_TEST

/* As root, a rename onto /dev/null would make a file of it for everybody. */
START_TEST(draft_onto_a_device_writes_to_it)
{
    khub_error err = {0};
    khub__draft *draft;
    ck_khub_ok(khub__draft_open(&draft, "/dev/null", &err), &err);
    ck_khub_ok(khub__draft_write(draft, "abc", 3, &err), &err);
    ck_khub_ok(khub__draft_commit(draft, &err), &err);
    ck_khub_ok(khub__draft_open(&draft, "/dev/null", &err), &err);
    khub__draft_discard(draft);
    ck_assert_int_eq(khub__file_kind("/dev/null"), KHUB__FILE_OTHER);
    ck_khub_ok(khub__draft_open(&draft, "/dev/full", &err), &err);
    ck_khub_fails(khub__draft_write(draft, "abc", 3, &err), &err, KHUB_E_NOSPACE,
                  "/dev/full: can't write it");
    khub__draft_discard(draft);
    ck_assert_int_eq(khub__file_kind("/dev/full"), KHUB__FILE_OTHER);
}
END_TEST

START_TEST(draft_of_the_longest_name)
{
    char path[300] = "/tmp/khub-base-XXXXXX";
    khub_error err = {0};
    khub__draft *draft;
    ck_assert_ptr_nonnull(mkdtemp(path));
    size_t n = strlen(path);
    path[n] = '/';
    memset(path + n + 1, 'x', 255); /* NAME_MAX */
    ck_khub_ok(khub__draft_open(&draft, path, &err), &err);
    ck_khub_ok(khub__draft_commit(draft, &err), &err);
    ck_assert_int_eq(unlink(path), 0);
    path[n] = 0;
    ck_assert_int_eq(rmdir(path), 0);
}
END_TEST

START_TEST(stream_reads_exactly)
{
    char path[] = "/tmp/khub-base-XXXXXX", bytes[8];
    khub_error err = {0};
    khub__stream stream;
    int fd = mkstemp(path);
    ck_assert_int_eq(write(fd, "abcdef", 6), 6);
    ck_khub_ok(khub__stream_open(&stream, path, &err), &err);
    ck_assert_uint_eq(stream.size, 6);
    ck_khub_ok(khub__stream_read(&stream, bytes, 4, &err), &err);
    ck_assert_mem_eq(bytes, "abcd", 4);
    ck_khub_fails(khub__stream_read(&stream, bytes, 4, &err), &err, KHUB_E_FORMAT, "ends 2 bytes too early");
    ck_khub_ok(khub__stream_read(&stream, bytes, 0, &err), &err);
    khub__stream_close(&stream);
    close(fd);
    unlink(path);
    ck_khub_fails(khub__stream_open(&stream, path, &err), &err, KHUB_E_NOTFOUND, "No such file");
    ck_khub_fails(khub__stream_open(&stream, "/tmp", &err), &err, KHUB_E_FORMAT, "is a directory");
}
END_TEST

START_TEST(json_of_strangers)
{
    static const struct {
        const char *text, *words;
    } table[] = {
        {"", "not valid JSON"},
        {"[1]", "is an array"},
        {"{\"a\":1,\"a\":2}", "duplicate"},
        {"{} x", "end of file"},
        {"{\"a\":\"\xFF\"}", "decode byte 0xff"},
        {"{\"a\":\"\\u0000\"}", "\\u0000"},
    };
    khub_error err = {0};
    json_t *root;
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
        ck_khub_fails(khub__json_parse(&root, table[i].text, strlen(table[i].text), "f.json", &err), &err,
                      KHUB_E_FORMAT, table[i].words);
    char *deep = calloc(1, 5000001);
    memset(deep, '[', 5000000);
    ck_khub_fails(khub__json_parse(&root, deep, 5000000, "f.json", &err), &err, KHUB_E_FORMAT,
                  "nested deeper");
    size_t length; /* {"a":[[],[],... of a million, which jansson would take 130 MB for */
    memcpy(deep, "{\"a\":[", 6);
    for (length = 6; length < 6 + 3 * (1 << 20); length += 3)
        memcpy(deep + length, "[],", 3);
    memcpy(deep + length - 1, "]}", 2);
    ck_khub_fails(khub__json_parse(&root, deep, length + 1, "f.json", &err), &err, KHUB_E_FORMAT,
                  "f.json: holds more than a million values");
    memset(deep + 2, ',', 4999990); /* in a string they are no values */
    memcpy(deep + 4999992, "\":1}", 5);
    ck_khub_ok(khub__json_parse(&root, deep, 4999996, "f.json", &err), &err);
    json_decref(root);
    free(deep);
    ck_khub_ok(khub__json_parse(&root, "{\"a\":\"1\",\"b\":null}", 18, "f.json", &err), &err);
    khub__json_source source = {"f.json", &err};
    int64_t n = 7;
    ck_khub_ok(khub__json_integer(&n, root, "b", &source), &err);
    ck_assert_int_eq(n, 7);
    ck_khub_fails(khub__json_integer(&n, root, "a", &source), &err, KHUB_E_FORMAT,
                  "\"a\" is a string, an integer");
    json_decref(root);
}
END_TEST

static int allocations, failing;

static void *failing_malloc(size_t bytes)
{
    return ++allocations == failing ? NULL : malloc(bytes);
}

/* Tokens up to 16 bytes: past that jansson 2.14 doesn't notice that its buffer couldn't grow. */
START_TEST(json_without_memory)
{
    static const char text[] = "{\"a\": {\"b\": [1, \"x\", 2.5, true], \"c\": \"y\"}}";
    khub_error err = {0};
    json_t *root;
    json_set_alloc_funcs(failing_malloc, free);
    int rc = KHUB_E_NOMEM;
    for (failing = 1; rc != KHUB_OK; failing++) {
        allocations = 0;
        rc = khub__json_parse(&root, text, strlen(text), "f.json", &err);
        ck_assert_msg(rc == KHUB_OK || rc == KHUB_E_NOMEM, "allocation %d: %s", failing, err.message);
        khub_error_clear(&err);
        json_decref(root);
    }
    ck_assert_int_gt(failing, 10);
}
END_TEST

START_TEST(options_of_another_version)
{
    struct {
        size_t struct_size;
        int known, later;
    } given = {sizeof(given), 5, 0};
    struct {
        size_t struct_size;
        int known;
    } ours;
    khub_error err = {0};
    ck_khub_ok(khub__options(&ours, offsetof(__typeof__(given), later), &given, "opts", &err), &err);
    ck_assert_int_eq(ours.known, 5);
    given.later = 1;
    ck_khub_fails(khub__options(&ours, offsetof(__typeof__(given), later), &given, "opts", &err), &err,
                  KHUB_E_INVAL, "doesn't know");
    given.struct_size = 0;
    ck_khub_fails(khub__options(&ours, sizeof(ours), &given, "opts", &err), &err, KHUB_E_INVAL, "KHUB_INIT");
    given.struct_size = SIZE_MAX / 2; /* never set: not a byte beyond the struct is read */
    ck_khub_fails(khub__options(&ours, sizeof(ours), &given, "opts", &err), &err, KHUB_E_INVAL, "KHUB_INIT");
}
END_TEST

/* RFC 4648's examples, and what isn't in its one form. */
START_TEST(base64)
{
    static const char *const pairs[][2] = {{"", ""},
                                           {"f", "Zg=="},
                                           {"fo", "Zm8="},
                                           {"foo", "Zm9v"},
                                           {"foob", "Zm9vYg=="},
                                           {"fooba", "Zm9vYmE="},
                                           {"foobar", "Zm9vYmFy"}};
    static const char *const wrong[] = {
        "Z",    "Zg",   "Zg=",    "Zg===", "Zh==", "Zm9=", "Zm8",   "Zg==Zg==", "=",
        "====", "Z===", "Zm9v\n", "Zm 9v", "Zm9_", "Zm9-", "Zm9v=", "Z=9v",     "\xc3\xb6 A"};
    unsigned char bytes[64], *room;
    khub__span out;
    for (size_t i = 0; i < sizeof(pairs) / sizeof(*pairs); i++) {
        khub__text text = {0};
        room = bytes;
        ck_assert_int_eq(khub__base64_read(&out, &room, pairs[i][1], strlen(pairs[i][1])), 0);
        ck_assert_int_eq(out.length, strlen(pairs[i][0]));
        ck_assert(!memcmp(out.data, pairs[i][0], out.length) && out.data == bytes &&
                  room == bytes + out.length);
        khub__base64_add(&text, out, 0);
        ck_assert_str_eq(text.data ? text.data : "", pairs[i][1]);
        khub__text_free(&text);
    }
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        room = bytes;
        ck_assert_msg(khub__base64_read(&out, &room, wrong[i], strlen(wrong[i])) == -1, "%s", wrong[i]);
    }
}
END_TEST

/* Against a plain list; the numbers make every pair of texts differ late. */
START_TEST(an_index_finds_what_is_in_it)
{
    enum { TEXTS = 1000 };
    static char texts[TEXTS][24];
    khub__index index = {0};
    ck_assert_int_eq(khub__index_find(&index, "layer.0"), -1);
    for (int i = 0; i < TEXTS; i++) {
        snprintf(texts[i], sizeof(texts[i]), "layer.%d", i);
        ck_assert_int_eq(khub__index_find(&index, texts[i]), -1);
        ck_assert_int_eq(khub__index_add(&index, texts[i], (uint32_t)(TEXTS - i)), 0);
        for (int j = i < 20 ? 0 : i; j <= i; j++)
            ck_assert_int_eq(khub__index_find(&index, texts[j]), TEXTS - j);
    }
    for (int i = 0; i < TEXTS; i++)
        ck_assert_int_eq(khub__index_find(&index, texts[i]), TEXTS - i);
    ck_assert_int_eq(khub__index_find(&index, "layer."), -1);
    ck_assert_int_eq(khub__index_find(&index, ""), -1);
    khub__index_free(&index);
    ck_assert_int_eq(khub__index_find(&index, "layer.1"), -1);
    khub__index_free(&index);
}
END_TEST

/* Which thread ran it, and whether signals may come to that. */
typedef struct ran {
    pthread_t on;
    int minds_signals;
} ran;

static void note_thread(void *user)
{
    sigset_t blocked;
    pthread_sigmask(SIG_SETMASK, NULL, &blocked);
    *(ran *)user = (ran){pthread_self(), !sigismember(&blocked, SIGTERM)};
}

START_TEST(both_side_by_side_or_one_after_the_other)
{
    ran other = {0}, own = {0};
    pthread_attr_t attributes;
    khub__both(note_thread, &other, note_thread, &own);
    ck_assert(pthread_equal(own.on, pthread_self()) && own.minds_signals);
    ck_assert(!pthread_equal(other.on, pthread_self()) && !other.minds_signals);
    pthread_attr_init(&attributes);
    ck_assert_int_eq(pthread_attr_setstacksize(&attributes, (size_t)1 << 48), 0); /* no thread gets that */
    ck_assert_int_eq(pthread_setattr_default_np(&attributes), 0);
    khub__both(note_thread, &other, note_thread, &own);
    ck_assert(pthread_equal(other.on, pthread_self()) && pthread_equal(own.on, pthread_self()));
    pthread_attr_destroy(&attributes);
}
END_TEST

UNIT("base", error_first_message_wins, error_long_text_is_cut_between_characters, status_names, paths,
     draft_leaves_nothing_behind, draft_in_place_of_something, kinds_of_files,
     draft_onto_a_device_writes_to_it, draft_of_the_longest_name, stream_reads_exactly, json_of_strangers,
     json_without_memory, options_of_another_version, an_index_finds_what_is_in_it, base64,
     both_side_by_side_or_one_after_the_other)
