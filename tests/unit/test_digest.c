/* Digests of a build: which files one covers, and what it doesn't hold for. Expected hashes: sha256sum,
 * sha512sum and base64. tests/oracle/test_digest.py asks the Python package about the same rules. */
#include "failing_memory.h"
#include "root.h"

#include "trust/digest.h"
#include "trust/files.h"

#include <unistd.h>

#define ABC_256 "ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0="
#define ABC_512 "3a81oZNherrMQXNJriBBMRLm+k6JqX6iCp7u5ktV05ohkpkqJ0/BqDa6PCOj/uu9RU1EI2Q86A4qmslPpUyknw=="
#define NOTHING "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="

static char build[200];

static void put_build(void)
{
    make_root();
    snprintf(build, sizeof(build), "%s/build", root);
    put("/build/metadata.json", "{}");
    put("/build/metadata.json.sigstore", "{}");
    put("/build/a.so", "abc");
    put("/build/empty", "");
    put("/build/sub/metadata.json", "abc");
    put("/build/sub/x.pyc", "abc");
    put("/build/sub/__pycache__/y", "abc");
}

static void link_to(const char *target, const char *name)
{
    char path[300];
    snprintf(path, sizeof(path), "%s/%s", build, name);
    ck_assert_int_eq(symlink(target, path), 0);
}

START_TEST(which_files_count)
{
    static const char *const in[] = {"a.so",    ".pyc",           "x.PYC",           "sub/metadata.json",
                                     "x.pyc/y", "__pycache__.py", "my__pycache__/x", "metadata.json2",
                                     "sub/.pyc"};
    static const char *const out[] = {
        "metadata.json",    "metadata.json.sigstore", "x.pyc", "a/b.pyc", "__pycache__",
        "__pycache__/x.so", "a/__pycache__/b/c"};
    for (size_t i = 0; i < sizeof(in) / sizeof(*in); i++)
        ck_assert_msg(khub__digest_covers(in[i]), "%s", in[i]);
    for (size_t i = 0; i < sizeof(out) / sizeof(*out); i++)
        ck_assert_msg(!khub__digest_covers(out[i]), "%s", out[i]);
}
END_TEST

/* The digest as JSON text, sorted as it is. */
static char *made(khub__hash_kind kind, const char *also)
{
    khub_error err = {0};
    json_t *digest;
    ck_khub_ok(khub__digest_make(&digest, kind, build, also, &err), &err);
    char *text = json_dumps(digest, JSON_COMPACT);
    json_decref(digest);
    return text;
}

START_TEST(made_of_files)
{
    put_build();
    link_to("a.so", "b.so");
    put("/build/sub.txt", "");
    char *text = made(KHUB__HASH_SHA256, NULL);
    ck_assert_str_eq(text, "{\"algorithm\":\"sha256\",\"files\":{\"a.so\":\"" ABC_256 "\",\"b.so\":\"" ABC_256
                           "\",\"empty\":\"" NOTHING "\",\"sub.txt\":\"" NOTHING
                           "\",\"sub/metadata.json\":\"" ABC_256 "\"}}");
    free(text);
    text = made(KHUB__HASH_SHA512, NULL);
    ck_assert_ptr_nonnull(strstr(text, "{\"algorithm\":\"sha512\",\"files\":{\"a.so\":\"" ABC_512 "\","));
    free(text);
    remove_root();
}
END_TEST

/* Words of all violations, one a line. */
static char *violations_of(const char *digest, const char *also)
{
    khub_error err = {0};
    khub__digest_claim claim;
    khub__violations list;
    khub__text text = {0};
    json_t *json = json_loads(digest, 0, NULL);
    ck_khub_ok(khub__digest_read(&claim, json, "m", &err), &err);
    ck_khub_ok(khub__digest_check(&list, &claim, build, also, &err), &err);
    khub__text_add(&text, "");
    for (size_t i = 0; i < list.count; i++) {
        khub__violation_words(&text, &list.items[i]);
        khub__text_add(&text, "\n");
    }
    khub__violations_free(&list);
    json_decref(json);
    return khub__text_take(&text);
}

