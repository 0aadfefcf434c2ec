/* One repository in the cache: where it is, refs, lists of files, links. */
#include "cache.h"

#include "base/memory.h"

#include <khub/cache.h>

#include <time.h>

static void check_dir(const char *explicit_dir, const char *expected)
{
    khub_error err = {0};
    char *dir;
    ck_khub_ok(khub_cache_dir(&dir, explicit_dir, &err), &err);
    ck_assert_str_eq(dir, expected);
    khub_free(dir);
}

static void clear_environment(void)
{
    static const char *const names[] = {"KERNELS_CACHE", "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "HF_HOME",
                                        "XDG_CACHE_HOME"};
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        unsetenv(names[i]);
    setenv("HOME", "/home/ann", 1);
}

START_TEST(the_directory_is_the_first_that_is_set)
{
    clear_environment();
    check_dir(NULL, "/home/ann/.cache/huggingface/hub");
    setenv("XDG_CACHE_HOME", "/xdg", 1);
    check_dir(NULL, "/xdg/huggingface/hub");
    setenv("HF_HOME", "~/hf", 1);
    check_dir(NULL, "/home/ann/hf/hub");
    setenv("HUGGINGFACE_HUB_CACHE", "/old", 1);
    check_dir(NULL, "/old");
    setenv("HF_HUB_CACHE", "$HOME/hub/", 1);
    check_dir(NULL, "/home/ann/hub");
    setenv("KERNELS_CACHE", "/k/${HF_HUB_NOT_SET}/a b\xC3\xA4", 1);
    check_dir(NULL, "/k/${HF_HUB_NOT_SET}/a b\xC3\xA4");
    setenv("KERNELS_CACHE", " ", 1); /* as if it weren't set */
    check_dir(NULL, "/home/ann/hub");
    check_dir("", "/home/ann/hub");
    check_dir("/mine//", "/mine");
    check_dir("/", "/");
}
END_TEST

START_TEST(the_directory_of_models_is_another)
{
    clear_environment();
    setenv("KERNELS_CACHE", "/k", 1);
    khub_error err = {0};
    char *dir;
    ck_khub_ok(khub__cache_dir(&dir, KHUB__REPO_MODEL, NULL, &err), &err);
    ck_assert_str_eq(dir, "/home/ann/.cache/huggingface/hub");
    khub_free(dir);
}
END_TEST

START_TEST(a_relative_directory_becomes_absolute)
{
    cache_begin();
    ck_assert_int_eq(chdir(cache_root), 0);
    check_dir("./rel/dir", at("rel/dir"));
    check_dir(".", cache_root);
    check_dir("./", cache_root);
    cache_end();
}
END_TEST

START_TEST(folders_are_named_as_the_peers_name_them)
{
    static const struct {
        khub__repo repo;
        const char *folder;
    } table[] = {
        {{KHUB__REPO_KERNEL, "kernels-community/activation"}, "/c/kernels--kernels-community--activation"},
        {{KHUB__REPO_MODEL, "gpt2"}, "/c/models--gpt2"}};
    khub_error err = {0};
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
        khub__store one;
        ck_khub_ok(khub__store_open(&one, &table[i].repo, "/c", &err), &err);
        ck_assert_str_eq(one.folder, table[i].folder);
        khub__store_close(&one);
    }
    static const khub__repo bad[] = {{KHUB__REPO_KERNEL, "../x"},
                                     {KHUB__REPO_KERNEL, "a/b/c"},
                                     {KHUB__REPO_KERNEL, ""},
                                     {KHUB__REPO_KERNEL, "/etc"},
                                     {KHUB__REPO_KERNEL, "a\nb"}};
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        khub__store one;
        ck_khub_fails(khub__store_open(&one, &bad[i], "/c", &err), &err, KHUB_E_INVAL,
                      "isn't a repository's name");
    }
}
END_TEST

static void check_ref(const char *revision, const char *expected)
{
    khub_error err = {0};
    char commit[KHUB__COMMIT_MAX + 1];
    int64_t age;
    ck_khub_ok(khub__store_ref(commit, &age, &store, revision, &err), &err);
    ck_assert_str_eq(commit, expected);
    ck_assert_int_ge(age, 0);
}

