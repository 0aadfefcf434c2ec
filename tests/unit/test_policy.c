/* What is trusted: a policy as a value and as a file, the files that are believed, and a verdict. */
#include "failing_memory.h"
#include "root.h"

#include "base/memory.h"
#include "base/ours.h"
#include "trust/policy.h"
#include "trust/trust.h"

#include <stdatomic.h>

static const khub_identity mine = {"https://issuer.example", "https://github.com/me/it", NULL, NULL};

static khub_policy *parsed(const char *text)
{
    khub_policy *policy;
    khub_error err = {0};
    ck_khub_ok(khub__policy_parse(&policy, text, strlen(text), "/etc/t.json", &err), &err);
    return policy;
}

START_TEST(the_default)
{
    khub_policy *policy;
    khub_error err = {0};
    size_t count;
    const khub_identity *theirs = khub_default_identities(&count);
    ck_khub_ok(khub_policy_new(&policy, &err), &err);
    khub_policy_info info = khub_policy_about(policy);
    ck_assert_int_eq(info.level, KHUB_TRUST_PUBLISHER);
    ck_assert(!info.offline_refuse && !info.own_identities && !info.trusted_root && !info.path);
    ck_assert_ptr_null(khub_policy_publisher(policy, 0));
    for (size_t i = 0; i < count; i++)
        ck_assert_ptr_eq(khub_policy_identity(policy, i), &theirs[i]);
    ck_assert_ptr_null(khub_policy_identity(policy, count));
    ck_assert_int_eq(khub_policy_about(NULL).level, KHUB_TRUST_PUBLISHER);
    khub_policy_free(policy);
    khub_policy_free(NULL);
}
END_TEST

START_TEST(names)
{
    static const char *const levels[] = {"publisher", "publisher", "verified", "signed", "?"};
    static const char *const decisions[] = {"accepted", "noted", "refused", "?"};
    khub_trust_level level;
    khub_error err = {0};
    for (int i = 0; i < 5; i++)
        ck_assert_str_eq(khub_trust_level_name((khub_trust_level)i), levels[i]);
    for (int i = 1; i < 4; i++) {
        ck_khub_ok(khub_trust_level_parse(&level, levels[i], &err), &err);
        ck_assert_int_eq((int)level, i);
    }
    for (int i = 0; i < 4; i++)
        ck_assert_str_eq(khub_trust_decision_name((khub_trust_decision)i), decisions[i]);
    ck_khub_fails(khub_trust_level_parse(&level, "Signed", &err), &err, KHUB_E_INVAL,
                  "there are publisher, verified and signed");
    ck_khub_fails(khub_trust_level_parse(&level, "", &err), &err, KHUB_E_INVAL, "\"\" is no level");
}
END_TEST

START_TEST(publishers)
{
    static const char *const in[] = {"zeta", "org/two", "org", "Org", "org/two", "a-b/c.d_e"};
    static const char *const out[] = {"Org", "a-b/c.d_e", "org", "org/two", "zeta"}; /* by their bytes */
    static const char *const bad[] = {"",         "org/", "/x",      "a/b/c",   "org/x@v1",
                                      "org@v1",   "a b",  "org/../", "org/x\n", "-org",
                                      "org--x/y", "./x",  "*",       "org/*",   "https://huggingface.co/org"};
    khub_policy *policy = parsed("{}");
    khub_error err = {0};
    for (size_t i = 0; i < sizeof(in) / sizeof(*in); i++)
        ck_khub_ok(khub_policy_add_publisher(policy, in[i], &err), &err);
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        ck_khub_fails(khub_policy_add_publisher(policy, bad[i], &err), &err, KHUB_E_INVAL, "is no publisher");
    for (size_t i = 0; i < sizeof(out) / sizeof(*out); i++)
        ck_assert_str_eq(khub_policy_publisher(policy, i), out[i]);
    ck_assert_ptr_null(khub_policy_publisher(policy, 5));
    ck_assert(khub__policy_vouches(policy, "org/two", "x") &&
              khub__policy_vouches(policy, "org/three", "org"));
    ck_assert(!khub__policy_vouches(policy, "a-b/c", "a-b") && !khub__policy_vouches(policy, "", ""));
    ck_assert(!khub__policy_vouches(policy, "ORG/two", "ORG") &&
              !khub__policy_vouches(policy, "orgs/x", "orgs"));
    ck_khub_fails(khub_policy_remove_publisher(policy, "nobody", &err), &err, KHUB_E_NOTFOUND,
                  "nobody: isn't among");
    for (size_t i = 0; i < sizeof(out) / sizeof(*out); i++)
        ck_khub_ok(khub_policy_remove_publisher(policy, out[4 - i], &err), &err);
    ck_assert_ptr_null(khub_policy_publisher(policy, 0));
    khub_policy_free(policy);
}
END_TEST

