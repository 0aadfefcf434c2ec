/* khub_download, khub_choose_in and khub_trusted on a cache, without a network. Against a Hub:
 * tests/hub. */
#include "cache.h"
#include "failing_memory.h"

#include <khub/khub.h>

#define BUILD  "build/tvm-ffi01-cpu-x86_64-linux/"
#define BUILD2 "build/tvm-ffi01-cu128-x86_64-linux/"

static void add_file(khub__tree *tree, const char *path)
{
    khub_error err = {0};
    khub__tree_file file = {.path = path, .size = 6, .xet_hash = ""};
    strcpy(file.blob_id, HELLO_GIT);
    ck_khub_ok(khub__tree_add(tree, &file, &err), &err);
}

static khub_hub_options hub;

/* Version 1 with two builds, of which one is there. */
static void begin_download(void)
{
    static const char *const there[] = {"README.md", BUILD "metadata.json", BUILD "a.so"};
    khub_error err = {0};
    khub__tree tree = {0};
    cache_begin();
    for (size_t i = 0; i < 3; i++) {
        add_file(&tree, there[i]);
        ck_khub_ok(bring(COMMIT, there[i], HELLO_GIT, HELLO, &err), &err);
    }
    add_file(&tree, BUILD2 "a.so");
    ck_khub_ok(khub__tree_close(&tree, &err), &err);
    ck_khub_ok(khub__store_set_tree(&store, COMMIT, &tree, &err), &err);
    ck_khub_ok(khub__store_set_ref(&store, "v1", COMMIT, &err), &err);
    khub__tree_free(&tree);
    KHUB_INIT(&hub);
    hub.cache_dir = cache_root;
    hub.offline = 1;
    unsetenv("KERNELS_CACHE");
    unsetenv("LOCAL_KERNELS");
}

static int download(khub_snapshot **out, const char *pattern, khub_error *err)
{
    const char *patterns[] = {pattern, NULL};
    khub_download_options options;
    KHUB_INIT(&options);
    options.hub = &hub;
    if (pattern) options.patterns = patterns;
    return khub_download(out, "org/name@1", &options, err);
}

START_TEST(what_is_there_is_enough)
{
    static const char *const patterns[] = {"*.md", "build/*cpu*", BUILD, "*.json"};
    begin_download();
    khub_error err = {0};
    khub_snapshot *snapshot;
    for (size_t i = 0; i < sizeof(patterns) / sizeof(*patterns); i++) {
        ck_khub_ok(download(&snapshot, patterns[i], &err), &err);
        ck_assert_str_eq(khub_snapshot_repository(snapshot), "org/name");
        ck_assert_str_eq(khub_snapshot_commit(snapshot), COMMIT);
        ck_assert_str_eq(khub_snapshot_path(snapshot), at(FOLDER "/snapshots/" COMMIT));
        khub_snapshot_free(snapshot);
    }
    cache_end();
}
END_TEST

START_TEST(what_is_missing_is_said)
{
    begin_download();
    khub_error err = {0};
    khub_snapshot *snapshot;
    ck_khub_fails(download(&snapshot, NULL, &err), &err, KHUB_E_OFFLINE,
                  "org/name@v1: 1 of its files isn't in the cache (" BUILD2 "a.so, for one)");
    ck_assert_ptr_null(snapshot);
    ck_khub_fails(download(&snapshot, "nothing*", &err), &err, KHUB_E_NOTFOUND,
                  "org/name: none of its 4 files matches the pattern");
    ck_assert_int_eq(truncate(at(BLOBS "/" HELLO_GIT), 5), 0);
    ck_khub_fails(download(&snapshot, BUILD, &err), &err, KHUB_E_OFFLINE, "2 of its files aren't");
    cache_end();
}
END_TEST

static khub_platform *machine(void)
{
    static const char json[] =
        "{\"os\":\"linux\",\"arch\":\"x86_64\",\"backend\":\"cpu\",\"tvm_ffi\":\"0.1\"}";
    khub_error err = {0};
    khub_platform *platform;
    ck_khub_ok(khub_platform_parse(&platform, json, sizeof(json) - 1, "json", &err), &err);
    return platform;
}

START_TEST(a_choice_says_what_it_is_of)
{
    begin_download();
    khub_error err = {0};
    khub_platform *platform = machine();
    khub_choice *choice;
    ck_khub_ok(khub_choose_in(&choice, "org/name@v1", platform, &hub, &err), &err);
    ck_assert_uint_eq(khub_choice_count(choice), 2);
    ck_assert_str_eq(khub_choice_repository(choice), "org/name");
    ck_assert_str_eq(khub_choice_commit(choice), COMMIT);
    khub_choice_free(choice);
    khub_platform_free(platform);
    cache_end();
}
END_TEST

/* ---- without memory ---- */

static int everything(void *platform, khub_error *err)
{
    khub_snapshot *snapshot;
    khub_choice *choice = NULL;
    int rc = download(&snapshot, BUILD, err);
    khub_snapshot_free(snapshot);
    if (rc == KHUB_OK) rc = khub_choose_in(&choice, "org/name@v1", platform, &hub, err);
    ck_assert_int_eq(choice != NULL, rc == KHUB_OK);
    khub_choice_free(choice);
    return rc == KHUB_OK ? khub_trusted("org/name", &hub, err) : rc;
}

static int refusals(void *unused, khub_error *err)
{
    khub_snapshot *snapshot;
    (void)unused;
    int rc = download(&snapshot, NULL, err);
    if (rc != KHUB_E_OFFLINE) return rc;
    khub_error_clear(err);
    rc = download(&snapshot, "nothing*", err);
    if (rc != KHUB_E_NOTFOUND) return rc;
    khub_error_clear(err);
    return KHUB_OK;
}

START_TEST(without_memory)
{
    fm_install_own();
    begin_download();
    khub_platform *platform = machine();
    fm_fail_each_own(everything, platform);
    fm_fail_each_own(refusals, NULL);
    khub_platform_free(platform);
    cache_end();
}
END_TEST

UNIT("download", what_is_there_is_enough, what_is_missing_is_said, a_choice_says_what_it_is_of,
     without_memory)
