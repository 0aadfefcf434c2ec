/* Repositories, revisions, paths, and trees. */
#include "failing_memory.h"
#include "unit.h"

#include "hub/repo.h"
#include "hub/tree.h"

#include <khub/hub.h>

START_TEST(names)
{
    static const struct {
        const char *name, *id, *revision;
        int64_t version;
        int is_commit;
    } table[] = {
        {"o/n", "o/n", "", -1, 0},
        {"kernels-community/flash_attn.2@v1", "kernels-community/flash_attn.2", "v1", 1, 0},
        {"o/n@1", "o/n", "v1", 1, 0},
        {"o/n@v0", "o/n", "v0", 0, 0},
        {"o/n@v01", "o/n", "v01", -1, 0},
        {"o/n@main", "o/n", "main", -1, 0},
        {"o/n@v1.2", "o/n", "v1.2", -1, 0},
        {"o/n@refs/pr/4", "o/n", "refs/pr/4", -1, 0},
        {"o/n@0123456789abcdef0123456789abcdef01234567", "o/n", "0123456789abcdef0123456789abcdef01234567",
         -1, 1},
        {"o/n@1234567890123456789012345678901234567890", "o/n", "1234567890123456789012345678901234567890",
         -1, 1},
        {"o/n@0123456789ABCDEF0123456789abcdef01234567", "o/n", "0123456789abcdef0123456789abcdef01234567",
         -1, 1},
        {"o/n@ABCDEF", "o/n", "ABCDEF", -1, 0},
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
        khub__wanted wanted;
        khub_error err = {0};
        ck_khub_ok(khub__wanted_parse(&wanted, KHUB__REPO_KERNEL, table[i].name, &err), &err);
        ck_assert_str_eq(wanted.repo.id, table[i].id);
        ck_assert_str_eq(wanted.revision, table[i].revision);
        ck_assert_int_eq(wanted.version, table[i].version);
        ck_assert_int_eq(wanted.is_commit, table[i].is_commit);
    }
}
END_TEST

/* One form for each set of versions, and which are in it. */
START_TEST(ranges)
{
    static const struct {
        const char *text, *form; /* NULL: none */
        const char *has;         /* of the versions 0 to 5 */
    } table[] = {
        {">=1,<3", ">=1,<3", "12"},
        {">=1.0,<2.0", "v1", "1"},
        {" >= 1 , < 3 ", ">=1,<3", "12"},
        {">0,<=2", ">=1,<3", "12"},
        {">=0.5,<2.5", ">=1,<3", "12"},
        {">1.0", ">=2", "2345"},
        {">1.5", ">=2", "2345"},
        {"<=1.5", "<2", "01"},
        {"<1", "v0", "0"},
        {"<2,<4", "<2", "01"},
        {"==3", "v3", "3"},
        {"==3.0.0", "v3", "3"},
        {"!=2", ">=0,!=2", "01345"},
        {"!=4,!=2,!=4", ">=0,!=2,!=4", "0135"},
        {"<5,!=4,!=3,!=0,!=7,!=1.5", ">=1,<3", "12"},
        {">=999999999999999999", ">=999999999999999999", ""},
        {"==1.5", NULL, NULL},
        {">=3,<3", NULL, NULL},
        {">=75,<70", NULL, NULL},
        {"<0", NULL, NULL},
        {">=1,<=1,!=1", NULL, NULL},
        {">=1000000000000000000", NULL, NULL},
        {"!=99999999999999999999999999", NULL, NULL},
        {">=1,", NULL, NULL},
        {">=1,,<2", NULL, NULL},
        {">=", NULL, NULL},
        {">=-1", NULL, NULL},
        {">=1.", NULL, NULL},
        {">=v1", NULL, NULL},
        {">=1 2", NULL, NULL},
        {"=1", NULL, NULL},
        {"~=1", NULL, NULL},
        {"!=1,!=2,!=3,!=4,!=5,!=6,!=7,!=8,!=9", NULL, NULL},
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
        char name[100] = "o/n@", has[7] = "", *at = has;
        khub__wanted wanted;
        khub_error err = {0};
        strcat(name, table[i].text);
        if (!table[i].form) {
            ck_khub_fails(khub__wanted_parse(&wanted, KHUB__REPO_KERNEL, name, &err), &err, KHUB_E_INVAL,
                          table[i].text);
            continue;
        }
        ck_khub_ok(khub__wanted_parse(&wanted, KHUB__REPO_KERNEL, name, &err), &err);
        ck_assert_str_eq(wanted.revision, table[i].form);
        ck_assert_int_eq(wanted.is_range, wanted.version < 0);
        for (int64_t version = 0; version < 6; version++)
            if (khub__range_has(&wanted.range, version)) *at++ = (char)('0' + version);
        ck_assert_str_eq(has, table[i].has);
        ck_khub_fails(khub__wanted_parse(&wanted, KHUB__REPO_MODEL, name, &err), &err, KHUB_E_INVAL,
                      "only kernels");
    }
}
END_TEST