START_TEST(identities)
{
    khub_policy *policy = parsed("{}");
    khub_error err = {0};
    size_t theirs, count;
    const khub_identity *all = khub_default_identities(&theirs);
    ck_khub_ok(khub_policy_add_identity(policy, &all[1], &err),
               &err); /* accepted already: still khub's own */
    ck_assert_int_eq(khub_policy_about(policy).own_identities, 0);
    ck_khub_ok(khub_policy_add_identity(policy, &mine, &err), &err); /* beside khub's */
    ck_khub_ok(khub_policy_add_identity(policy, &mine, &err), &err);
    all = khub__policy_identities(&count, policy);
    ck_assert_uint_eq(count, theirs + 1);
    ck_assert_str_eq(all[theirs].repository, mine.repository);
    ck_assert(all[theirs].repository != mine.repository && !all[theirs].workflow && !all[theirs].subject);
    for (size_t i = 0; i < theirs; i++) {
        khub_identity gone = khub_default_identities(NULL)[i];
        ck_khub_ok(khub_policy_remove_identity(policy, &gone, &err), &err);
        ck_khub_fails(khub_policy_remove_identity(policy, &gone, &err), &err, KHUB_E_NOTFOUND,
                      "isn't among the identities");
    }
    ck_khub_ok(khub_policy_remove_identity(policy, &mine, &err), &err);
    ck_assert_ptr_nonnull(
        khub__policy_identities(&count, policy)); /* an empty list: nobody, not khub's own */
    ck_assert_uint_eq(count, 0);
    ck_assert_ptr_null(khub_policy_identity(policy, 0));
    ck_assert_int_eq(khub_policy_about(policy).own_identities, 1);
    khub_policy_reset_identities(policy);
    ck_assert_ptr_eq(khub_policy_identity(policy, 0), khub_default_identities(NULL));
    khub_policy_free(policy);
}
END_TEST

START_TEST(identities_that_are_none)
{
    char long_text[1002];
    memset(long_text, 'x', sizeof(long_text) - 1);
    long_text[sizeof(long_text) - 1] = 0;
    const khub_identity bad[] = {{NULL, NULL, NULL, NULL},    {"i", NULL, NULL, NULL},
                                 {NULL, "r", "w", "s"},       {"i", "", NULL, NULL},
                                 {"", "r", NULL, NULL},       {"i", NULL, NULL, "\xff"},
                                 {"i", long_text, NULL, NULL}};
    khub_policy *policy = parsed("{}");
    khub_error err = {0};
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        ck_khub_fails(khub_policy_add_identity(policy, &bad[i], &err), &err, KHUB_E_INVAL, "an identity");
    ck_assert_int_eq(khub_policy_about(policy).own_identities, 0);
    khub_policy_free(policy);
}
END_TEST

START_TEST(other_changes)
{
    khub_policy *policy = parsed("{}");
    khub_error err = {0};
    ck_khub_ok(khub_policy_set_level(policy, KHUB_TRUST_SIGNED, &err), &err);
    ck_khub_fails(khub_policy_set_level(policy, (khub_trust_level)4, &err), &err, KHUB_E_INVAL,
                  "4 is no level");
    ck_assert_int_eq(khub_policy_about(policy).level, KHUB_TRUST_SIGNED);
    ck_khub_ok(khub_policy_set_level(policy, KHUB_TRUST_DEFAULT, &err), &err);
    ck_assert_int_eq(khub_policy_about(policy).level, KHUB_TRUST_PUBLISHER);
    ck_khub_ok(khub_policy_set_offline(policy, 7, &err), &err);
    ck_assert_int_eq(khub_policy_about(policy).offline_refuse, 1);
    ck_khub_ok(khub_policy_set_trusted_root(policy, "/r.json", &err), &err);
    ck_khub_fails(khub_policy_set_trusted_root(policy, "", &err), &err, KHUB_E_INVAL, "empty");
    ck_khub_fails(khub_policy_set_trusted_root(policy, "/\xc3", &err), &err, KHUB_E_INVAL, "not UTF-8");
    ck_assert_str_eq(khub_policy_about(policy).trusted_root, "/r.json");
    ck_khub_ok(khub_policy_set_trusted_root(policy, NULL, &err), &err);
    ck_assert_ptr_null(khub_policy_about(policy).trusted_root);
    khub_policy_free(policy);
}
END_TEST

