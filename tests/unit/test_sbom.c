/* khub_sbom: what it refuses, and that it finds no memory in peace. What it says: tests/hub/test_sbom.py. */
#include "failing_memory.h"
#include "root.h"

#include <khub/sbom.h>

#include <unistd.h>

#define COMMIT "0123456789012345678901234567890123456789"

static char build[200];
static khub_sbom_options options;

#define METADATA(more)                                                                                       \
    "{\"name\":\"relu\",\"id\":\"_r\",\"version\":1,\"license\":\"MIT\",\"backend\":{\"type\":\"cuda\","     \
    "\"archs\":[\"9.0\"]},"                                                                                  \
    "\"python-depends\":[\"x\"]" more "}"

static void begin(const char *metadata)
{
    make_root();
    snprintf(build, sizeof(build), "%s/build/torch-cuda", root);
    put("/build/torch-cuda/metadata.json", metadata);
    put("/build/torch-cuda/a.so", "abc");
    put("/build/torch-cuda/__pycache__/x", "");
    KHUB_INIT(&options);
    options.repository = "org/relu";
    options.commit = COMMIT;
}

static void fails(int status, const char *words)
{
    khub_error err = {0};
    char *json = build;
    ck_khub_fails(khub_sbom(&json, build, &options, &err), &err, status, words);
    ck_assert_ptr_null(json);
}

START_TEST(tells_by_the_directory)
{
    khub_error err = {0};
    char *json;
    begin(METADATA(""));
    ck_khub_ok(khub_sbom(&json, build, &options, &err), &err);
    ck_assert_ptr_nonnull(strstr(json, "\"pkg:huggingface/org/relu@" COMMIT "#build/torch-cuda\""));
    ck_assert_ptr_nonnull(
        strstr(json, "\"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad\"")); /* "abc" */
    ck_assert_ptr_null(strstr(json, "__pycache__"));
    khub_free(json);
    remove_root();
}
END_TEST

/* Bytes that steer a terminal aren't in it, whoever wrote them. */
START_TEST(a_strangers_words)
{
    khub_error err = {0};
    char *json;
    begin(METADATA(",\"source\":\"\\u001b[2J\",\"upstream\":\"https://x/\\u001b\""));
    put("/build/torch-cuda/\x1b]0;x", "");
    ck_khub_ok(khub_sbom(&json, build, NULL, &err), &err);
    ck_assert_ptr_null(strchr(json, 27));
    ck_assert_ptr_nonnull(strstr(json, "\"\\u001B]0;x\""));
    khub_free(json);
    remove_root();
}
END_TEST

START_TEST(refuses)
{
    char path[300];
    begin(METADATA(",\"digest\":{\"algorithm\":\"md5\",\"files\":{}}"));
    fails(KHUB_E_FORMAT, "md5");
    put("/build/torch-cuda/metadata.json", "{}");
    fails(KHUB_E_FORMAT, "required and missing");
    put("/build/torch-cuda/metadata.json", METADATA(""));
    put("/build/torch-cuda/\xff", "");
    fails(KHUB_E_FORMAT, "the name isn't UTF-8");
    snprintf(path, sizeof(path), "%s/\xff", build);
    ck_assert_int_eq(unlink(path), 0);
    snprintf(path, sizeof(path), "%s/directory", build);
    ck_assert_int_eq(symlink("__pycache__", path), 0);
    fails(KHUB_E_FORMAT, "/directory: is a link to a directory");
    options.commit = "main";
    fails(KHUB_E_INVAL, "khub_sbom_options.commit is \"main\"");
    options.commit = NULL;
    static const char *const names[] = {"org", "org/", "/x", "org/x/y", "org/x y", "org/x?"};
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        options.repository = names[i];
        fails(KHUB_E_INVAL, "khub_sbom_options.repository is \"");
    }
    options.repository = NULL;
    strcpy(build, "/nowhere/at/all");
    fails(KHUB_E_NOTFOUND, "/nowhere/at/all");
    khub_error err = {0};
    ck_khub_fails(khub_sbom(NULL, build, NULL, &err), &err, KHUB_E_INVAL, "khub_sbom");
    remove_root();
}
END_TEST

static int tell(void *user, khub_error *err)
{
    char **whole = user, *json;
    int rc = khub_sbom(&json, build, &options, err);
    ck_assert_int_eq(rc == KHUB_OK, json != NULL);
    if (rc == KHUB_OK && *whole) ck_assert_str_eq(json, *whole);
    if (rc == KHUB_OK && !*whole) *whole = strdup(json); /* the C library's: not counted */
    khub_free(json);
    return rc;
}

#define RICH                                                                                                 \
    METADATA(",\"digest\":{\"algorithm\":\"sha512\",\"files\":{\"b\":\"\"}},\"kernel-depends\":[{\"repo-"    \
             "id\":\"a/b\","                                                                                 \
             "\"version\":1}],\"source\":\"git@x:y\",\"provenance\":{\"kernel\":{\"commit\":\"12\"}}")

START_TEST(failing_memory)
{
    char *whole = NULL;
    begin(RICH);
    fm_fail_each_own(tell, &whole);
    free(whole);
    remove_root();
}
END_TEST

static long json_seen, json_fails_at, json_live;

static void *json_allocate(size_t bytes)
{
    if (++json_seen == json_fails_at) return NULL;
    json_live++;
    return malloc(bytes);
}

static void json_release(void *p)
{
    if (p) json_live--;
    free(p);
}

/* Each allocation of jansson's while the document is made. Those of its reader, which come first, are left
 * out: it (2.14) doesn't survive them. */
START_TEST(failing_memory_of_the_document)
{
    khub_error err = {0};
    char *json = NULL;
    begin(RICH);
    json_set_alloc_funcs(json_allocate, json_release);
    json_decref(json_loads(RICH, JSON_REJECT_DUPLICATES, NULL));
    long reader = json_seen, all = 0;
    json_seen = 0;
    ck_khub_ok(khub_sbom(&json, build, &options, &err), &err);
    khub_free(json);
    all = json_seen;
    ck_assert_int_gt(all, 2 * reader);
    ck_assert_int_eq(json_live, 0);
    for (json_fails_at = reader + 1; json_fails_at <= all; json_fails_at++) {
        json_seen = 0;
        ck_khub_fails(khub_sbom(&json, build, &options, &err), &err, KHUB_E_NOMEM, "describing a build");
        ck_assert_ptr_null(json);
        ck_assert_int_eq(json_live, 0);
    }
    json_set_alloc_funcs(malloc, free);
    remove_root();
}
END_TEST

/* With a signature that doesn't hold, and a policy that is read from nowhere. */
START_TEST(failing_memory_with_a_signature)
{
    char *whole = NULL;
    khub_error err = {0};
    khub_policy *policy;
    begin(METADATA(""));
    put("/build/torch-cuda/metadata.json.sigstore", "{}");
    ck_khub_ok(khub_policy_new(&policy, &err), &err);
    options.policy = policy;
    fm_install_own();
    khub_policy_free(policy);
    ck_khub_ok(khub_policy_new(&policy, &err), &err);
    options.policy = policy;
    fm_fail_each_own(tell, &whole);
    ck_assert_ptr_nonnull(strstr(whole, "\"khub:signature:words\""));
    khub_policy_free(policy);
    free(whole);
    remove_root();
}
END_TEST

UNIT("sbom", tells_by_the_directory, a_strangers_words, refuses, failing_memory,
     failing_memory_of_the_document, failing_memory_with_a_signature)