START_TEST(refs_are_written_and_read)
{
    cache_begin();
    khub_error err = {0};
    char commit[KHUB__COMMIT_MAX + 1];
    int64_t age;
    ck_khub_fails(khub__store_ref(commit, &age, &store, "v1", &err), &err, KHUB_E_NOTFOUND, "refs/v1");
    ck_assert(!exists(at(FOLDER))); /* asking makes nothing */
    ck_khub_ok(khub__store_set_ref(&store, "v1", COMMIT, &err), &err);
    ck_khub_ok(khub__store_set_ref(&store, "refs/pr/4", COMMIT2, &err), &err);
    check_ref("v1", COMMIT);
    check_ref("refs/pr/4", COMMIT2);
    ck_assert_str_eq(get(at(FOLDER "/refs/v1")), COMMIT); /* no newline */
    ck_assert_str_eq(get(at(FOLDER "/refs/refs/pr/4")), COMMIT2);
    ck_assert(exists(at(FOLDER "/snapshots/" COMMIT)));
    ck_khub_ok(khub__store_set_ref(&store, "v1", COMMIT2, &err), &err);
    check_ref("v1", COMMIT2);
    ck_assert_int_eq(entries(at(FOLDER), ".tmp"), 0);
    ck_assert_str_eq(at("%.43s", get(at("CACHEDIR.TAG"))), at("Signature: 8a477f597d28d172789f06886806bc55"));
    cache_end();
}
END_TEST

START_TEST(refs_of_other_hands_are_read)
{
    static const char *const spaces[][2] = {
        {"", ""}, {"", "\n"}, {"", "\r\n"}, {"  ", " \n\n"}, {"\n\t", ""}};
    cache_begin();
    khub_error err = {0};
    char commit[KHUB__COMMIT_MAX + 1];
    int64_t age;
    ck_khub_ok(khub__store_set_ref(&store, "v1", COMMIT2, &err), &err);
    for (size_t i = 0; i < sizeof(spaces) / sizeof(*spaces); i++) {
        char text[64];
        snprintf(text, sizeof(text), "%s%s%s", spaces[i][0], COMMIT, spaces[i][1]);
        put(at(FOLDER "/refs/v1"), text);
        check_ref("v1", COMMIT);
    }
    put(at(FOLDER "/refs/v1"), " \n");
    ck_khub_fails(khub__store_ref(commit, &age, &store, "v1", &err), &err, KHUB_E_NOTFOUND, "is empty");
    put(at(FOLDER "/refs/v1"), "main");
    ck_khub_fails(khub__store_ref(commit, &age, &store, "v1", &err), &err, KHUB_E_FORMAT, "holds \"main\"");
    put(at(FOLDER "/refs/v1"), COMMIT "\n" COMMIT);
    ck_khub_fails(khub__store_ref(commit, &age, &store, "v1", &err), &err, KHUB_E_FORMAT,
                  "a commit is expected");
    ck_khub_fails(khub__store_ref(commit, &age, &store, "refs", &err), &err, KHUB_E_NOTFOUND, "refs/refs");
    ck_khub_fails(khub__store_ref(commit, &age, &store, "../v1", &err), &err, KHUB_E_INVAL, "isn't a name");
    ck_khub_fails(khub__store_set_ref(&store, "a/../../b", COMMIT, &err), &err, KHUB_E_INVAL, "isn't a name");
    ck_khub_fails(khub__store_set_ref(&store, "v1", "main", &err), &err, KHUB_E_INVAL, "isn't a commit");
    ck_assert_int_eq(mkdir(at(FOLDER "/refs/dir"), 0777), 0);
    ck_khub_fails(khub__store_ref(commit, &age, &store, "dir", &err), &err, KHUB_E_FORMAT, "isn't a file");
    cache_end();
}
END_TEST

