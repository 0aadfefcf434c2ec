/* The whole cache: what is in it, removing, pruning, verifying. */
#include "cache.h"
#include "failing_memory.h"

#include "cache/link.h"

#include <khub/cache.h>

#include <sys/file.h>
#include <time.h>

/* "jello\n", as `git hash-object` names it. */
#define JELLO     "jello\n"
#define JELLO_GIT "da643281e874ed4c68c6a5d2217d24f48f575b12"

static khub_error err;
static khub_cache *cache;

static void reread(void)
{
    khub_cache_free(cache);
    ck_khub_ok(khub_cache_read(&cache, cache_root, &err), &err);
}

/* COMMIT: a, sub/b (the same), only; COMMIT2: a. Refs: v1 and main to COMMIT. */
static void fill(void)
{
    ck_khub_ok(bring(COMMIT, "a", HELLO_GIT, HELLO, &err), &err);
    ck_khub_ok(bring(COMMIT, "sub/b", HELLO_GIT, HELLO, &err), &err);
    ck_khub_ok(bring(COMMIT, "only", JELLO_GIT, JELLO, &err), &err);
    ck_khub_ok(bring(COMMIT2, "a", HELLO_GIT, HELLO, &err), &err);
    ck_khub_ok(khub__store_set_ref(&store, "v1", COMMIT, &err), &err);
    ck_khub_ok(khub__store_set_ref(&store, "refs/pr/1", COMMIT, &err), &err);
    khub__tree none = {0};
    ck_khub_ok(khub__store_set_tree(&store, COMMIT, &none, &err), &err);
    ck_khub_ok(khub__store_set_absent(&store, COMMIT, "x", &err), &err);
    reread();
}

static void end(void)
{
    khub_cache_free(cache);
    cache = NULL;
    cache_end();
}

START_TEST(an_empty_cache_is_one)
{
    cache_begin();
    reread();
    ck_assert_ptr_null(khub_cache_at(cache, 0));
    ck_assert_ptr_null(khub_cache_warning(cache, 0));
    ck_assert_uint_eq(khub_cache_bytes(cache), 0);
    ck_assert_str_eq(khub_cache_path(cache), cache_root);
    khub_cache_free(cache);
    ck_khub_ok(khub_cache_read(&cache, at("not/there"), &err), &err);
    ck_assert_ptr_null(khub_cache_at(cache, 0));
    put(at("file"), "");
    khub_cache *none;
    ck_khub_fails(khub_cache_read(&none, at("file"), &err), &err, KHUB_E_IO, "/file");
    ck_assert_ptr_null(none);
    end();
}
END_TEST

START_TEST(what_is_there_is_counted)
{
    cache_begin();
    fill();
    const khub_cached_revision *one = khub_cache_at(cache, 0), *two = khub_cache_at(cache, 1);
    ck_assert_ptr_null(khub_cache_at(cache, 2));
    ck_assert_str_eq(one->kind, "kernel");
    ck_assert_str_eq(one->repository, "org/name");
    ck_assert_str_eq(one->commit, COMMIT);
    ck_assert_str_eq(one->refs[0], "refs/pr/1");
    ck_assert_str_eq(one->refs[1], "v1");
    ck_assert_ptr_null(one->refs[2]);
    ck_assert_str_eq(one->path, at(FOLDER "/snapshots/" COMMIT));
    ck_assert_uint_eq(one->file_count, 3);
    ck_assert_uint_eq(one->bytes, 12); /* the blob that two files show counts once */
    ck_assert_uint_eq(one->own_bytes, 6);
    ck_assert_uint_eq(two->file_count, 1);
    ck_assert_uint_eq(two->bytes, 6);
    ck_assert_uint_eq(two->own_bytes, 0);
    ck_assert_ptr_null(two->refs[0]);
    ck_assert_uint_eq(khub_cache_bytes(cache), 12);
    ck_assert_ptr_null(khub_cache_warning(cache, 0));
    const struct timespec times[2] = {{5000, 0}, {4000, 0}};
    ck_assert_int_eq(utimensat(AT_FDCWD, at(BLOBS "/" HELLO_GIT), times, 0), 0);
    reread();
    ck_assert(khub_cache_at(cache, 1)->last_used == 5000);
    ck_assert(khub_cache_at(cache, 1)->last_modified == 4000);
    end();
}
END_TEST