START_TEST(names_that_are_none)
{
    static const char *const table[] = {
        "",        "/",         "o/",     "/n",         "o/n/m",     "o",       "../n",   "o/..",
        "o/n@",    "o/-n",      "o/n-",   "o/.n",       "o/n.",      "o/n..m",  "o/n--m", "o o/n",
        "o/n@a b", "o/n@../x",  "o/n@/",  "o/n@a~",     "o/n@a^1",   "o/n@a:b", "o/n@-x", "o/n@a\\b",
        "o/n@x.",  "o/n@a/./b", "o\\n/x", "o/\xC3\xA4", "o/n@a\x01", "o/n@@",
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
        khub__wanted wanted;
        khub_error err = {0};
        int rc = khub__wanted_parse(&wanted, KHUB__REPO_KERNEL, table[i], &err);
        ck_assert_msg(rc == KHUB_E_INVAL, "\"%s\" was taken", table[i]);
        ck_assert_str_ne(err.message, "");
    }
    char name[500];
    khub__wanted wanted;
    khub_error err = {0};
    memset(name, 'x', sizeof(name));
    name[499] = 0;
    name[2] = '/';
    ck_khub_fails(khub__wanted_parse(&wanted, KHUB__REPO_KERNEL, name, &err), &err, KHUB_E_INVAL, "too long");
    memcpy(name, "o/n@", 4);
    ck_khub_fails(khub__wanted_parse(&wanted, KHUB__REPO_KERNEL, name, &err), &err, KHUB_E_INVAL, "branch");
}
END_TEST