#define FILES(text) "{\"algorithm\": \"sha256\", \"files\": {" text "}}"
#define GOOD        "\"a.so\": \"" ABC_256 "\", \"empty\": \"" NOTHING "\", \"sub/metadata.json\": \"" ABC_256 "\""

static void check(const char *digest, const char *also, const char *expected)
{
    char *words = violations_of(digest, also);
    ck_assert_str_eq(words, expected);
    khub_free(words);
}

START_TEST(violations)
{
    put_build();
    check(FILES(GOOD), NULL, "");
    check(FILES("\"empty\": \"" NOTHING "\", \"sub/metadata.json\": \"" ABC_256 "\""), NULL,
          "a.so: the digest in metadata.json doesn't have it\n");
    check(FILES(GOOD ", \"../build/a.so\": \"" ABC_256 "\", \"metadata.json\": \"x\", \"sub\": \"x\""), NULL,
          "../build/a.so: is missing, the digest in metadata.json has it\n"
          "metadata.json: is missing, the digest in metadata.json has it\n"
          "sub: is missing, the digest in metadata.json has it\n");
    put("/build/a.so", "");
    check(FILES(GOOD), NULL, "a.so: hashes to " NOTHING ", metadata.json says " ABC_256 "\n");
    put("/build/a.so", "abc");
    /* the same bits in another form are another text, as for the peer */
    check(FILES("\"a.so\": \"ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0\", \"empty\": \"" NOTHING
                "\", \"sub/metadata.json\": \"" ABC_256 "\""),
          NULL,
          "a.so: hashes to " ABC_256 ", metadata.json says ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0\n");
    remove_root();
}
END_TEST

START_TEST(links)
{
    char blobs[300], outside[300], expected[900];
    put_build();
    put("/blobs/1", "abc");
    put("/blobs-of-others/1", "abc");
    snprintf(blobs, sizeof(blobs), "%s/blobs", root);
    link_to("../../blobs/1", "sub/link");
    snprintf(outside, sizeof(outside), "%s/build", root);
    char *real = realpath(root, NULL);
    snprintf(expected, sizeof(expected), "sub/link: is a link that leads out of the build, to %s/blobs/1\n",
             real);
    const char *with = FILES(GOOD ", \"sub/link\": \"" ABC_256 "\"");
    check(with, NULL, expected); /* right content, wrong place: nobody promised that it stays */
    check(with, blobs, "");
    link_to("../blobs-of-others/1", "z");
    snprintf(expected, sizeof(expected),
             "z: is a link that leads out of the build, to %s/blobs-of-others/1\n", real);
    check(FILES(GOOD ", \"sub/link\": \"" ABC_256 "\", \"z\": \"" ABC_256 "\""), blobs, expected);
    free(real);
    remove_root();
}
END_TEST

START_TEST(what_is_no_file)
{
    char path[300];
    put_build();
    link_to("nowhere", "n");
    link_to("round", "round");
    link_to("sub", "directory.pyc");
    snprintf(path, sizeof(path), "%s/pipe", build);
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    char *words = violations_of(FILES(GOOD ", \"n\": \"" NOTHING "\""), NULL);
    ck_assert_ptr_nonnull(strstr(words, "directory.pyc: is a link to a directory ("));
    ck_assert_ptr_nonnull(strstr(words, "n: is a link that leads nowhere\n"));
    ck_assert_ptr_nonnull(strstr(words, "pipe: is a device or pipe, not a file\n"));
    ck_assert_ptr_nonnull(strstr(words, "round: is a link that leads nowhere\n"));
    ck_assert_ptr_null(strstr(words, "missing")); /* "n" is there */
    khub_free(words);
    khub_error err = {0};
    json_t *digest;
    ck_khub_fails(khub__digest_make(&digest, KHUB__HASH_SHA256, build, NULL, &err), &err, KHUB_E_FORMAT,
                  "/build/directory.pyc: is a link to a directory (");
    ck_assert_ptr_null(digest);
    remove_root();
}
END_TEST