START_TEST(a_ref_has_an_age)
{
    cache_begin();
    khub_error err = {0};
    char commit[KHUB__COMMIT_MAX + 1];
    int64_t age;
    ck_khub_ok(khub__store_set_ref(&store, "v1", COMMIT, &err), &err);
    const time_t year = 365 * 24 * 3600;
    struct timespec times[2] = {{time(NULL) - year, 0}, {time(NULL) - year, 0}};
    ck_assert_int_eq(utimensat(AT_FDCWD, at(FOLDER "/refs/v1"), times, 0), 0);
    ck_khub_ok(khub__store_ref(commit, &age, &store, "v1", &err), &err);
    ck_assert_int_ge(age, year);
    ck_assert_int_le(age, year + 60);
    times[0].tv_sec = times[1].tv_sec = time(NULL) + year; /* the clock was a year off */
    ck_assert_int_eq(utimensat(AT_FDCWD, at(FOLDER "/refs/v1"), times, 0), 0);
    ck_khub_ok(khub__store_ref(commit, &age, &store, "v1", &err), &err);
    ck_assert(age == INT64_MAX);
    struct stat before, after;
    ck_assert_int_eq(stat(at(FOLDER "/refs/v1"), &before), 0);
    ck_khub_ok(khub__store_set_ref(&store, "v1", COMMIT, &err), &err); /* confirmed, not written */
    ck_assert_int_eq(stat(at(FOLDER "/refs/v1"), &after), 0);
    ck_assert(before.st_ino == after.st_ino);
    ck_khub_ok(khub__store_ref(commit, &age, &store, "v1", &err), &err);
    ck_assert_int_le(age, 60);
    cache_end();
}
END_TEST

START_TEST(refs_are_listed)
{
    cache_begin();
    khub_error err = {0};
    char **refs;
    size_t count;
    ck_khub_ok(khub__store_refs(&refs, &count, &store, &err), &err);
    ck_assert_uint_eq(count, 0);
    khub_free(refs);
    static const char *const names[] = {"v1", "main", "refs/pr/1", "v10"};
    for (size_t i = 0; i < 4; i++)
        ck_khub_ok(khub__store_set_ref(&store, names[i], COMMIT, &err), &err);
    put(at(FOLDER "/refs/v1.0a1b2c3d.tmp"), "");
    ck_assert_int_eq(symlink(".", at(FOLDER "/refs/loop")), 0);
    ck_khub_ok(khub__store_refs(&refs, &count, &store, &err), &err);
    ck_assert_uint_ge(count, 4); /* what the loop shows again is harmless */
    ck_assert_str_eq(refs[count - 1], "v10");
    ck_assert_str_eq(refs[count - 2], "v1");
    ck_assert_int_eq(unlink(at(FOLDER "/refs/loop")), 0);
    khub_free(refs);
    ck_khub_ok(khub__store_refs(&refs, &count, &store, &err), &err);
    ck_assert_uint_eq(count, 4);
    ck_assert_str_eq(refs[0], "main");
    ck_assert_str_eq(refs[1], "refs/pr/1");
    khub_free(refs);
    cache_end();
}
END_TEST

static void add_file(khub__tree *tree, const char *path, uint64_t size, const char *blob_id,
                     const char *sha256, const char *xet)
{
    khub_error err = {0};
    khub__tree_file file = {.path = path, .size = size, .xet_hash = xet};
    strcpy(file.blob_id, blob_id);
    strcpy(file.sha256, sha256);
    ck_khub_ok(khub__tree_add(tree, &file, &err), &err);
}

/* Written by Python's json.dump(…, indent=1) for these files. */
static const char tree_text[] = "{\n"
                                " \"format_version\": 1,\n"
                                " \"files\": {\n"
                                "  \"README.md\": {\n"
                                "   \"size\": 6,\n"
                                "   \"blob_id\": \"" HELLO_GIT "\"\n"
                                "  },\n"
                                "  \"build/\\u00e4 \\\"x\\\" \\ud83d\\ude00.so\": {\n"
                                "   \"size\": 6,\n"
                                "   \"blob_id\": \"" COMMIT "\",\n"
                                "   \"lfs_sha256\": \"" HELLO_SHA256 "\",\n"
                                "   \"lfs_size\": 6,\n"
                                "   \"xet_hash\": \"" HELLO_SHA256 "\"\n"
                                "  }\n"
                                " }\n"
                                "}";