START_TEST(kinds_of_names)
{
    static const struct {
        const char *name;
        khub_name_kind kind;
    } table[] = {
        {"/", KHUB_NAME_PATH},
        {"/a/b", KHUB_NAME_PATH},
        {"./o/n", KHUB_NAME_PATH},
        {"../n", KHUB_NAME_PATH},
        {".", KHUB_NAME_PATH},
        {"..", KHUB_NAME_PATH},
        {"/x://y", KHUB_NAME_PATH},
        {"o/n", KHUB_NAME_HUB},
        {"o/n@v1", KHUB_NAME_HUB},
        {"o/n@refs/pr/4", KHUB_NAME_HUB},
        {"khub/norm", KHUB_NAME_HUB},
        {"https://huggingface.co/o/n", KHUB_NAME_ADDRESS},
        {"hf.co/o", KHUB_NAME_ADDRESS},
        {"huggingface.co/o/n", KHUB_NAME_ADDRESS},
        {"hf.community/n", KHUB_NAME_HUB},
        {"", KHUB_NAME_OTHER},
        {"n", KHUB_NAME_OTHER},
        {"n@a/b", KHUB_NAME_OTHER},
        {"o/", KHUB_NAME_OTHER},
        {"o/@v1", KHUB_NAME_OTHER},
        {"o/n/m", KHUB_NAME_OTHER},
        {".o/n", KHUB_NAME_OTHER},
        {".../n", KHUB_NAME_OTHER},
        {"~/n", KHUB_NAME_OTHER},
        {NULL, KHUB_NAME_OTHER},
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
        ck_assert_msg(khub_name_kind_of(table[i].name) == table[i].kind, "\"%s\"", table[i].name);
}
END_TEST

START_TEST(models)
{
    khub__wanted wanted;
    khub_error err = {0};
    char owner[KHUB__REPO_ID_MAX + 1];
    ck_khub_ok(khub__wanted_parse(&wanted, KHUB__REPO_MODEL, "gpt2@main", &err), &err);
    ck_assert_str_eq(wanted.repo.id, "gpt2");
    khub__repo_owner(owner, &wanted.repo);
    ck_assert_str_eq(owner, "");
    ck_assert_str_eq(khub__repo_api(wanted.repo.kind), "models");
    ck_khub_ok(khub__wanted_parse(&wanted, KHUB__REPO_KERNEL, "o/n", &err), &err);
    khub__repo_owner(owner, &wanted.repo);
    ck_assert_str_eq(owner, "o");
    ck_assert_str_eq(khub__repo_api(wanted.repo.kind), "kernels");
}
END_TEST

START_TEST(paths_inside)
{
    static const struct {
        const char *path;
        int good;
    } table[] = {
        {"a", 1},
        {"a/b/c.so", 1},
        {".a", 1},
        {"a..b", 1},
        {"...", 1},
        {"\xC3\xA4/\xE2\x82\xAC/\xF0\x9F\x98\x80", 1},
        {"ab:c", 1},
        {"a b", 1},
        {"", 0},
        {".", 0},
        {"..", 0},
        {"a/..", 0},
        {"../a", 0},
        {"./a", 0},
        {"/a", 0},
        {"a/", 0},
        {"a//b", 0},
        {"a\\b", 0},
        {"c:", 0},
        {"C:/x", 0},
        {"a\n", 0},
        {"a\x7F", 0},
        {"\xC2\x85", 0},
        {"\xFF", 0},
        {"\xC0\xAF", 0},
        {"\xE0\x80\x80", 0},
        {"\xED\xA0\x80", 0},
        {"\xF4\x90\x80\x80", 0},
        {"\xC3", 0},
        {"a\xE2\x82", 0},
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
        ck_assert_msg(khub__is_repo_path(table[i].path, strlen(table[i].path)) == table[i].good, "path %zu",
                      i);
    ck_assert(!khub__is_repo_path("a\0b", 3));
    char text[1100];
    memset(text, 'x', sizeof(text));
    ck_assert(khub__is_repo_path(text, 255) && !khub__is_repo_path(text, 256));
    for (size_t i = 100; i < sizeof(text); i += 100)
        text[i] = '/';
    ck_assert(khub__is_repo_path(text, 1000) && !khub__is_repo_path(text, 1001));
}
END_TEST

START_TEST(commits)
{
    char name[66];
    memset(name, 'f', sizeof(name));
    for (size_t n = 0; n < sizeof(name); n++) {
        name[n] = 0;
        ck_assert_int_eq(khub__is_commit(name), n == 40 || n == 64);
        name[n] = 'f';
    }
    ck_assert(!khub__is_commit("0123456789ABCDEF0123456789abcdef01234567"));
}
END_TEST

static int add(khub__tree *tree, const char *path, khub_error *err)
{
    khub__tree_file file = {.path = path, .size = strlen(path), .xet_hash = "x"};
    strcpy(file.blob_id, "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391");
    return khub__tree_add(tree, &file, err);
}

START_TEST(trees)
{
    static const char *const paths[] = {"b", "a/c", "a-b", "a.b/c", "z", "a/b"};
    static const char *const sorted[] = {"a-b", "a.b/c", "a/b", "a/c", "b", "z"};
    khub__tree tree = {0};
    khub_error err = {0};
    for (size_t i = 0; i < 6; i++)
        ck_khub_ok(add(&tree, paths[i], &err), &err);
    ck_khub_ok(khub__tree_close(&tree, &err), &err);
    ck_assert_uint_eq(tree.count, 6);
    for (size_t i = 0; i < 6; i++) {
        ck_assert_str_eq(tree.files[i].path, sorted[i]);
        ck_assert_ptr_eq(khub__tree_find(&tree, sorted[i]), &tree.files[i]);
    }
    ck_assert_ptr_null(khub__tree_find(&tree, "a"));
    ck_assert_ptr_null(khub__tree_find(&tree, "a/bb"));
    ck_assert_ptr_null(khub__tree_find(&tree, ""));
    ck_assert_str_eq(khub__tree_etag(&tree.files[0]), "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391");
    khub__tree_free(&tree);
    ck_assert_uint_eq(tree.count, 0);
    khub__tree_file nameless = {.path = "a"};
    ck_assert_ptr_null(khub__tree_etag(&nameless));
}
END_TEST

START_TEST(trees_that_are_none)
{
    static const char *const table[][3] = {{"a", "b", "a"}, {"a", "a/b", "c"}, {"a/b/c/d", "x", "a/b"}};
    for (size_t i = 0; i < 3; i++) {
        khub__tree tree = {0};
        khub_error err = {0};
        for (size_t k = 0; k < 3; k++)
            ck_khub_ok(add(&tree, table[i][k], &err), &err);
        ck_khub_fails(khub__tree_close(&tree, &err), &err, KHUB_E_FORMAT,
                      i ? "as a file and as a folder" : "twice");
        khub__tree_free(&tree);
    }
}
END_TEST

/* As a Hub lists them, in order. A sanitizer sees in some what it sees in a million; the limit is the plain
 * build's to show. */
START_TEST(million_files)
{
    enum { FOLDERS = SANITIZED ? 20 : 1000 };
    khub__tree tree = {0};
    khub_error err = {0};
    char path[16];
    for (int i = 0; i < FOLDERS * 1000; i++) {
        snprintf(path, sizeof(path), "%03d/%03d", i / 1000, i % 1000);
        ck_assert_int_eq(add(&tree, path, &err), KHUB_OK);
    }
    if (!SANITIZED) ck_khub_fails(add(&tree, "more", &err), &err, KHUB_E_FORMAT, "1000000 files");
    ck_khub_ok(khub__tree_close(&tree, &err), &err);
    ck_assert_ptr_nonnull(khub__tree_find(&tree, "017/777"));
    khub__tree_free(&tree);
}
END_TEST

static int build_tree(void *user, khub_error *err)
{
    (void)user;
    khub__tree tree = {0};
    int rc = KHUB_OK;
    char path[16];
    for (int i = 0; i < 40 && rc == KHUB_OK; i++) {
        snprintf(path, sizeof(path), "%d", i);
        rc = add(&tree, path, err);
    }
    if (rc == KHUB_OK) rc = khub__tree_close(&tree, err);
    khub__tree_free(&tree);
    return rc;
}

START_TEST(failing_memory)
{
    fm_fail_each(build_tree, NULL);
}
END_TEST

UNIT("hub_repo", names, ranges, names_that_are_none, kinds_of_names, models, paths_inside, commits, trees,
     trees_that_are_none, million_files, failing_memory)