static int is_warned(const char *words)
{
    const char *text;
    for (size_t i = 0; (text = khub_cache_warning(cache, i)) != NULL; i++)
        if (strstr(text, words)) return 1;
    return 0;
}

START_TEST(what_is_odd_is_said_and_left)
{
    cache_begin();
    fill();
    ck_assert_int_eq(mkdir(at("something"), 0777), 0);
    ck_assert_int_eq(mkdir(at("models--empty"), 0777), 0);
    put(at("kernels--file"), "");
    ck_assert_int_eq(symlink("../../blobs/" COMMIT, at(FOLDER "/snapshots/" COMMIT2 "/dangling")), 0);
    ck_assert_int_eq(symlink("/etc/passwd", at(FOLDER "/snapshots/" COMMIT2 "/foreign")), 0);
    put(at(FOLDER "/refs/old"), "3333333333333333333333333333333333333333");
    put(at(FOLDER "/refs/bad"), "bad");
    reread();
    ck_assert(is_warned("/something: is no repository"));
    ck_assert(is_warned("/kernels--file: is no repository"));
    ck_assert(is_warned("models--empty/snapshots"));
    ck_assert(is_warned("/dangling: shows ../../blobs/" COMMIT));
    ck_assert(is_warned("/foreign: shows /etc/passwd"));
    ck_assert(is_warned("refs/old: names 3333"));
    ck_assert(is_warned("refs/bad: holds \"bad\""));
    ck_assert_uint_eq(khub_cache_at(cache, 1)->file_count, 3);
    ck_assert_uint_eq(khub_cache_at(cache, 1)->bytes, 6);
    khub_removed removed;
    put(at(FOLDER "/publisher.json"), "{}");
    ck_khub_ok(khub_cache_remove(&removed, cache, "kernel", "org/name", NULL, 0, &err), &err);
    ck_assert(exists("/etc/passwd"));
    ck_assert(exists(at("something")) && exists(at("kernels--file")));
    ck_assert(!exists(at(FOLDER)));
    end();
}
END_TEST

START_TEST(other_words_for_the_same_blob)
{
    cache_begin();
    ck_khub_ok(bring(COMMIT, "a", HELLO_GIT, HELLO, &err), &err);
    const char *target = at(BLOBS "/" HELLO_GIT);
    ck_assert_int_eq(symlink(target, at(FOLDER "/snapshots/" COMMIT "/absolute")), 0);
    ck_assert_int_eq(
        symlink("../" COMMIT "/./../../blobs/" HELLO_GIT, at(FOLDER "/snapshots/" COMMIT "/long")), 0);
    char other[64];
    snprintf(other, sizeof(other), "%s-link", cache_root);
    ck_assert_int_eq(symlink(cache_root, other), 0);
    khub_cache *by_link;
    ck_khub_ok(khub_cache_read(&by_link, other, &err), &err); /* the absolute one names the cache otherwise */
    ck_assert_uint_eq(khub_cache_at(by_link, 0)->file_count, 3);
    ck_assert_uint_eq(khub_cache_at(by_link, 0)->bytes, 6);
    ck_assert_ptr_null(khub_cache_warning(by_link, 0));
    khub_cache_free(by_link);
    ck_assert_int_eq(unlink(other), 0);
    static const struct {
        const char *from, *target, *blob;
    } table[] = {{"/c/r/snapshots/x/a", "../../blobs/b", "b"},
                 {"/c/r/snapshots/x/a", "../../../r/blobs/b", "b"},
                 {"/c/r/snapshots/x/a", "../../../q/blobs/b", NULL},
                 {"/c/r/snapshots/x/a", "../../blobs/", NULL},
                 {"/c/r/snapshots/x/a", "../../blobs/d/b", NULL},
                 {"/c/r/snapshots/x/a", "/c/r/blobs/b", "b"},
                 {"/c/r/snapshots/x/a", "/c/r/blobs/../x/b", NULL},
                 {"/c/r/snapshots/x/a", "../../../../../../b", NULL},
                 {"/c/r/snapshots/x/d/a", "../.././../blobs//b", "b"}};
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
        const char *blob = khub__link_blob("/c/r", table[i].from, table[i].target);
        ck_assert_msg(!blob == !table[i].blob && (!blob || !strcmp(blob, table[i].blob)), "%s",
                      table[i].target);
    }
    end();
}
END_TEST