START_TEST(lists_of_files_are_written_as_the_peer_writes_them)
{
    cache_begin();
    khub_error err = {0};
    khub__tree tree = {0}, back;
    ck_khub_fails(khub__store_tree(&back, &store, COMMIT, &err), &err, KHUB_E_NOTFOUND, "isn't there");
    add_file(&tree, "build/\xC3\xA4 \"x\" \xF0\x9F\x98\x80.so", 6, COMMIT, HELLO_SHA256, HELLO_SHA256);
    add_file(&tree, "README.md", 6, HELLO_GIT, "", "not a hash: the peer would refuse the list for it");
    ck_khub_ok(khub__tree_close(&tree, &err), &err);
    ck_khub_ok(khub__store_set_tree(&store, COMMIT, &tree, &err), &err);
    ck_assert_str_eq(get(at(FOLDER "/trees/" COMMIT ".json")), tree_text);
    ck_khub_ok(khub__store_tree(&back, &store, COMMIT, &err), &err);
    ck_assert_uint_eq(back.count, 2);
    ck_assert_str_eq(back.files[1].path, tree.files[1].path);
    ck_assert_str_eq(khub__tree_etag(&back.files[0]), HELLO_GIT);
    ck_assert_str_eq(khub__tree_etag(&back.files[1]), HELLO_SHA256);
    ck_assert_str_eq(back.files[1].xet_hash, HELLO_SHA256);
    ck_assert_uint_eq(back.files[1].size, 6);
    khub__tree_free(&back);
    khub__tree_free(&tree);
    ck_khub_ok(khub__store_set_tree(&store, COMMIT, &tree, &err), &err); /* no files */
    ck_assert_str_eq(get(at(FOLDER "/trees/" COMMIT ".json")),
                     "{\n \"format_version\": 1,\n \"files\": {}\n}");
    cache_end();
}
END_TEST

START_TEST(lists_that_cannot_be_used_count_as_absent)
{
    static const char *const bad[] = {
        "",
        "[]",
        "{}",
        "{\"format_version\": 2, \"files\": {}}",
        "{\"format_version\": 1}",
        "{\"format_version\": 1, \"files\": {\"a\": 1}}",
        "{\"format_version\": 1, \"files\": {\"a\": {\"blob_id\": \"\"}}}",
        "{\"format_version\": 1, \"files\": {\"a\": {\"size\": -1, \"blob_id\": \"\"}}}",
        "{\"format_version\": 1, \"files\": {\"../a\": {\"size\": 1, \"blob_id\": \"\"}}}",
        "{\"format_version\": 1, \"files\": {\"a\": {\"size\": 1, \"lfs_sha256\": \"x\"}}}",
    };
    cache_begin();
    khub_error err = {0};
    khub__tree tree = {0}, back;
    ck_khub_ok(khub__store_set_tree(&store, COMMIT, &tree, &err), &err);
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        put(at(FOLDER "/trees/" COMMIT ".json"), bad[i]);
        ck_khub_fails(khub__store_tree(&back, &store, COMMIT, &err), &err, KHUB_E_NOTFOUND, COMMIT ".json");
    }
    cache_end();
}
END_TEST

START_TEST(absence_is_remembered)
{
    cache_begin();
    khub_error err = {0};
    ck_assert(!khub__store_is_absent(&store, COMMIT, "a/b.json"));
    ck_khub_ok(khub__store_set_absent(&store, COMMIT, "a/b.json", &err), &err);
    ck_khub_ok(khub__store_set_absent(&store, COMMIT, "a/b.json", &err), &err);
    ck_assert(khub__store_is_absent(&store, COMMIT, "a/b.json"));
    ck_assert(!khub__store_is_absent(&store, COMMIT, "a"));
    ck_assert_str_eq(get(at(FOLDER "/.no_exist/" COMMIT "/a/b.json")), "");
    ck_khub_fails(khub__store_set_absent(&store, COMMIT, "a/../../b", &err), &err, KHUB_E_INVAL,
                  "isn't a path");
    cache_end();
}
END_TEST