START_TEST(names_that_json_cannot_hold)
{
    khub_error err = {0};
    json_t *digest;
    put_build();
    put("/build/\xff", "abc");
    ck_khub_fails(khub__digest_make(&digest, KHUB__HASH_SHA256, build, NULL, &err), &err, KHUB_E_FORMAT,
                  "isn't UTF-8");
    char path[300], again[300];
    snprintf(path, sizeof(path), "%s/\xff", build);
    snprintf(again, sizeof(again), "%s/a\\b", build);
    ck_assert_int_eq(rename(path, again), 0);
    ck_khub_fails(khub__digest_make(&digest, KHUB__HASH_SHA256, build, NULL, &err), &err, KHUB_E_FORMAT,
                  "has a backslash in its name");
    ck_assert_int_eq(rename(again, path), 0);
    check(FILES(GOOD), NULL, "\xff: the digest in metadata.json doesn't have it\n");
    remove_root();
}
END_TEST

START_TEST(no_such_directory)
{
    khub_error err = {0};
    khub__digest_claim claim;
    khub__violations list;
    json_t *digest;
    strcpy(build, "/nowhere/at/all");
    ck_khub_fails(khub__digest_make(&digest, KHUB__HASH_SHA256, build, NULL, &err), &err, KHUB_E_NOTFOUND,
                  "/nowhere/at/all");
    json_t *json = json_loads(FILES(GOOD), 0, NULL);
    ck_khub_ok(khub__digest_read(&claim, json, "m", &err), &err);
    ck_khub_fails(khub__digest_check(&list, &claim, build, NULL, &err), &err, KHUB_E_NOTFOUND,
                  "/nowhere/at/all");
    ck_assert_uint_eq(list.count, 0);
    json_decref(json);
}
END_TEST

START_TEST(hashed_by_the_caller)
{
    khub_error err = {0};
    khub__digest_claim claim;
    khub__violations list;
    khub__hashed files[3] = {{.path = "sub/metadata.json"}, {.path = "metadata.json"}, {.path = "new"}};
    json_t *json = json_loads(FILES(GOOD), 0, NULL);
    ck_khub_ok(khub__digest_read(&claim, json, "m", &err), &err);
    ck_khub_ok(khub__digest_compare(&list, &claim, files, 3, &err), &err);
    ck_assert_uint_eq(list.count, 4);
    static const char *const paths[] = {"a.so", "empty", "new", "sub/metadata.json"};
    static const khub__violation_kind kinds[] = {KHUB__VIOLATION_MISSING, KHUB__VIOLATION_MISSING,
                                                 KHUB__VIOLATION_UNKNOWN, KHUB__VIOLATION_CHANGED};
    for (size_t i = 0; i < 4; i++) {
        ck_assert_str_eq(list.items[i].path, paths[i]);
        ck_assert_int_eq(list.items[i].kind, kinds[i]);
    }
    ck_assert_str_eq(list.items[3].expected, ABC_256);
    ck_assert_str_eq(list.items[3].got, "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=");
    khub__violations_free(&list);
    ck_khub_ok(khub__digest_compare(&list, &claim, NULL, 0, &err), &err);
    ck_assert_uint_eq(list.count, 3);
    khub__violations_free(&list);
    json_decref(json);
}
END_TEST