START_TEST(removing_a_revision_keeps_what_others_show)
{
    cache_begin();
    fill();
    put(at(FOLDER "/receipt." COMMIT ".x.txt"), "x");
    put(at(FOLDER "/receipt." COMMIT2 ".x.txt"), "x");
    khub_removed removed, dry;
    ck_khub_ok(khub_cache_remove(&dry, cache, "kernel", "org/name", COMMIT, 1, &err), &err);
    ck_assert(exists(at(FOLDER "/snapshots/" COMMIT "/only")));
    ck_khub_ok(khub_cache_remove(&removed, cache, "kernel", "org/name", COMMIT, 0, &err), &err);
    ck_assert_mem_eq(&removed, &dry, sizeof(dry));
    ck_assert_uint_eq(removed.bytes, 6);
    ck_assert_uint_eq(removed.blobs, 1);
    ck_assert_uint_eq(removed.revisions, 1);
    ck_assert_uint_eq(removed.repositories, 0);
    ck_assert(!exists(at(FOLDER "/snapshots/" COMMIT)));
    ck_assert(!exists(at(FOLDER "/trees/" COMMIT ".json")));
    ck_assert(!exists(at(FOLDER "/.no_exist/" COMMIT)));
    ck_assert(!exists(at(FOLDER "/receipt." COMMIT ".x.txt")));
    ck_assert(exists(at(FOLDER "/receipt." COMMIT2 ".x.txt")));
    ck_assert(!exists(at(FOLDER "/refs/v1")));
    ck_assert(!exists(at(FOLDER "/refs/refs"))); /* its folders were empty then */
    ck_assert(!exists(at(BLOBS "/" JELLO_GIT)));
    ck_assert(khub__store_has(&store, COMMIT2, "a", 6));
    ck_assert_int_eq(entries(at(FOLDER), ".tmp"), 0);
    reread();
    ck_khub_fails(khub_cache_remove(&removed, cache, "kernel", "org/name", COMMIT, 0, &err), &err,
                  KHUB_E_NOTFOUND, "no snapshot of " COMMIT);
    ck_khub_fails(khub_cache_remove(&removed, cache, "model", "org/name", NULL, 0, &err), &err,
                  KHUB_E_NOTFOUND, "as a kernel, not as a model");
    ck_khub_fails(khub_cache_remove(&removed, cache, "kernel", "org/other", NULL, 0, &err), &err,
                  KHUB_E_NOTFOUND, "org/other: no such kernel");
    ck_khub_ok(khub_cache_remove(&removed, cache, "kernel", "org/name", COMMIT2, 0, &err), &err);
    ck_assert_uint_eq(removed.bytes, 6);
    ck_assert_uint_eq(removed.repositories, 1);
    ck_assert(!exists(at(FOLDER)));
    end();
}
END_TEST

START_TEST(copies_are_removed_with_their_snapshot)
{
    cache_begin();
    setenv("HF_HUB_DISABLE_SYMLINKS", "1", 1);
    fill();
    ck_assert_int_eq(entries(at(BLOBS), ""), 0); /* moved */
    ck_assert_uint_eq(khub_cache_at(cache, 0)->bytes, 18);
    ck_assert_uint_eq(khub_cache_at(cache, 0)->own_bytes, 18);
    ck_assert_uint_eq(khub_cache_bytes(cache), 24);
    khub_removed removed;
    ck_khub_ok(khub_cache_remove(&removed, cache, "kernel", "org/name", COMMIT, 0, &err), &err);
    ck_assert_uint_eq(removed.bytes, 18);
    ck_assert(khub__store_has(&store, COMMIT2, "a", 6));
    end();
}
END_TEST