/* Everything that a file can say, in the form that it is written in. */
static const char whole[] = "{\n"
                            "  \"level\": \"signed\",\n"
                            "  \"offline\": \"refuse\",\n"
                            "  \"publishers\": [\n"
                            "    \"me\",\n"
                            "    \"org/x\"\n"
                            "  ],\n"
                            "  \"identities\": [\n"
                            "    {\"issuer\": \"https://issuer.example\",\n"
                            "     \"repository\": \"https://github.com/me/it\"},\n"
                            "    {\"issuer\": \"i\",\n"
                            "     \"workflow\": \"w\\u0007\",\n"
                            "     \"subject\": \"\xc3\xa4\"}\n"
                            "  ],\n"
                            "  \"trusted_root\": \"/etc/root.json\"\n"
                            "}\n";

static void check_text(const khub_policy *policy, const char *expected)
{
    char *text = khub__policy_text(policy);
    ck_assert_str_eq(text, expected);
    khub_free(text);
}

START_TEST(reading)
{
    khub_policy *policy =
        parsed("{\"trusted_root\": \"root.json\", \"publishers\": [\"org/x\", \"me\", \"me\"],"
               "\"offline\": \"refuse\", \"identities\": [{\"repository\":"
               "\"https://github.com/me/it\", \"issuer\": \"https://issuer.example\"},"
               "{\"subject\": \"\xc3\xa4\", \"workflow\": \"w\\u0007\", \"issuer\": \"i\"}],"
               "\"level\": \"signed\"}");
    check_text(policy, whole);
    khub_policy_free(policy);
    policy = parsed(whole);
    ck_assert_int_eq(khub_policy_about(policy).level, KHUB_TRUST_SIGNED);
    ck_assert_str_eq(khub_policy_identity(policy, 1)->workflow, "w\a");
    check_text(policy, whole);
    khub_policy_free(policy);
    policy = parsed("{\"identities\": []}");
    ck_assert_ptr_null(khub_policy_identity(policy, 0));
    check_text(policy, "{\n  \"level\": \"publisher\",\n  \"offline\": \"notice\",\n  \"publishers\": [],\n"
                       "  \"identities\": []\n}\n");
    khub_policy_free(policy);
}
END_TEST

