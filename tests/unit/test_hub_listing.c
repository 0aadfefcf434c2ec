/* The readers of answers: heads, links, JSON. */
#include "failing_memory.h"
#include "unit.h"

#include "base/memory.h"
#include "hub/answer.h"
#include "hub/listing.h"

#define COMMIT "0123456789abcdef0123456789abcdef01234567"
#define SHA256 "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"

/* Reads lines that end in "\n". */
static int read_head(khub__answer *answer, const char *text, khub_error *err)
{
    int rc = KHUB_OK;
    khub__answer_clear(answer);
    while (*text && rc == KHUB_OK) {
        size_t length = strcspn(text, "\n") + 1;
        rc = khub__answer_line(answer, text, length, err);
        text += length;
    }
    return rc;
}

static const char whole_head[] = "HTTP/1.1 100 Continue\r\nETag: \"old\"\r\n\r\n"
                                 "HTTP/2 302 \r\n"
                                 "location: http://x/y\r\n"
                                 "X-Repo-Commit: " COMMIT "\r\n"
                                 "x-linked-etag: W/\"" SHA256 "\"\r\n"
                                 "ETag: \"other\"\r\n"
                                 "X-Linked-Size: 123456789012\r\n"
                                 "Content-Length:0\r\n"
                                 "Content-Range: bytes 5-9/100\r\n"
                                 "X-Error-Code: RepoNotFound\r\n"
                                 "X-Error-Message: a\x01"
                                 "b\xC3\r\n"
                                 "Content-Encoding: gzip\r\n"
                                 "Link: <http://x/?c=1>; rel=\"next\"\r\n\r\n";

START_TEST(head)
{
    khub_error err = {0};
    khub__answer a = {0};
    ck_khub_ok(read_head(&a, whole_head, &err), &err);
    ck_assert_int_eq(a.status, 302);
    ck_assert_str_eq(a.location, "http://x/y");
    ck_assert_str_eq(a.commit, COMMIT);
    ck_assert_str_eq(a.etag, SHA256);
    ck_assert_uint_eq(a.linked_size, 123456789012);
    ck_assert_uint_eq(a.length, 0);
    ck_assert_uint_eq(a.range_from, 5);
    ck_assert_uint_eq(a.range_total, 100);
    ck_assert_str_eq(a.error_code, "RepoNotFound");
    ck_assert_str_eq(a.error_message, "a?b?");
    ck_assert_int_eq(a.encoded, 1);
    ck_assert_str_eq(a.next, "http://x/?c=1");
    khub__answer_clear(&a);
}
END_TEST

START_TEST(numbers_that_are_none)
{
    static const char *const table[] = {
        "", "-1", "+1", "1x", "0x10", "99999999999999999999", "1 2", "9223372036854775808"};
    khub_error err = {0};
    khub__answer a = {0};
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
        char line[64];
        khub__answer_clear(&a);
        int n = snprintf(line, sizeof(line), "Content-Length: %s\r\n", table[i]);
        ck_khub_ok(khub__answer_line(&a, line, (size_t)n, &err), &err);
        ck_assert_uint_eq(a.length, UINT64_MAX);
    }
    khub__answer_clear(&a);
}
END_TEST

START_TEST(heads_too_long)
{
    khub_error err = {0};
    khub__answer a = {0};
    static char line[KHUB__HEADER_MAX + 1];
    memset(line, 'x', sizeof(line));
    khub__answer_clear(&a);
    ck_khub_fails(khub__answer_line(&a, line, sizeof(line), &err), &err, KHUB_E_FORMAT, "8 KiB");
    int rc = KHUB_OK, lines = 0;
    for (khub__answer_clear(&a); rc == KHUB_OK && lines < 1000; lines++)
        rc = khub__answer_line(&a, line, 1024, &err);
    ck_assert_int_eq(rc, KHUB_E_FORMAT);
    ck_assert_int_eq(lines, 101);
    khub__answer_clear(&a);
}
END_TEST

START_TEST(links)
{
    static const struct {
        const char *value, *next;
    } table[] = {
        {"<u>; rel=\"next\"", "u"},
        {"<u>;rel=next", "u"},
        {"<u> ; rel = \"next\"", "u"},
        {"<u>; rel=\"prev next\"", "u"},
        {"<u>; rel=NEXT", "u"},
        {"<p>; rel=\"prev\", <u>; rel=\"next\"", "u"},
        {"<p>; rel=\"prev\"; title=\"a, <b>; rel=next\", <u>; title=x; rel=\"next\"", "u"},
        {", ,<u>; rel=next,", "u"},
        {"<u?a=1,2;3>; rel=\"next\"", "u?a=1,2;3"},
        {"<u>; title=\"\\\"\"; rel=next", "u"},
        {"<u>", NULL},
        {"<u>; rel=\"prev\"", NULL},
        {"<u>; rel=prev; rel=next", NULL},
        {"<u>; rel=\"nextish\"", NULL},
        {"<u>; title=\"rel=next\"", NULL},
        {"<>; rel=next", NULL},
        {"<u; rel=next", NULL},
        {"u; rel=next", NULL},
        {"<u> rel=next", NULL},
        {"", NULL},
        {"<", NULL},
        {"<u>; rel=\"next", "u"},
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
        size_t length = 0;
        const char *next = khub__link_next(&length, table[i].value, strlen(table[i].value));
        ck_assert_msg((next != NULL) == (table[i].next != NULL), "%s", table[i].value);
        if (next) ck_assert(length == strlen(table[i].next) && !memcmp(next, table[i].next, length));
    }
}
END_TEST