/* A blob that another process links to while we remove. */
START_TEST(a_blob_whose_lock_is_held_stays)
{
    cache_begin();
    fill();
    int fd = open(at(".locks/" FOLDER "/" JELLO_GIT ".lock"), O_RDWR);
    ck_assert_int_eq(flock(fd, LOCK_EX), 0);
    khub_removed removed;
    ck_khub_ok(khub_cache_remove(&removed, cache, "kernel", "org/name", NULL, 0, &err), &err);
    ck_assert_uint_eq(removed.blobs, 1);
    ck_assert(exists(at(BLOBS "/" JELLO_GIT)));
    ck_assert_uint_eq(removed.repositories, 0);
    ck_assert(exists(at(FOLDER "/snapshots"))); /* without it the other tools would call it broken */
    ck_assert_int_eq(entries(at(FOLDER "/snapshots"), ""), 0);
    close(fd);
    end();
}
END_TEST

START_TEST(a_blob_that_is_shown_meanwhile_stays)
{
    cache_begin();
    fill();
    ck_khub_ok(bring("3333333333333333333333333333333333333333", "late", JELLO_GIT, JELLO, &err), &err);
    khub_removed removed;
    ck_khub_ok(khub_cache_remove(&removed, cache, "kernel", "org/name", COMMIT, 0, &err),
               &err); /* read before */
    ck_assert_uint_eq(removed.blobs, 0);
    ck_assert(khub__store_has(&store, "3333333333333333333333333333333333333333", "late", 6));
    end();
}
END_TEST

START_TEST(a_ref_that_moved_meanwhile_stays)
{
    cache_begin();
    fill();
    ck_khub_ok(khub__store_set_ref(&store, "v1", COMMIT2, &err), &err);
    khub_removed removed;
    ck_khub_ok(khub_cache_remove(&removed, cache, "kernel", "org/name", COMMIT, 0, &err), &err);
    ck_assert_str_eq(get(at(FOLDER "/refs/v1")), COMMIT2);
    ck_assert(!exists(at(FOLDER "/refs/refs/pr/1")));
    end();
}
END_TEST

START_TEST(pruning_takes_what_nobody_needs)
{
    cache_begin();
    fill();
    put(at(BLOBS "/%s", "4444444444444444444444444444444444444444"), "unused");
    put(at(BLOBS "/%s", HELLO_SHA256 ".0a1b2c3d.incomplete"), "the peer's");
    put(at(FOLDER "/.khub-0a1b2c3d.tmp"), "young");
    reread();
    khub_removed removed, dry;
    ck_khub_ok(khub_cache_prune(&dry, cache, 1, NULL, NULL, &err), &err);
    int fd = open(at(".locks/" FOLDER "/" HELLO_SHA256 ".lock"), O_RDWR | O_CREAT, 0666);
    ck_assert_int_eq(flock(fd, LOCK_EX), 0);
    ck_khub_ok(khub_cache_prune(&removed, cache, 0, NULL, NULL, &err), &err); /* something is being fetched */
    ck_assert_uint_eq(removed.revisions, 0);
    ck_assert_uint_eq(removed.partial_downloads, 0);
    ck_assert_uint_eq(removed.blobs, 1);
    close(fd);
    reread();
    ck_khub_ok(khub_cache_prune(&removed, cache, 0, NULL, NULL, &err), &err);
    ck_assert_uint_eq(dry.bytes, 16); /* "unused", "the peer's" */
    ck_assert_uint_eq(dry.revisions, 1);
    ck_assert_uint_eq(dry.blobs, 1);
    ck_assert_uint_eq(dry.partial_downloads, 1);
    ck_assert_uint_eq(removed.revisions, 1);
    ck_assert_uint_eq(removed.partial_downloads, 1);
    ck_assert_uint_eq(removed.blobs, 0);
    ck_assert(khub__store_has(&store, COMMIT, "a", 6));
    ck_assert(!exists(at(FOLDER "/snapshots/" COMMIT2)));
    ck_assert_int_eq(entries(at(BLOBS), ""), 2);
    ck_assert(exists(at(FOLDER "/.khub-0a1b2c3d.tmp")));
    end();
}
END_TEST