START_TEST(what_is_no_policy)
{
    static const struct {
        const char *text, *words;
    } table[] = {
        {"", "/etc/t.json:1: not valid JSON"},
        {"[]", "/etc/t.json: is an array"},
        {"{\"level\": \"signed\"} x", "not valid JSON"},
        {"{\"level\": \"signed\", \"level\": \"publisher\"}", "duplicate"},
        {"{\"levels\": \"signed\"}", "/etc/t.json: there is no \"levels\" in a policy"},
        {"{\"Level\": \"signed\"}", "there is no \"Level\""},
        {"{\"level\": 3}", "\"level\" is an integer, a string is expected"},
        {"{\"level\": \"signed \"}", "\"level\": \"signed \" is no level"},
        {"{\"level\": \"signed\\u0000\"}", "not valid JSON"},
        {"{\"offline\": true}", "\"offline\" is true, a string is expected"},
        {"{\"offline\": \"no\"}", "\"offline\" is \"no\", it is \"notice\" or \"refuse\""},
        {"{\"publishers\": \"org\"}", "\"publishers\" is a string, an array is expected"},
        {"{\"publishers\": [\"org\", 1]}", "\"publishers\"[1] is an integer"},
        {"{\"publishers\": [\"org@v1\"]}", "\"publishers\"[0]: \"org@v1\" is no publisher"},
        {"{\"identities\": {}}", "\"identities\" is an object, an array is expected"},
        {"{\"identities\": [[]]}", "\"identities\"[0] is an array"},
        {"{\"identities\": [{\"issuer\": \"i\", \"san\": \"x\"}]}", "there is no \"san\" in an identity"},
        {"{\"identities\": [{\"issuer\": \"i\", \"subject\": 1}]}", "\"subject\" is an integer"},
        {"{\"identities\": [{\"issuer\": \"i\"}]}", "\"identities\"[0]: an identity has an issuer, and"},
        {"{\"trusted_root\": \"\"}", "\"trusted_root\" is empty"},
        {"{\"trusted_root\": {}}", "\"trusted_root\" is an object"},
        {"{\"publishers\": [\"\xff\"]}", "not valid JSON"},
        {"{\"level\": null}", "/etc/t.json: \"level\" is null"},
        {"{\"offline\": null}", "\"offline\" is null"},
        {"{\"publishers\": null}", "\"publishers\" is null"},
        {"{\"identities\": null}", "\"identities\" is null"},
        {"{\"trusted_root\": null}", "\"trusted_root\" is null"},
        {"{\"publishers\": [null]}", "\"publishers\"[0] is null"},
        {"{\"identities\": [null]}", "\"identities\"[0] is null"},
        {"{\"identities\": [{\"issuer\": \"i\", \"subject\": \"s\", \"workflow\": null}]}",
         "\"workflow\" is null"}, /* else any workflow */
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
        khub_policy *policy = (khub_policy *)&policy;
        khub_error err = {0};
        ck_khub_fails(khub__policy_parse(&policy, table[i].text, strlen(table[i].text), "/etc/t.json", &err),
                      &err, KHUB_E_FORMAT, table[i].words);
        ck_assert_ptr_null(policy);
    }
}
END_TEST

START_TEST(limits)
{
    khub_policy *policy = parsed("{}");
    khub_error err = {0};
    char name[32];
    for (int i = 0; i < KHUB__PUBLISHERS_MAX; i++) {
        snprintf(name, sizeof(name), "o%d", i);
        ck_khub_ok(khub_policy_add_publisher(policy, name, &err), &err);
    }
    ck_khub_fails(khub_policy_add_publisher(policy, "more", &err), &err, KHUB_E_INVAL, "at most 10000");
    ck_khub_ok(khub_policy_add_publisher(policy, "o5000", &err), &err);
    for (int i = 0; i < KHUB__IDENTITIES_MAX - 4; i++) { /* beside the four that khub comes with */
        snprintf(name, sizeof(name), "s%d", i);
        ck_khub_ok(khub_policy_add_identity(policy, &(khub_identity){"i", NULL, NULL, name}, &err), &err);
    }
    ck_khub_fails(khub_policy_add_identity(policy, &mine, &err), &err, KHUB_E_INVAL, "at most 1000");
    khub_policy_free(policy);
}
END_TEST

static char *inside(const char *path)
{
    static char full[2][300];
    static int next;
    next = !next;
    snprintf(full[next], sizeof(full[next]), "%s%s", root, path);
    return full[next];
}

static void put_text(const char *path, const char *text, mode_t mode)
{
    put_bytes(path, text, strlen(text));
    ck_assert_int_eq(chmod(inside(path), mode), 0);
}

static void check_refused(const char *path, const char *words)
{
    khub_policy *policy;
    khub_error err = {0};
    ck_khub_fails(khub_policy_read(&policy, inside(path), &err), &err, KHUB_E_UNTRUSTED, words);
    ck_assert_ptr_null(policy);
}

static void check_read(const char *path)
{
    khub_policy *policy;
    khub_error err = {0};
    ck_khub_ok(khub_policy_read(&policy, inside(path), &err), &err);
    ck_assert_str_eq(khub_policy_about(policy).path, inside(path));
    khub_policy_free(policy);
}

/* Group and others; the root directory of the test is in /tmp, where the sticky bit protects what is ours. */
START_TEST(files_that_others_may_write_to)
{
    make_root();
    put_text("/a/b/t.json", "{}", 0644);
    check_read("/a/b/t.json");
    check_read("/a/./b/../b//t.json");
    chmod(inside("/a/b/t.json"), 0666);
    check_refused("/a/b/t.json", "others may write to it (mode 0666); chmod go-w /tmp/");
    chmod(inside("/a/b/t.json"), 0646);
    check_refused("/a/b/t.json", "others may write to it (mode 0646)");
    chmod(inside("/a/b/t.json"), 0600);
    check_read("/a/b/t.json");
    chmod(inside("/a"), 0757); /* whoever may write there may put another directory in b's place */
    check_refused("/a/b/t.json", "isn't believed, others may write to /tmp/");
    chmod(inside("/a"), 01777);
    check_read("/a/b/t.json");
    chmod(inside("/a"), 0700);
    remove_root();
}
END_TEST