static const char refs_json[] =
    "{\"branches\":[{\"name\":\"main\",\"ref\":\"refs/heads/main\",\"targetCommit\":\"" COMMIT
    "\"},{\"name\":\"../x\",\"targetCommit\":\"" COMMIT
    "\"}],\"tags\":[{\"name\":\"t\",\"targetCommit\":\"" COMMIT "\"}],\"converts\":[]}";

START_TEST(branches_and_tags)
{
    khub_error err = {0};
    khub__refs refs;
    ck_khub_ok(khub__listing_refs(&refs, refs_json, strlen(refs_json), "u", &err), &err);
    ck_assert_uint_eq(refs.branch_count, 1); /* a name that can't be asked for is passed over */
    ck_assert_str_eq(refs.branches[0].name, "main");
    ck_assert_str_eq(refs.branches[0].commit, COMMIT);
    ck_assert_uint_eq(refs.tag_count, 1);
    ck_assert_str_eq(refs.moved_to.id, "");
    khub__refs_free(&refs);
    ck_assert_ptr_null(refs.branches);
}
END_TEST

static const char page_json[] =
    "[{\"type\":\"directory\",\"path\":\"b\",\"oid\":\"x\"},{\"type\":\"file\",\"path\":\"b/"
    "c\",\"size\":130,\"oid\":\"" COMMIT "\",\"lfs\":{\"oid\":\"" SHA256
    "\",\"size\":9},\"xetHash\":\"xet\"},{\"type\":\"file\",\"path\":\"a\",\"size\":0,\"oid\":\"" COMMIT
    "\"}]";

START_TEST(one_page)
{
    khub_error err = {0};
    khub__tree tree = {0};
    ck_khub_ok(khub__listing_page(&tree, page_json, strlen(page_json), "u", &err), &err);
    ck_assert_uint_eq(tree.count, 2);
    ck_assert_uint_eq(tree.files[0].size, 9); /* of the content, not of the pointer */
    ck_assert_str_eq(tree.files[0].sha256, SHA256);
    ck_assert_str_eq(tree.files[0].blob_id, COMMIT);
    ck_assert_str_eq(tree.files[0].xet_hash, "xet");
    ck_assert_str_eq(tree.files[1].sha256, "");
    ck_assert_ptr_null(tree.files[1].xet_hash);
    khub__tree_free(&tree);
}
END_TEST

START_TEST(commit_and_publisher)
{
    static const struct {
        const char *text;
        int rc, trusted;
    } table[] = {{"{}", KHUB_OK, 0},
                 {"{\"trustedKernelPublisher\":true}", KHUB_OK, 1},
                 {"{\"trustedKernelPublisher\":false}", KHUB_OK, 0},
                 {"{\"trustedKernelPublisher\":null}", KHUB_OK, 0},
                 {"{\"trustedKernelPublisher\":1}", KHUB_E_FORMAT, 0},
                 {"{\"trustedKernelPublisher\":\"true\"}", KHUB_E_FORMAT, 0},
                 {"[]", KHUB_E_FORMAT, 0},
                 {"", KHUB_E_FORMAT, 0}};
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
        int trusted = 7;
        khub_error err = {0};
        ck_assert_int_eq(khub__listing_publisher(&trusted, table[i].text, strlen(table[i].text), "u", &err),
                         table[i].rc);
        ck_assert_int_eq(trusted, table[i].trusted);
    }
    khub_error err = {0};
    char commit[KHUB__COMMIT_MAX + 1];
    static const char text[] = "{\"id\":\"x\",\"sha\":\"" COMMIT "\"}";
    ck_khub_ok(khub__listing_commit(commit, text, strlen(text), "u", &err), &err);
    ck_assert_str_eq(commit, COMMIT);
    ck_khub_fails(khub__listing_commit(commit, "{\"sha\":\"main\"}", 14, "u", &err), &err, KHUB_E_FORMAT,
                  "u: \"sha\"");
    ck_khub_fails(khub__listing_commit(commit, "{}", 2, "u", &err), &err, KHUB_E_FORMAT, "missing");
}
END_TEST

static int read_all(void *user, khub_error *err)
{
    (void)user;
    khub__refs refs = {0};
    khub__tree tree = {0};
    khub__answer answer = {0};
    int rc = read_head(&answer, whole_head, err);
    if (rc == KHUB_OK) rc = khub__listing_refs(&refs, refs_json, strlen(refs_json), "u", err);
    if (rc == KHUB_OK) rc = khub__listing_page(&tree, page_json, strlen(page_json), "u", err);
    khub__answer_clear(&answer);
    khub__refs_free(&refs);
    khub__tree_free(&tree);
    return rc;
}

START_TEST(failing_memory)
{
    fm_fail_each_own(read_all, NULL);
}
END_TEST

UNIT("hub_listing", head, numbers_that_are_none, heads_too_long, links, branches_and_tags, one_page,
     commit_and_publisher, failing_memory)