START_TEST(links_are_relative_and_stay)
{
    cache_begin();
    khub_error err = {0};
    ck_khub_ok(bring(COMMIT, "a/b/c.txt", HELLO_GIT, HELLO, &err), &err);
    ck_khub_ok(bring(COMMIT, "c.txt", HELLO_GIT, HELLO, &err), &err);
    ck_assert_str_eq(link_text(at(FOLDER "/snapshots/" COMMIT "/c.txt")), "../../blobs/" HELLO_GIT);
    ck_assert_str_eq(link_text(at(FOLDER "/snapshots/" COMMIT "/a/b/c.txt")), "../../../../blobs/" HELLO_GIT);
    ck_assert(khub__store_has(&store, COMMIT, "a/b/c.txt", 6));
    ck_assert(khub__store_has(&store, COMMIT, "a/b/c.txt", UINT64_MAX));
    ck_assert(!khub__store_has(&store, COMMIT, "a/b/c.txt", 7));
    ck_assert(!khub__store_has(&store, COMMIT, "a/b", UINT64_MAX));
    ck_assert(!khub__store_has(&store, COMMIT2, "c.txt", 6));
    struct stat before, after;
    ck_assert_int_eq(lstat(at(FOLDER "/snapshots/" COMMIT "/c.txt"), &before), 0);
    ck_khub_ok(khub__store_link(&store, COMMIT, "c.txt", HELLO_GIT, &err), &err);
    ck_assert_int_eq(lstat(at(FOLDER "/snapshots/" COMMIT "/c.txt"), &after), 0);
    ck_assert(before.st_ino == after.st_ino);
    ck_khub_fails(khub__store_link(&store, COMMIT, "d.txt", HELLO_SHA256, &err), &err, KHUB_E_NOTFOUND,
                  "d.txt");
    ck_assert(!exists(at(FOLDER "/snapshots/" COMMIT "/d.txt"))); /* never one that dangles */
    cache_end();
}
END_TEST

START_TEST(a_wrong_link_is_replaced)
{
    cache_begin();
    khub_error err = {0};
    const char *link = FOLDER "/snapshots/" COMMIT "/c.txt";
    static const char *const wrong[] = {"/etc/passwd", ("../../blobs/" COMMIT), "nowhere", "../../../../x"};
    ck_khub_ok(bring(COMMIT, "c.txt", HELLO_GIT, HELLO, &err), &err);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        ck_assert_int_eq(unlink(at("%s", link)), 0);
        ck_assert_int_eq(symlink(wrong[i], at("%s", link)), 0);
        ck_assert(!khub__store_has(&store, COMMIT, "c.txt", UINT64_MAX));
        ck_khub_ok(khub__store_link(&store, COMMIT, "c.txt", HELLO_GIT, &err), &err);
        ck_assert_str_eq(link_text(at("%s", link)), "../../blobs/" HELLO_GIT);
    }
    ck_assert_int_eq(entries(at(FOLDER), ".tmp"), 0);
    cache_end();
}
END_TEST

START_TEST(links_that_lead_out_are_not_used)
{
    cache_begin();
    khub_error err = {0};
    char commit[KHUB__COMMIT_MAX + 1], outside[] = "/tmp/khub-outside-XXXXXX", file[64];
    int64_t age;
    ck_assert_ptr_nonnull(mkdtemp(outside));
    snprintf(file, sizeof(file), "%s/f", outside);
    put(file, COMMIT);
    ck_khub_ok(khub__store_set_ref(&store, "v1", COMMIT, &err), &err);
    ck_assert_int_eq(symlink(file, at(FOLDER "/refs/v2")), 0);
    ck_khub_fails(khub__store_ref(commit, &age, &store, "v2", &err), &err, KHUB_E_UNTRUSTED,
                  "out of the cache");
    ck_khub_ok(khub__store_set_ref(&store, "v2", COMMIT2, &err), &err);
    ck_assert_str_eq(get(file), COMMIT); /* the link was replaced, not written through */
    check_ref("v2", COMMIT2);
    ck_assert_int_eq(symlink("v1", at(FOLDER "/refs/v3")), 0);
    check_ref("v3", COMMIT); /* inside */

    ck_assert_int_eq(mkdir(at(FOLDER "/blobs"), 0777), 0);
    ck_assert_int_eq(symlink(file, at(FOLDER "/blobs/" HELLO_GIT)), 0);
    ck_assert_int_eq(symlink("../../blobs/" HELLO_GIT, at(FOLDER "/snapshots/" COMMIT "/c.txt")), 0);
    ck_assert(!khub__store_has(&store, COMMIT, "c.txt", UINT64_MAX));
    ck_khub_ok(bring(COMMIT, "c.txt", HELLO_GIT, HELLO, &err), &err);
    ck_assert(khub__store_has(&store, COMMIT, "c.txt", 6));
    ck_assert_str_eq(get(file), COMMIT);

    ck_assert_int_eq(symlink(outside, at(FOLDER "/snapshots/" COMMIT "/sub")), 0);
    ck_khub_fails(bring(COMMIT, "sub/c.txt", HELLO_GIT, HELLO, &err), &err, KHUB_E_IO,
                  "a link or a file stands");
    ck_assert_int_eq(entries(outside, ""), 1);
    ck_assert_int_eq(unlink(file), 0);
    ck_assert_int_eq(rmdir(outside), 0);
    cache_end();
}
END_TEST