/* A link is followed part by part: each directory that it leads through counts, and so does its own. */
START_TEST(links_on_the_way)
{
    make_root();
    put_text("/real/t.json", "{}", 0644);
    put_text("/open/x", "", 0644);
    ck_assert_int_eq(symlink("../real/t.json", inside("/open/link")), 0);
    ck_assert_int_eq(symlink("open/link", inside("/first")), 0);
    ck_assert_int_eq(symlink("real", inside("/dir")), 0);
    ck_assert_int_eq(symlink("round", inside("/round")), 0);
    check_read("/first");
    check_read("/dir/t.json");
    chmod(inside("/open"), 0777); /* only the link on the way lies there */
    check_refused("/first", "others may write to /tmp/");
    check_read("/dir/t.json");
    khub_error err = {0};
    char *real;
    ck_khub_fails(khub__path_is_ours(NULL, inside("/round"), &err), &err, KHUB_E_IO, "symbolic links");
    ck_khub_ok(khub__path_is_ours(&real, inside("/dir/t.json"), &err), &err);
    ck_assert_str_eq(real, inside("/real/t.json"));
    khub_free(real);
    ck_khub_fails(khub__path_is_ours(&real, inside("/dir/none"), &err), &err, KHUB_E_NOTFOUND, "/real/none");
    ck_assert_str_eq(real, inside("/real/none"));
    khub_free(real);
    ck_khub_fails(khub__path_is_ours(&real, inside("/none/none"), &err), &err, KHUB_E_NOTFOUND, "/none");
    ck_assert_ptr_null(real);
    ck_khub_fails(khub__path_is_ours(NULL, inside("/open"), &err), &err, KHUB_E_UNTRUSTED, "mode 0777");
    ck_khub_fails(khub__path_is_ours(NULL, "/tmp", &err), &err, KHUB_E_UNTRUSTED, "mode 1777");
    remove_root();
}
END_TEST

START_TEST(paths_from_here_and_long_ones)
{
    khub_error err = {0};
    char path[6000];
    make_root();
    put_text("/here/t.json", "{}", 0644);
    ck_assert_int_eq(chdir(inside("/here")), 0);
    ck_khub_ok(khub__path_is_ours(NULL, "t.json", &err), &err);
    ck_khub_ok(khub__path_is_ours(NULL, "../../../../../..", &err), &err);
    memset(path, 'x', sizeof(path) - 1);
    path[sizeof(path) - 1] = 0;
    ck_khub_fails(khub__path_is_ours(NULL, path, &err), &err, KHUB_E_IO, "a path is longer than it may be");
    for (size_t i = 0; i < 4000; i += 2)
        memcpy(path + i, "./", 2);
    strcpy(path + 4000, "t.json");
    ck_khub_ok(khub__path_is_ours(NULL, path, &err), &err);
    ck_assert_int_eq(chdir("/"), 0);
    remove_root();
}
END_TEST

START_TEST(files_of_others)
{
    ck_assert_msg(geteuid() == 0, "this test needs root, to be two users");
    make_root();
    put_text("/a/t.json", "{}", 0644);
    ck_assert_int_eq(chown(inside("/a/t.json"), 12345, 0), 0);
    check_refused("/a/t.json", "it belongs to another user (12345)");
    ck_assert_int_eq(chown(inside("/a/t.json"), 0, 0), 0);
    ck_assert_int_eq(chown(inside("/a"), 12345, 0), 0);
    check_refused("/a/t.json", "belongs to another user (12345)");
    ck_assert_int_eq(chown(inside("/a"), 0, 54321), 0);
    ck_assert_int_eq(chmod(inside("/a"), 0775), 0);
    check_refused("/a/t.json", "others may write to /tmp/"); /* a group of others */
    ck_assert_int_eq(chown(inside("/a"), 0, 0), 0);
    check_refused("/a/t.json", "others may write to /tmp/"); /* root's is of others, too, on many systems */
    remove_root();
}
END_TEST