START_TEST(bad_digests)
{
    static const struct {
        const char *json, *words;
    } bad[] = {
        {"{}", "m: the digest has no \"algorithm\""},
        {"{\"algorithm\": \"sha256\"}", "m: the digest has no \"files\""},
        {"{\"algorithm\": \"sha256\", \"files\": null}", "m: the digest has no \"files\""},
        {"{\"algorithm\": \"SHA256\", \"files\": {}}", "is \"SHA256\"; sha256 and sha512"},
        {"{\"algorithm\": \"md5\", \"files\": {}}", "is \"md5\""},
        {"{\"algorithm\": 5, \"files\": {}}", "m: \"algorithm\" is an integer, a string is expected"},
        {"{\"algorithm\": \"sha256\", \"files\": []}", "m: \"files\" is an array, an object is expected"},
        {"{\"algorithm\": \"sha256\", \"files\": {\"a\": 1}}",
         "has an integer for \"a\", a string is expected"},
        {"{\"algorithm\": \"sha256\", \"files\": {\"a\": null}}", "has null for \"a\""},
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        khub_error err = {0};
        khub__digest_claim claim;
        json_t *json = json_loads(bad[i].json, 0, NULL);
        ck_khub_fails(khub__digest_read(&claim, json, "m", &err), &err, KHUB_E_FORMAT, bad[i].words);
        json_decref(json);
    }
}
END_TEST

START_TEST(limits)
{
    char path[600] = "/build";
    khub_error err = {0};
    khub__files files;
    make_root();
    snprintf(build, sizeof(build), "%s/build", root);
    for (int i = 0; i < 64; i++)
        strcat(path, "/d");
    strcat(path, "/file");
    put(path, "abc");
    ck_khub_ok(khub__files_find(&files, build, NULL, &err), &err);
    ck_assert_uint_eq(files.count, 1);
    khub__files_free(&files);
    strcpy(path + strlen(path) - 4, "d/file");
    put(path, "abc");
    ck_khub_fails(khub__files_find(&files, build, NULL, &err), &err, KHUB_E_FORMAT, "more than 64 deep");
    remove_root();
}
END_TEST

static int make_it(void *user, khub_error *err)
{
    json_t *digest;
    int rc = khub__digest_make(&digest, KHUB__HASH_SHA256, user, NULL, err);
    ck_assert_int_eq(rc == KHUB_OK, digest != NULL);
    json_decref(digest);
    return rc;
}

static khub__digest_claim claimed;

static int check_it(void *user, khub_error *err)
{
    khub__violations list;
    int rc = khub__digest_check(&list, &claimed, user, NULL, err);
    ck_assert_uint_eq(list.count, rc == KHUB_OK ? 4 : 0);
    khub__violations_free(&list);
    return rc;
}

static int compare_it(void *user, khub_error *err)
{
    static const khub__hashed files[2] = {{.path = "sub/metadata.json"}, {.path = "new"}};
    khub__violations list;
    (void)user;
    int rc = khub__digest_compare(&list, &claimed, files, 2, err);
    ck_assert_uint_eq(list.count, rc == KHUB_OK ? 4 : 0);
    khub__violations_free(&list);
    return rc;
}

START_TEST(failing_memory)
{
    khub_error err = {0};
    put_build();
    fm_fail_each(make_it, build);
    put("/build/new", "");
    put("/build/a.so", "");
    link_to("/dev/null", "n");
    json_t *json = json_loads(FILES(GOOD ", \"missing\": \"x\""), 0, NULL);
    ck_khub_ok(khub__digest_read(&claimed, json, "m", &err), &err);
    fm_fail_each(check_it, build);
    json_decref(json);
    json = json_loads(FILES(GOOD), 0, NULL);
    ck_khub_ok(khub__digest_read(&claimed, json, "m", &err), &err);
    fm_fail_each(compare_it, NULL);
    json_decref(json);
    remove_root();
}
END_TEST

UNIT("digest", which_files_count, made_of_files, violations, links, what_is_no_file,
     names_that_json_cannot_hold, no_such_directory, hashed_by_the_caller, bad_digests, limits,
     failing_memory)