START_TEST(a_folder_stays_while_something_comes_into_it)
{
    cache_begin();
    ck_khub_ok(bring(COMMIT, "a", HELLO_GIT, HELLO, &err), &err);
    reread();
    khub_removed removed;
    int fd = open(at(".locks/" FOLDER "/" HELLO_SHA256 ".lock"), O_RDWR | O_CREAT, 0666);
    ck_assert_int_eq(flock(fd, LOCK_EX), 0); /* of a file without a name */
    ck_khub_ok(khub_cache_remove(&removed, cache, "kernel", "org/name", NULL, 0, &err), &err);
    ck_assert_uint_eq(removed.revisions, 1);
    ck_assert_uint_eq(removed.repositories, 0);
    ck_assert(exists(at(BLOBS)));
    reread();
    ck_khub_ok(khub_cache_prune(&removed, cache, 0, NULL, NULL, &err), &err);
    ck_assert(exists(at(BLOBS)));
    close(fd);
    reread();
    ck_khub_ok(khub_cache_prune(&removed, cache, 0, NULL, NULL, &err), &err);
    ck_assert_uint_eq(removed.repositories, 1);
    ck_assert(!exists(at(FOLDER)));
    end();
}
END_TEST

typedef struct seen {
    char text[2000];
    int stop_after;
} seen;

static int note(void *user, const khub_cached_revision *revision, const char *file, khub_file_state state,
                const char *detail)
{
    seen *s = user;
    size_t n = strlen(s->text);
    snprintf(s->text + n, sizeof(s->text) - n, "%c %s %d%s;", revision->commit[0], file, (int)state,
             detail ? "!" : "");
    return s->stop_after && --s->stop_after == 0;
}

START_TEST(verifying_finds_what_is_wrong)
{
    cache_begin();
    fill();
    seen s = {0};
    size_t bad;
    ck_khub_ok(khub_cache_verify(&bad, cache, NULL, note, &s, &err), &err);
    ck_assert_uint_eq(bad, 0);
    ck_assert_str_eq(s.text, "1 a 0;1 only 0;1 sub/b 0;2 a 0;");
    put(at(FOLDER "/snapshots/" COMMIT "/a"),
        JELLO); /* through the link: sub/b and the other commit show it too */
    ck_assert_int_eq(symlink("../../blobs/" COMMIT, at(FOLDER "/snapshots/" COMMIT2 "/gone")), 0);
    put(at(FOLDER "/snapshots/" COMMIT2 "/own"), "a file that someone else put there");
    reread();
    memset(&s, 0, sizeof(s));
    ck_khub_ok(khub_cache_verify(&bad, cache, "org/name", note, &s, &err), &err);
    ck_assert_str_eq(s.text, "1 a 1!;1 only 0;1 sub/b 1!;2 a 1!;2 gone 2!;2 own 3!;");
    ck_assert_uint_eq(bad, 4);
    s.stop_after = 2;
    ck_khub_fails(khub_cache_verify(&bad, cache, NULL, note, &s, &err), &err, KHUB_E_CANCELED, "canceled");
    ck_khub_fails(khub_cache_verify(&bad, cache, "org/other", note, &s, &err), &err, KHUB_E_NOTFOUND,
                  "org/other");
    ck_assert_int_eq(unlink(at(BLOBS "/" JELLO_GIT)), 0); /* since it was read */
    memset(&s, 0, sizeof(s));
    ck_khub_ok(khub_cache_verify(&bad, cache, NULL, note, &s, &err), &err);
    ck_assert_ptr_nonnull(strstr(s.text, "1 only 2!;"));
    end();
}
END_TEST