START_TEST(the_file_of_the_user)
{
    khub_policy *policy;
    khub_error err = {0};
    char *path;
    make_root();
    unsetenv("KHUB_TRUST_FILE");
    setenv("HOME", root, 1);
    setenv("XDG_CONFIG_HOME", "relative", 1); /* isn't taken */
    ck_khub_ok(khub_policy_path(&path, &err), &err);
    ck_assert_str_eq(path, inside("/.config/khub/trust.json"));
    khub_free(path);
    ck_khub_ok(khub_policy_read(&policy, NULL, &err), &err); /* isn't there: the default */
    ck_assert_ptr_null(khub_policy_about(policy).path);
    ck_khub_ok(khub_policy_add_publisher(policy, "me", &err), &err);
    mode_t mask = umask(0);
    ck_khub_ok(khub_policy_write(policy, NULL, &err), &err);
    umask(mask);
    khub_policy_free(policy);
    struct stat st;
    ck_assert(stat(inside("/.config/khub"), &st) == 0 && (st.st_mode & 0777) == 0700);
    ck_assert(stat(inside("/.config/khub/trust.json"), &st) == 0 && (st.st_mode & 0777) == 0644);
    ck_khub_ok(khub_policy_read(&policy, NULL, &err), &err);
    ck_assert_str_eq(khub_policy_publisher(policy, 0), "me");
    khub_policy_free(policy);
    setenv("XDG_CONFIG_HOME", inside("/xdg"), 1);
    ck_khub_ok(khub_policy_path(&path, &err), &err);
    ck_assert_str_eq(path, inside("/xdg/khub/trust.json"));
    khub_free(path);
    setenv("KHUB_TRUST_FILE", "~/mine.json", 1);
    ck_khub_fails(khub_policy_read(&policy, NULL, &err), &err, KHUB_E_NOTFOUND, "KHUB_TRUST_FILE names it");
    put_text("/mine.json", "{\"level\": \"verified\"}", 0600);
    ck_khub_ok(khub_policy_read(&policy, NULL, &err), &err);
    ck_assert_int_eq(khub_policy_about(policy).level, KHUB_TRUST_VERIFIED);
    khub_policy_free(policy);
    remove_root();
}
END_TEST

/* A link stays one; what would be refused when it is read isn't written. */
START_TEST(writing)
{
    khub_error err = {0};
    khub_policy *policy = parsed(whole);
    char text[sizeof(whole) + 1] = "";
    make_root();
    put_text("/dots/t.json", "{}", 0640);
    ck_assert_int_eq(symlink("dots/t.json", inside("/t.json")), 0);
    ck_khub_ok(khub_policy_write(policy, inside("/t.json"), &err), &err);
    ck_assert_int_gt(readlink(inside("/t.json"), text, sizeof(text)), 0);
    FILE *file = fopen(inside("/dots/t.json"), "r");
    ck_assert_uint_eq(fread(text, 1, sizeof(text), file), sizeof(whole) - 1);
    fclose(file);
    ck_assert_int_eq(memcmp(text, whole, sizeof(whole) - 1), 0);
    mkdir(inside("/open"), 0700);
    chmod(inside("/open"), 0777);
    ck_khub_fails(khub_policy_write(policy, inside("/open/t.json"), &err), &err, KHUB_E_UNTRUSTED,
                  "others may write to /tmp/");
    ck_assert_int_ne(access(inside("/open/t.json"), F_OK), 0);
    ck_khub_fails(khub_policy_write(policy, inside("/dots/t.json/x"), &err), &err, KHUB_E_NOTFOUND,
                  "t.json/x: can't create it: Not a directory");
    khub_policy_free(policy);
    remove_root();
}
END_TEST

START_TEST(the_trusted_root_of_a_policy)
{
    khub_error err = {0};
    khub_trusted_root *opened;
    make_root();
    put_text("/root.json", "{}", 0666);
    khub_policy *policy = parsed("{}");
    ck_khub_ok(khub_policy_set_trusted_root(policy, inside("/root.json"), &err), &err);
    ck_khub_fails(khub__policy_root(&opened, policy, &err), &err, KHUB_E_UNTRUSTED, "mode 0666");
    ck_assert_ptr_null(opened);
    chmod(inside("/root.json"), 0644);
    ck_khub_fails(khub__policy_root(&opened, policy, &err), &err, KHUB_E_FORMAT, "root.json");
    khub_policy_free(policy);
    remove_root();
}
END_TEST