START_TEST(copies_where_links_are_not_wanted)
{
    cache_begin();
    khub_error err = {0};
    setenv("HF_HUB_DISABLE_SYMLINKS", "yes", 1);
    const char *copy = FOLDER "/snapshots/" COMMIT "/a/c.txt";
    ck_khub_ok(bring(COMMIT, "a/c.txt", HELLO_GIT, HELLO, &err), &err);
    struct stat st;
    ck_assert_int_eq(lstat(at("%s", copy), &st), 0);
    ck_assert(S_ISREG(st.st_mode));
    ck_assert_str_eq(get(at("%s", copy)), HELLO);
    ck_assert(khub__store_has(&store, COMMIT, "a/c.txt", 6));
    put(at("%s", copy), "cut");
    ck_khub_ok(bring(COMMIT, "a/c.txt", HELLO_GIT, HELLO, &err), &err);
    ck_assert_str_eq(get(at("%s", copy)), HELLO);
    ck_assert_int_eq(entries(at(FOLDER "/blobs"), ""), 0); /* moved, as the peer does it */
    unsetenv("HF_HUB_DISABLE_SYMLINKS");
    ck_khub_ok(bring(COMMIT2, "c.txt", HELLO_GIT, HELLO, &err), &err);
    setenv("HF_HUB_DISABLE_SYMLINKS", "yes", 1);
    ck_khub_ok(bring(COMMIT2, "d.txt", HELLO_GIT, HELLO, &err), &err); /* the blob is another's: copied */
    ck_assert_str_eq(get(at(FOLDER "/snapshots/" COMMIT2 "/c.txt")), HELLO);
    ck_assert_int_eq(lstat(at(FOLDER "/snapshots/" COMMIT2 "/d.txt"), &st), 0);
    ck_assert(S_ISREG(st.st_mode));
    ck_assert_int_eq(entries(at(FOLDER), ".tmp"), 0);
    cache_end();
}
END_TEST

START_TEST(snapshots_are_listed_newest_first)
{
    cache_begin();
    khub_error err = {0};
    char **commits;
    size_t count;
    ck_khub_ok(khub__store_commits(&commits, &count, &store, &err), &err);
    ck_assert_uint_eq(count, 0);
    khub_free(commits);
    ck_khub_ok(bring(COMMIT, "a", HELLO_GIT, HELLO, &err), &err);
    ck_khub_ok(bring(COMMIT2, "a", HELLO_GIT, HELLO, &err), &err);
    ck_assert_int_eq(mkdir(at(FOLDER "/snapshots/main"), 0777), 0); /* not a commit */
    const struct timespec old[2] = {{1000, 0}, {1000, 0}};
    ck_assert_int_eq(utimensat(AT_FDCWD, at(FOLDER "/snapshots/" COMMIT), old, 0), 0);
    ck_khub_ok(khub__store_commits(&commits, &count, &store, &err), &err);
    ck_assert_uint_eq(count, 2);
    ck_assert_str_eq(commits[0], COMMIT2);
    ck_assert_str_eq(commits[1], COMMIT);
    khub_free(commits);
    cache_end();
}
END_TEST

UNIT("cache.store", the_directory_is_the_first_that_is_set, the_directory_of_models_is_another,
     a_relative_directory_becomes_absolute, folders_are_named_as_the_peers_name_them,
     refs_are_written_and_read, refs_of_other_hands_are_read, a_ref_has_an_age, refs_are_listed,
     lists_of_files_are_written_as_the_peer_writes_them, lists_that_cannot_be_used_count_as_absent,
     absence_is_remembered, links_are_relative_and_stay, a_wrong_link_is_replaced,
     links_that_lead_out_are_not_used, copies_where_links_are_not_wanted, snapshots_are_listed_newest_first)
