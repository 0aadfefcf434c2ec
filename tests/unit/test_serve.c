/* The parts of khub serve that are functions of what they are given. What the whole does is in tests/cli and
 * tests/oracle. */
#include "failing_memory.h"
#include "unit.h"

#include "serve/address.h"
#include "serve/folder.h"
#include "serve/form.h"
#include "serve/known.h"
#include "serve/pointer.h"
#include "serve/range.h"
#include "serve/repository.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* ---- addresses ---- */

START_TEST(addresses)
{
    static const struct {
        const char *text, *query;
        serve_what what;
        serve_kind kind;
        const char *id, *revision, *path;
    } cases[] = {
        {"/", NULL, SERVE_HOME, SERVE_KERNEL, "", "", ""},
        {"/metrics", NULL, SERVE_METRICS, SERVE_KERNEL, "", "", ""},
        {"/api/whoami-v2", NULL, SERVE_WHOAMI, SERVE_KERNEL, "", "", ""},
        {"/api/organizations/org/overview", NULL, SERVE_OVERVIEW, SERVE_KERNEL, "org", "", ""},
        {"/api/kernels/org/a", NULL, SERVE_INFO, SERVE_KERNEL, "org/a", "", ""},
        {"/api/models/gpt2", NULL, SERVE_INFO, SERVE_MODEL, "gpt2", "", ""},
        {"/api/models/org/m/revision/refs%2Fpr%2F4", NULL, SERVE_INFO, SERVE_MODEL, "org/m", "refs/pr/4", ""},
        {"/api/models/gpt2/revision/main", NULL, SERVE_INFO, SERVE_MODEL, "gpt2", "main", ""},
        {"/api/kernels/org/a/refs", NULL, SERVE_REFS, SERVE_KERNEL, "org/a", "", ""},
        {"/api/models/gpt2/refs", NULL, SERVE_REFS, SERVE_MODEL, "gpt2", "", ""},
        {"/api/kernels/org/refs/refs", NULL, SERVE_REFS, SERVE_KERNEL, "org/refs", "", ""},
        {"/api/kernels/org/a/tree/v1", NULL, SERVE_TREE, SERVE_KERNEL, "org/a", "v1", ""},
        {"/api/kernels/org/a/tree/v1/build/x", NULL, SERVE_TREE, SERVE_KERNEL, "org/a", "v1", "build/x"},
        {"/api/kernels/org/a/tree/v1/build%2Fx", NULL, SERVE_TREE, SERVE_KERNEL, "org/a", "v1", "build/x"},
        {"/api/kernels/org/a/paths-info/v1", NULL, SERVE_PATHS, SERVE_KERNEL, "org/a", "v1", ""},
        {"/api/models/gpt2/paths-info/refs%2Fpr%2F4", NULL, SERVE_PATHS, SERVE_MODEL, "gpt2", "refs/pr/4",
         ""},
        {"/kernels/org/a/resolve/v1/b/caf%C3%A9%20%25", NULL, SERVE_RESOLVE, SERVE_KERNEL, "org/a", "v1",
         "b/caf\xC3\xA9 %"},
        {"/org/m/resolve/main/x", NULL, SERVE_RESOLVE, SERVE_MODEL, "org/m", "main", "x"},
        {"/gpt2/resolve/main/a/b", NULL, SERVE_RESOLVE, SERVE_MODEL, "gpt2", "main", "a/b"},
        {"/kernels/m/resolve/main/x", NULL, SERVE_RESOLVE, SERVE_MODEL, "kernels/m", "main", "x"},
        {"/kernels/resolve/a/resolve/main/x", NULL, SERVE_RESOLVE, SERVE_KERNEL, "resolve/a", "main", "x"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        serve_address got;
        unsigned status;
        const char *fault = serve_address_parse(&got, &status, cases[i].text, cases[i].query);
        ck_assert_msg(!fault, "%s: %s", cases[i].text, fault);
        ck_assert_uint_eq(status, 200);
        ck_assert_msg(got.what == cases[i].what && got.kind == cases[i].kind, "%s", cases[i].text);
        ck_assert_str_eq(got.id, cases[i].id);
        ck_assert_str_eq(got.revision, cases[i].revision);
        ck_assert_str_eq(got.path, cases[i].path);
    }
}
END_TEST

START_TEST(addresses_that_are_none)
{
    static const struct {
        const char *text;
        unsigned status;
    } cases[] = {
        {"", 400},
        {"x", 400},
        {"//", 400},
        {"/api/", 400},
        {"/a/b/resolve/main/..", 400},
        {"/a/b/resolve/main/%2e%2e%2fx", 400},
        {"/a/b/resolve/main/x%00", 400},
        {"/a/b/resolve/main/%0a", 400},
        {"/a/b/resolve/main/%7F", 400},
        {"/a/b/resolve/main/%c0%af", 400},
        {"/a/b/resolve/main/%ed%a0%80", 400},
        {"/a/b/resolve/main/%4", 400},
        {"/a/b/resolve/main/a%5cb", 400},
        {"/a/b/resolve/..%2fx/y", 400},
        {"/a/.b/resolve/main/x", 400},
        {"/a/b--c/resolve/main/x", 400},
        {"/api/models/a%2fb/refs", 400},
        {"/a/b/resolve/main", 404},
        {"/api", 404},
        {"/api/kernels", 404},
        {"/api/kernels/a", 404},
        {"/api/kernels/a/b/nosuch", 404},
        {"/api/kernels/a/b/refs/x", 404},
        {"/api/kernels/a/b/revision", 404},
        {"/api/kernels/a/b/paths-info", 404},
        {"/api/kernels/a/b/paths-info/main/x", 404},
        {"/api/datasets/a/b", 404},
        {"/favicon.ico", 404},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        serve_address got;
        unsigned status;
        ck_assert_msg(serve_address_parse(&got, &status, cases[i].text, NULL) != NULL, "%s", cases[i].text);
        ck_assert_msg(status == cases[i].status, "%s: %u", cases[i].text, status);
    }
}
END_TEST

START_TEST(lengths_of_addresses)
{
    char text[4096], name[SERVE_NAME_MAX + 2];
    serve_address got;
    unsigned status;
    memset(name, 'n', sizeof(name));
    for (int over = 0; over < 2; over++) {
        snprintf(text, sizeof(text), "/api/kernels/%.*s/%.*s/tree/%0*d", SERVE_NAME_MAX, name,
                 SERVE_NAME_MAX + over, name, SERVE_REVISION_MAX, 1);
        ck_assert_int_eq(serve_address_parse(&got, &status, text, NULL) != NULL, over);
        snprintf(text, sizeof(text), "/a/b/resolve/%0*d/x", SERVE_REVISION_MAX + over, 1);
        ck_assert_int_eq(serve_address_parse(&got, &status, text, NULL) != NULL, over);
        snprintf(text, sizeof(text), "/a/b/resolve/main/%0255d/%0255d/%0255d/%0*d", 1, 1, 1, 232 + over, 1);
        ck_assert_int_eq(serve_address_parse(&got, &status, text, NULL) != NULL, over);
        snprintf(text, sizeof(text), "/a/b/resolve/main/%0*d", 255 + over, 1);
        ck_assert_int_eq(serve_address_parse(&got, &status, text, NULL) != NULL, over);
    }
}
END_TEST

START_TEST(queries)
{
    serve_address got;
    unsigned status;
    const char *tree = "/api/kernels/a/b/tree/main";
    ck_assert_ptr_null(serve_address_parse(&got, &status, tree, "recursive=true&expand=False&cursor=1000"));
    ck_assert(got.recursive && got.cursor == 1000 && !got.pull_requests);
    ck_assert_ptr_null(
        serve_address_parse(&got, &status, tree, "recursive=false&&=&x&cursor=&include_prs=1"));
    ck_assert(!got.recursive && got.cursor == 0 && got.pull_requests);
    ck_assert_ptr_null(serve_address_parse(&got, &status, tree, "cursor=9999999999999999999999&recursive=1"));
    ck_assert(got.recursive);
}
END_TEST

/* ---- what else a stranger writes ---- */

START_TEST(forms)
{
    static const struct {
        const char *form, *values; /* each behind a "|"; NULL: refused */
    } cases[] = {
        {"", ""},
        {"paths=a", "|a"},
        {"paths=a&paths=b%2Fc&expand=False", "|a|b/c"},
        {"expand=True&paths=sub+folder%2Fcaf%C3%A9+%231%25.txt", "|sub folder/caf\xC3\xA9 #1%.txt"},
        {"paths=&paths", "|"},
        {"path=a&pathsx=b&&=&paths=a=b", "|a=b"},
        {"paths=a&paths=%2", NULL},
        {"paths=%00", NULL},
        {"x=%&paths=a", "|a"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        char text[100], joined[100] = "";
        size_t count;
        strcpy(text, cases[i].form);
        int rc = serve_form_values(&count, text, "paths");
        ck_assert_msg((rc == 0) == (cases[i].values != NULL), "%s", cases[i].form);
        const char *value = text;
        for (size_t k = 0; rc == 0 && k < count; k++, value += strlen(value) + 1)
            strcat(strcat(joined, "|"), value);
        if (rc == 0) ck_assert_str_eq(joined, cases[i].values);
    }
}
END_TEST

START_TEST(pointers)
{
    static const char text[] =
        "version https://git-lfs.github.com/spec/v1\n"
        "oid sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855\nsize 12345\n";
    char sha256[65];
    uint64_t size;
    ck_assert_int_eq(serve_pointer_read(sha256, &size, text, sizeof(text) - 1), 0);
    ck_assert_uint_eq(size, 12345);
    ck_assert_str_eq(sha256, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    ck_assert_int_eq(serve_pointer_size(12345), sizeof(text) - 1);
    for (size_t n = 0; n < sizeof(text) - 1; n++)
        ck_assert_int_eq(serve_pointer_read(sha256, &size, text, n), -1);
    char oid[41]; /* git hash-object of the text above */
    ck_assert_int_eq(serve_pointer_oid(oid, sha256, 12345, NULL), KHUB_OK);
    ck_assert_str_eq(oid, "dd701ed358f12e9fe9590ad72a93201f380b82a9");
}
END_TEST

START_TEST(etags)
{
    ck_assert(serve_etag_matches("\"a\"", "a") && serve_etag_matches("W/\"a\"", "a") &&
              serve_etag_matches("*", "a"));
    ck_assert(serve_etag_matches("\"b\" , \"a\"", "a") && serve_etag_matches("a", "a"));
    ck_assert(!serve_etag_matches("", "a") && !serve_etag_matches("\"ab\"", "a") &&
              !serve_etag_matches("\"", "a"));
}
END_TEST

START_TEST(what_a_revision_means)
{
    serve_refs *refs;
    khub_error err = {0};
    const char *a = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
               *b = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";
    ck_khub_ok(serve_refs_new(&refs, &err), &err);
    ck_khub_ok(serve_refs_add(refs, "v9", a, SERVE_BRANCH, &err), &err);
    ck_khub_ok(serve_refs_add(refs, "v10", b, SERVE_BRANCH, &err), &err);
    ck_khub_ok(serve_refs_add(refs, "v10", a, SERVE_TAG, &err), &err);
    ck_khub_ok(serve_refs_add(refs, "refs/pr/4", a, SERVE_OTHER_REF, &err), &err);
    serve_refs_sort(refs);
    ck_assert_str_eq(serve_refs_commit(refs, ""), b); /* the highest version: there is no main */
    ck_assert_str_eq(serve_refs_commit(refs, "v10"), b);
    ck_assert_str_eq(serve_refs_commit(refs, "refs/tags/v10"), a);
    ck_assert_str_eq(serve_refs_commit(refs, "refs/heads/v9"), a);
    ck_assert_str_eq(serve_refs_commit(refs, "refs/pr/4"), a);
    ck_assert_str_eq(serve_refs_commit(refs, b), b);
    ck_assert_ptr_null(serve_refs_commit(refs, "main"));
    ck_assert_ptr_null(serve_refs_commit(refs, "bbbb"));
    serve_refs_free(refs);
}
END_TEST

/* ---- memory that runs out ---- */

static char top[] = "/tmp/khub-serve-XXXXXX";

static void put_file(const char *path, const char *content)
{
    char full[512];
    snprintf(full, sizeof(full), "%s/%s", top, path);
    for (char *slash = full + strlen(top) + 1; (slash = strchr(slash, '/')); *slash++ = '/') {
        *slash = 0;
        mkdir(full, 0777);
    }
    FILE *file = fopen(full, "w");
    ck_assert_ptr_nonnull(file);
    fputs(content, file);
    fclose(file);
}

static void make_folder(void)
{
    khub_error err = {0};
    ck_assert_ptr_nonnull(mkdtemp(top));
    put_file("org/a/build/x/metadata.json", "{\"version\": 3}");
    put_file("org/a/build/x/lib.so", "not really");
    put_file("org/a/README.md", "text");
    ck_khub_ok(serve_root_open(top, &err), &err);
}

static int list_folder(void *user, khub_error *err)
{
    (void)user;
    serve_listing *listing;
    int rc = serve_folder_list(&listing, "org/a", NULL, NULL, err);
    if (rc == KHUB_OK) ck_assert_uint_eq(listing->files, 3);
    if (rc == KHUB_OK) serve_listing_free(listing);
    return rc;
}

/* The names of what was hashed long enough ago are kept: so the files are read in the first run only. */
static void settle(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
}

START_TEST(listing_without_memory)
{
    make_folder();
    settle();
    fm_fail_each_own(list_folder, NULL);
}
END_TEST

static int name_file(void *user, khub_error *err)
{
    serve_identity identity;
    serve_names names;
    put_file(user, "changed again");
    int fd = serve_root_file(&identity, user);
    ck_assert_int_ge(fd, 0);
    serve_close(fd);
    return serve_names_of(&names, user, &identity, 1, err);
}

START_TEST(hashing_without_memory)
{
    make_folder();
    char path[] = "org/a/build/x/lib.so";
    fm_fail_each_own(name_file, path);
}
END_TEST

static int find(void *user, khub_error *err)
{
    serve_found found;
    serve_how how = serve_find(&found, user, 1, err);
    if (how == SERVE_FOUND) {
        ck_assert_uint_eq(found.refs->count, 2);
        ck_assert_str_eq(found.refs->refs[1].name, "v3");
        ck_assert_uint_eq(found.listing->files, 3);
    }
    serve_found_free(&found);
    serve_repositories_free();
    return how == SERVE_FOUND ? KHUB_OK : err->code;
}

START_TEST(finding_without_memory)
{
    serve_address address;
    unsigned status;
    make_folder();
    settle();
    ck_assert_ptr_null(serve_address_parse(&address, &status, "/api/kernels/org/a/tree/v3", NULL));
    fm_fail_each_own(find, &address);
}
END_TEST

UNIT("serve", addresses, addresses_that_are_none, lengths_of_addresses, queries, forms, pointers, etags,
     what_a_revision_means, listing_without_memory, hashing_without_memory, finding_without_memory)