START_TEST(rules)
{
    khub_error err = {0};
    const khub_policy *policy;
    make_root();
    setenv("KHUB_TRUST_FILE", inside("/t.json"), 1);
    khub__rules from_file = {0}, given = {.given = parsed("{\"level\": \"signed\"}")};
    ck_khub_ok(khub__rules_policy(&policy, &given, &err), &err); /* the file isn't looked at */
    ck_assert_int_eq(policy->level, KHUB_TRUST_SIGNED);
    ck_khub_fails(khub__rules_policy(&policy, &from_file, &err), &err, KHUB_E_NOTFOUND, "t.json");
    put_text("/t.json", "{\"level\": \"verified\"}", 0600);
    ck_khub_ok(khub__rules_policy(&policy, &from_file, &err), &err);
    put_text("/t.json", "{", 0600);
    ck_khub_ok(khub__rules_policy(&policy, &from_file, &err), &err); /* read once */
    ck_assert_int_eq(policy->level, KHUB_TRUST_VERIFIED);
    khub__rules_close(&from_file);
    khub_policy_free((khub_policy *)(uintptr_t)given.given);
    remove_root();
}
END_TEST

START_TEST(a_verdict)
{
    khub_trust *trust;
    khub_error err = {0};
    ck_khub_ok(khub__trust_new(&trust, KHUB_TRUST_DEFAULT, &err), &err);
    ck_assert_int_eq(khub_trust_level_of(trust), KHUB_TRUST_PUBLISHER);
    khub__trust_add(trust, KHUB__ABOUT_PUBLISHER, KHUB_TRUST_ACCEPTED, "org/x: %s", "fine");
    khub__trust_add(trust, KHUB__ABOUT_VERSION, KHUB_TRUST_NOTED, "org/x: version %d", 1);
    ck_khub_ok(khub__trust_end(trust, &err), &err);
    ck_assert(khub_trust_holds(trust));
    khub__trust_add(trust, KHUB__ABOUT_DIGEST, KHUB_TRUST_REFUSED, "org/x: changed");
    khub__trust_add(trust, KHUB__ABOUT_CONTENT, KHUB_TRUST_REFUSED, "org/x: other");
    ck_assert(!khub_trust_holds(trust));
    ck_khub_fails(khub__trust_end(trust, &err), &err, KHUB_E_UNTRUSTED, "org/x: changed");
    ck_assert_str_eq(khub_trust_at(trust, 1)->about, "version");
    ck_assert_str_eq(khub_trust_at(trust, 1)->words, "org/x: version 1");
    ck_assert_int_eq(khub_trust_at(trust, 2)->decision, KHUB_TRUST_REFUSED);
    ck_assert_ptr_null(khub_trust_at(trust, 4));
    ck_assert_ptr_null(khub_trust_signature(trust));
    khub_signature signature = {.reason = KHUB_SIGNATURE_IDENTITY, .memory = khub__strdup("x")};
    khub__trust_take_signature(trust, &signature);
    ck_assert_ptr_null(signature.memory);
    ck_assert_int_eq(khub_trust_signature(trust)->reason, KHUB_SIGNATURE_IDENTITY);
    khub_trust *same = khub__trust_share(trust);
    khub_trust_free(trust);
    ck_assert_str_eq(khub_trust_at(same, 0)->words, "org/x: fine");
    khub_trust_free(same);
    khub__trust_add(NULL, KHUB__ABOUT_CACHE, KHUB_TRUST_REFUSED, "nobody keeps it");
    ck_assert(!khub_trust_holds(NULL) && !khub_trust_at(NULL, 0) && !khub__trust_share(NULL));
    khub_trust_free(NULL);
}
END_TEST