START_TEST(lists_of_files_tell_what_copies_should_be)
{
    cache_begin();
    setenv("HF_HUB_DISABLE_SYMLINKS", "1", 1);
    ck_khub_ok(bring(COMMIT, "a", HELLO_GIT, HELLO, &err), &err);
    ck_khub_ok(bring(COMMIT, "b", HELLO_SHA256, HELLO, &err), &err);
    unsetenv("HF_HUB_DISABLE_SYMLINKS");
    ck_khub_ok(bring(COMMIT, "link", JELLO_GIT, JELLO, &err), &err);
    khub__tree tree = {0};
    khub__tree_file a = {.path = "a", .size = 6}, b = {.path = "b", .size = 6},
                    c = {.path = "link", .size = 6};
    strcpy(a.blob_id, HELLO_GIT);
    strcpy(b.blob_id, COMMIT);
    strcpy(b.sha256, HELLO_SHA256);
    strcpy(c.blob_id, HELLO_GIT);
    ck_khub_ok(khub__tree_add(&tree, &a, &err), &err);
    ck_khub_ok(khub__tree_add(&tree, &b, &err), &err);
    ck_khub_ok(khub__tree_add(&tree, &c, &err), &err);
    ck_khub_ok(khub__store_set_tree(&store, COMMIT, &tree, &err), &err);
    khub__tree_free(&tree);
    reread();
    seen s = {0};
    size_t bad;
    ck_khub_ok(khub_cache_verify(&bad, cache, NULL, note, &s, &err), &err);
    ck_assert_str_eq(s.text, "1 a 0;1 b 0;1 link 1!;"); /* its blob is what its name says, but another's */
    put(at(FOLDER "/snapshots/" COMMIT "/b"), JELLO);
    memset(&s, 0, sizeof(s));
    ck_khub_ok(khub_cache_verify(&bad, cache, NULL, note, &s, &err), &err);
    ck_assert_str_eq(s.text, "1 a 0;1 b 1!;1 link 1!;");
    ck_assert_uint_eq(bad, 2);
    end();
}
END_TEST

static int manage(void *user, khub_error *e)
{
    (void)user;
    khub_cache *one = NULL;
    khub_removed removed;
    size_t bad = 0;
    seen s = {0};
    int rc = khub_cache_read(&one, cache_root, e);
    if (rc == KHUB_OK) rc = khub_cache_verify(&bad, one, NULL, note, &s, e);
    if (rc == KHUB_OK) rc = khub_cache_remove(&removed, one, "kernel", "org/name", COMMIT, 1, e);
    if (rc == KHUB_OK) rc = khub_cache_prune(&removed, one, 1, NULL, NULL, e);
    khub_cache_free(one);
    return rc;
}

/* The removal itself, of what is put there again each time. */
static int take_out(void *user, khub_error *e)
{
    (void)user;
    khub_cache *one = NULL;
    khub_removed removed;
    khub_error ignored = {0};
    const khub_allocator *none = NULL;
    khub_set_allocator(none);
    char command[64];
    snprintf(command, sizeof(command), "rm -rf %s/kernels*", cache_root);
    if (system(command) != 0) return KHUB_E_IO;
    bring(COMMIT, "a", HELLO_GIT, HELLO, &ignored);
    bring(COMMIT2, "sub/b", JELLO_GIT, JELLO, &ignored);
    khub__store_set_ref(&store, "v1", COMMIT, &ignored);
    fm_install_own();
    int rc = khub_cache_read(&one, cache_root, e);
    if (rc == KHUB_OK) rc = khub_cache_remove(&removed, one, "kernel", "org/name", NULL, 0, e);
    khub_cache_free(one);
    return rc;
}

START_TEST(without_memory_it_fails_cleanly)
{
    cache_begin();
    fill();
    khub_cache_free(cache);
    cache = NULL;
    fm_fail_each_own(manage, NULL);
    fm_fail_each_own(take_out, NULL);
    end();
}
END_TEST

UNIT("cache.manage", an_empty_cache_is_one, what_is_there_is_counted, what_is_odd_is_said_and_left,
     other_words_for_the_same_blob, removing_a_revision_keeps_what_others_show,
     copies_are_removed_with_their_snapshot, a_blob_whose_lock_is_held_stays,
     a_blob_that_is_shown_meanwhile_stays, a_ref_that_moved_meanwhile_stays, pruning_takes_what_nobody_needs,
     a_folder_stays_while_something_comes_into_it, verifying_finds_what_is_wrong,
     lists_of_files_tell_what_copies_should_be, without_memory_it_fails_cleanly)
