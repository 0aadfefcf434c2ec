/* khub_download, khub_choose_in and khub_trusted on a cache, without a network. Against a Hub:
 * tests/hub. */
#include "cache.h"
#include "failing_memory.h"

#include "trust/publisher.h"
#include "trust/trust.h"

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
    unsetenv("KHUB_TRUST_FILE");
    setenv("XDG_CONFIG_HOME", at("config"), 1);
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

/* ---- whose it is ---- */

static const char yes[] = "{\"publisher\": \"org\", \"trusted\": true, \"asked\": 1000000000}";

static khub_policy *strict(const char *publisher)
{
    khub_error err = {0};
    khub_policy *policy;
    ck_khub_ok(khub_policy_new(&policy, &err), &err);
    ck_khub_ok(khub_policy_set_offline(policy, 1, &err), &err);
    if (publisher) ck_khub_ok(khub_policy_add_publisher(policy, publisher, &err), &err);
    return policy;
}

/* The publisher of `repo`, as the cache and the options know it; the decision is handed out. */
static int judge(khub_trust **trust, const khub__repo *repo, khub_error *err)
{
    khub__hub_settings settings;
    khub__client *client = NULL;
    khub__rules rules = {.given = hub.policy, .named = hub.trust};
    int rc = khub__trust_new(trust, KHUB_TRUST_DEFAULT, err);
    if (rc == KHUB_OK) rc = khub__hub_settings_read(&settings, &hub, err);
    if (rc == KHUB_OK) rc = khub__client_open(&client, &settings, NULL, NULL, err);
    if (rc == KHUB_OK) rc = khub__publisher_check(*trust, &store, repo, client, &rules, 1, err);
    if (rc == KHUB_OK) rc = khub__trust_end(*trust, err);
    khub__client_close(client);
    khub__rules_close(&rules);
    return rc;
}

static void judged(int status, khub_trust_decision decision, const char *words)
{
    khub_error err = {0};
    khub_trust *trust;
    int rc = judge(&trust, &cache_repo, &err);
    ck_assert_msg(rc == status, "%s: %s", khub_status_name(rc), err.message);
    ck_assert_str_eq(khub_trust_at(trust, 0)->about, "publisher");
    ck_assert_int_eq(khub_trust_at(trust, 0)->decision, decision);
    ck_assert_msg(strstr(khub_trust_at(trust, 0)->words, words) != NULL, "%s",
                  khub_trust_at(trust, 0)->words);
    ck_assert_ptr_null(khub_trust_at(trust, 1));
    if (status != KHUB_OK) ck_assert_str_eq(err.message, khub_trust_at(trust, 0)->words);
    khub_trust_free(trust);
}

START_TEST(whose_it_is_offline)
{
    static const char *const named[] = {"other", "org", NULL};
    begin_download();
    khub_policy *plain = strict(NULL), *vouching = strict("org/name");
    judged(KHUB_OK, KHUB_TRUST_NOTED, "org/name: offline, and nothing here says whether org is a trusted");
    hub.policy = plain;
    judged(KHUB_E_UNTRUSTED, KHUB_TRUST_REFUSED, "which the policy refuses; nothing was loaded");
    hub.policy = vouching;
    judged(KHUB_OK, KHUB_TRUST_ACCEPTED, "org/name: the policy vouches for it");
    hub.policy = plain;
    hub.trust = named;
    judged(KHUB_OK, KHUB_TRUST_ACCEPTED, "org/name: the caller vouches for it");
    hub.trust = NULL;
    put(at(FOLDER "/publisher.json"), yes);
    judged(KHUB_OK, KHUB_TRUST_ACCEPTED, "org/name: offline; on 2001-09-09 the Hub called org a trusted");
    ck_assert_int_eq(chmod(at(FOLDER "/publisher.json"), 0666), 0);
    judged(KHUB_E_UNTRUSTED, KHUB_TRUST_REFUSED, "nothing here says");
    ck_assert_int_eq(chmod(at(FOLDER "/publisher.json"), 0644), 0);
    put(at(FOLDER "/publisher.json"), "{\"publisher\": \"org\", \"trusted\": false, \"asked\": 1}");
    hub.policy = NULL;
    judged(KHUB_E_UNTRUSTED, KHUB_TRUST_REFUSED, "the Hub doesn't call org a trusted publisher");
    khub_policy_free(plain);
    khub_policy_free(vouching);
    cache_end();
}
END_TEST

START_TEST(where_a_list_of_files_came_from)
{
    static const char *const bad[] = {"", "\n", "new", "new/name@v1\n", "a/b/c", "../x"};
    const khub__repo there = {KHUB__REPO_KERNEL, "new/name"};
    khub__repo found;
    khub_error err = {0};
    begin_download();
    ck_khub_fails(khub__store_moved(&found, &store, COMMIT, &err), &err, KHUB_E_NOTFOUND, "moved/" COMMIT);
    ck_khub_ok(khub__store_set_moved(&store, COMMIT, &there, &err), &err);
    ck_assert_str_eq(get(at(FOLDER "/moved/" COMMIT)), "new/name\n");
    ck_khub_ok(khub__store_moved(&found, &store, COMMIT, &err), &err);
    ck_assert_str_eq(found.id, "new/name");
    ck_khub_fails(khub__store_moved(&found, &store, "x", &err), &err, KHUB_E_INVAL, "isn't a commit");
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        put(at(FOLDER "/moved/" COMMIT), bad[i]);
        ck_khub_fails(khub__store_moved(&found, &store, COMMIT, &err), &err, KHUB_E_FORMAT,
                      "/moved/" COMMIT ": holds no repository's name");
    }
    cache_end();
}
END_TEST

/* ---- without memory ---- */

static int judge_known(void *user, khub_error *err)
{
    khub_trust *trust;
    int rc = judge(&trust, user, err);
    khub_trust_free(trust);
    return rc;
}

static int recall(void *user, khub_error *err)
{
    khub__repo there;
    int rc = khub__store_set_moved(&store, COMMIT, user, err);
    return rc == KHUB_OK ? khub__store_moved(&there, &store, COMMIT, err) : rc;
}

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
    fm_fail_each_own(recall, (void *)(uintptr_t)&cache_repo);
    fm_fail_each_own(judge_known, (void *)(uintptr_t)&cache_repo);
    put(at(FOLDER "/publisher.json"), yes);
    fm_fail_each_own(judge_known, (void *)(uintptr_t)&cache_repo);
    khub_platform_free(platform);
    cache_end();
}
END_TEST

UNIT("download", what_is_there_is_enough, what_is_missing_is_said, a_choice_says_what_it_is_of,
     whose_it_is_offline, where_a_list_of_files_came_from, without_memory)