START_TEST(more_decisions_than_are_told)
{
    khub_trust *trust;
    khub_error err = {0};
    ck_khub_ok(khub__trust_new(&trust, KHUB_TRUST_DEFAULT, &err), &err);
    for (int i = 0; i < 10005; i++)
        khub__trust_add(trust, KHUB__ABOUT_CONTENT, KHUB_TRUST_NOTED, "file %d", i);
    ck_khub_ok(khub__trust_end(trust, &err), &err);
    ck_assert_str_eq(khub_trust_at(trust, 9999)->words, "file 9999");
    ck_assert_str_eq(khub_trust_at(trust, 10000)->words, "5 more decisions aren't told");
    ck_assert_int_eq(khub_trust_at(trust, 10000)->decision, KHUB_TRUST_NOTED);
    khub__trust_add(trust, KHUB__ABOUT_CONTENT, KHUB_TRUST_REFUSED, "file x");
    khub__trust_add(trust, KHUB__ABOUT_CONTENT, KHUB_TRUST_NOTED, "file y");
    ck_assert(!khub_trust_holds(trust) && !khub_trust_at(trust, 10001));
    ck_khub_fails(khub__trust_end(trust, &err), &err, KHUB_E_UNTRUSTED, "7 more decisions");
    khub_trust_free(trust);
}
END_TEST

static int fill(void *user, khub_error *err)
{
    khub_policy *policy, *again = NULL;
    char *text = NULL;
    int rc = khub__policy_parse(&policy, user, strlen(user), "t.json", err);
    if (rc == KHUB_OK && !(text = khub__policy_text(policy))) rc = err->code = KHUB_E_NOMEM;
    if (rc == KHUB_OK) rc = khub__policy_parse(&again, text, strlen(text), "t.json", err);
    khub_free(text);
    khub_policy_free(again);
    khub_policy_free(policy);
    return rc;
}

/* From khub's own identities to a policy's: a failure leaves khub's. */
static int change(void *user, khub_error *err)
{
    khub_policy *policy;
    (void)user;
    int rc = khub_policy_new(&policy, err);
    if (rc != KHUB_OK) return rc;
    rc = khub_policy_add_identity(policy, &mine, err);
    if (rc == KHUB_OK) rc = khub_policy_add_publisher(policy, "org", err);
    if (rc == KHUB_OK) rc = khub_policy_set_trusted_root(policy, "/x", err);
    ck_assert(rc == KHUB_OK || policy->own_identities == (policy->identity_count > 4));
    khub_policy_free(policy);
    return rc;
}

static int store(void *user, khub_error *err)
{
    khub_policy *policy;
    (void)user;
    int rc = khub_policy_read(&policy, NULL, err);
    if (rc == KHUB_OK) rc = khub_policy_write(policy, NULL, err);
    khub_policy_free(policy);
    return rc;
}

static int judge(void *user, khub_error *err)
{
    khub_trust *trust;
    (void)user;
    int rc = khub__trust_new(&trust, KHUB_TRUST_SIGNED, err);
    if (rc != KHUB_OK) return rc;
    khub__trust_add(trust, KHUB__ABOUT_DIGEST, KHUB_TRUST_REFUSED, "x");
    ck_assert(!khub_trust_holds(trust)); /* also when it couldn't be kept */
    rc = khub__trust_end(trust, err);
    khub_trust_free(trust);
    if (rc == KHUB_E_UNTRUSTED) khub_error_clear(err);
    return rc == KHUB_E_UNTRUSTED ? KHUB_OK : rc;
}

START_TEST(every_allocation_fails)
{
    static char text[] = "{\"level\": \"signed\", \"publishers\": [\"b\", \"a/x\"], \"trusted_root\": \"r\","
                         " \"identities\": [{\"issuer\": \"i\", \"subject\": \"s\", \"workflow\": \"w\"}]}";
    make_root();
    put_text("/t.json", text, 0600);
    setenv("KHUB_TRUST_FILE", inside("/t.json"), 1);
    fm_fail_each_own(fill, text);
    fm_fail_each_own(change, NULL);
    fm_fail_each_own(store, NULL);
    fm_fail_each_own(judge, NULL);
    remove_root();
}
END_TEST

UNIT("policy", the_default, names, publishers, identities, identities_that_are_none, other_changes, reading,
     what_is_no_policy, limits, files_that_others_may_write_to, links_on_the_way,
     paths_from_here_and_long_ones, files_of_others, the_file_of_the_user, writing,
     the_trusted_root_of_a_policy, rules, a_verdict, more_decisions_than_are_told, every_allocation_fails)
