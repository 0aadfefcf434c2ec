/* Signatures of sigstore: the readers' edges, misuse, files that aren't there or too large, memory that
 * fails. tests/oracle/test_signature.py has the thousand ways in which a bundle can be wrong. */
#include "failing_memory.h"
#include "unit.h"

#include <khub/signature.h>

#include "base/file.h"
#include "trust/sigstore/log.h"
#include "trust/sigstore/root.h"

#include <fcntl.h>
#include <pthread.h>

#define SIGNED "{\"name\": \"relu\"}\n"

static khub__span span(const char *text, size_t length)
{
    return (khub__span){(const unsigned char *)text, length};
}
#define SPAN(text) span(text, sizeof(text) - 1)

/* A file that tests/oracle/authority.py wrote. */
static const char *fixture(const char *name)
{
    static _Thread_local char path[4096];
    snprintf(path, sizeof(path), "%s/tests/signature/%s", getenv("KHUB_SOURCE"), name);
    return path;
}

static khub_trusted_root *open_root(void)
{
    khub_trusted_root *root;
    khub_error err = {0};
    ck_khub_ok(khub_trusted_root_open(&root, fixture("root.json"), &err), &err);
    return root;
}

START_TEST(lengths_have_one_form)
{
    static const struct {
        const char *bytes;
        size_t length;
        int taken;
    } cases[] = {
        {"\x04\x01x", 3, 1},
        {"\x04\x00", 2, 1},
        {"\x04\x02x", 3, 0},
        {"\x04", 1, 0},
        {"", 0, 0},
        {"\x04\x81\x01x", 4, 0}, /* the short form would do */
        {"\x04\x80x\x00\x00", 5, 0},
        {"\x04\x82\x00\x01x", 5, 0},
        {"\x04\x85\x01\x01\x01\x01\x01", 7, 0},
        {"\x1f\x01x", 3, 0},
        {"\x04\xff", 2, 0},
        {"\x04\x84\xff\xff\xff\xff", 6, 0},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        khub__span from = span(cases[i].bytes, cases[i].length), content;
        int tag = from.length ? from.data[0] : 4;
        ck_assert_msg((khub__der_take(&from, tag, &content) == 0) == cases[i].taken, "case %zu", i);
        ck_assert_uint_eq(from.length, cases[i].taken ? 0 : cases[i].length);
    }
    char long_one[132] = "\x04\x81\x80"; /* 128 bytes: the shortest that need a second byte for it */
    khub__span from = span(long_one, 131), content;
    ck_assert_int_eq(khub__der_take(&from, 4, &content), 0);
    ck_assert_uint_eq(content.length, 128);
}
END_TEST

START_TEST(elements_have_one_form)
{
    static const struct {
        const char *bytes;
        size_t length;
        int strict;
    } cases[] = {
        {"\x02\x01\x00", 3, 1},
        {"\x02\x02\x00\x7f", 4, 0},
        {"\x02\x02\x00\x80", 4, 1},
        {"\x02\x02\xff\x80", 4, 0},
        {"\x02\x00", 2, 0},
        {"\x01\x01\xff", 3, 1},
        {"\x01\x01\x01", 3, 0},
        {"\x05\x00", 2, 1},
        {"\x05\x01\x00", 3, 0},
        {"\x06\x01\x80", 3, 0},
        {"\x06\x02\x80\x01", 4, 0},
        {"\x06\x02\x81\x01", 4, 1},
        {"\x03\x02\x07\x80", 4, 1},
        {"\x03\x02\x07\xc0", 4, 0},
        {"\x03\x01\x00", 3, 1},
        {"\x03\x01\x01", 3, 0},
        {"\x0c\x02\xc3\xb6", 4, 1},
        {"\x0c\x02\xc0\x80", 4, 0},
        {"\x0c\x03\xed\xa0\x80", 5, 0},
        {"\x13\x01*", 3, 0},
        {"\x16\x01\xe4", 3, 0},
        {"\x31\x06\x02\x01\x01\x02\x01\x02", 8, 1},
        {"\x31\x06\x02\x01\x02\x02\x01\x01", 8, 0}, /* a set's order */
        {"\x31\x06\x02\x01\x01\x02\x01\x01", 8, 0},
        {"\x30\x06\x02\x01\x02\x02\x01\x01", 8, 1},
        {"\x30\x03\x02\x01\x02\x00", 6, 0}, /* a byte after it */
        {"\x24\x03\x04\x01x", 5, 0},        /* a string in pieces */
        {"\x17\x0d"
         "260230120000Z",
         15, 0},
        {"\x17\x0d"
         "240229120000Z",
         15, 1},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
        ck_assert_msg(khub__der_strict(span(cases[i].bytes, cases[i].length)) == cases[i].strict, "case %zu",
                      i);
    char deep[80];
    for (size_t i = 0; i < 40; i++) {
        deep[2 * i] = 0x30;
        deep[2 * i + 1] = (char)(78 - 2 * i);
    }
    ck_assert(!khub__der_strict(span(deep, 80)));
    ck_assert(khub__der_strict(span(deep + 40, 40)));
}
END_TEST

/* Seconds: `date -u -d … +%s`. */
START_TEST(times)
{
    static const struct {
        const char *text;
        int64_t us; /* -1: none */
    } cases[] = {
        {"2021-03-07T03:20:29.000Z", INT64_C(1615087229) * 1000000},
        {"2021-03-07T03:20:29Z", INT64_C(1615087229) * 1000000},
        {"2025-06-12T12:02:20.25Z", INT64_C(1749729740) * 1000000 + 250000},
        {"2025-06-12T12:02:20.123456789Z", INT64_C(1749729740) * 1000000 + 123456},
        {"2000-02-29T00:00:00Z", INT64_C(951782400) * 1000000},
        {"9999-12-31T23:59:59Z", INT64_C(253402300799) * 1000000},
        {"1900-02-29T00:00:00Z", -1},
        {"2023-02-29T00:00:00Z", -1},
        {"2021-13-07T03:20:29Z", -1},
        {"2021-03-07T24:20:29Z", -1},
        {"2021-03-07T03:60:29Z", -1},
        {"2021-03-07T03:20:60Z", -1},
        {"2021-03-07T03:20:29", -1},
        {"2021-03-07T03:20:29.Z", -1},
        {"2021-03-07T03:20:29.5", -1},
        {"2021-03-07T03:20:29+00:00", -1},
        {"2021-03-07 03:20:29Z", -1},
        {"21-03-07T03:20:29Z", -1},
        {"-021-03-07T03:20:29Z", -1},
        {"", -1},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        int64_t us = -1;
        ck_assert_msg((khub__root_time(&us, cases[i].text) == 0) == (cases[i].us >= 0), "%s", cases[i].text);
        ck_assert_msg(us == cases[i].us, "%s", cases[i].text);
    }
}
END_TEST

/* A tree with no entries has no place for one; the largest index needs 63 hashes. */
START_TEST(proofs_of_other_lengths)
{
    khub_trusted_root *root = open_root();
    static const struct {
        int64_t index, size;
        size_t hashes;
    } cases[] = {{0, 1, 0}, {INT64_MAX - 1, INT64_MAX, 62}, {0, INT64_MAX, 63}, {5, 6, 2}, {4, 5, 1}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        static unsigned char hash[32];
        khub__verdict verdict = {0};
        khub__entry e = {.proof_index = cases[i].index,
                         .tree_size = cases[i].size,
                         .root_hash = {hash, 32},
                         .body = SPAN("x")};
        char words[80];
        snprintf(words, sizeof(words), "it has 64 hashes, %zu are expected", cases[i].hashes);
        e.hash_count = 64;
        ck_assert_int_eq(khub__log_proves(&root->logs.items[0], &e, &verdict), -1);
        ck_assert_msg(strstr(verdict.words, words) != NULL, "%s: %s", words, verdict.words);
    }
    khub_trusted_root_free(root);
}
END_TEST

START_TEST(reasons_have_names)
{
    for (int i = 0; i <= KHUB_SIGNATURE_OTHER_ENTRY; i++)
        for (int k = 0; k < i; k++)
            ck_assert_str_ne(khub_signature_reason_name((khub_signature_reason)i),
                             khub_signature_reason_name((khub_signature_reason)k));
    ck_assert_str_eq(khub_signature_reason_name((khub_signature_reason)99), "?");
    ck_assert_str_eq(khub_signature_reason_name((khub_signature_reason)-1), "?");
}
END_TEST

static int verify(const char *name, const khub_trusted_root *root, khub_error *err)
{
    khub_signature s;
    khub_signature_options options;
    KHUB_INIT(&options);
    options.root = root;
    int rc =
        khub_signature_verify_file(&s, SIGNED, sizeof(SIGNED) - 1, fixture(name), &options, "a kernel", err);
    if (rc == KHUB_OK) ck_assert_str_eq(s.ref, "refs/heads/main");
    khub_signature_free(&s);
    ck_assert_ptr_null(s.memory);
    return rc;
}

START_TEST(it_holds)
{
    khub_error err = {0};
    khub_trusted_root *root = open_root();
    for (size_t i = 0; i < 3; i++)
        ck_khub_ok(verify((const char *const[]){"0.1.json", "0.3.json", "new.json"}[i], root, &err), &err);
    ck_assert_int_eq(khub_trusted_root_about(root).newest_s, 1609459200); /* 2021-01-01 */
    ck_assert_str_eq(khub_trusted_root_about(root).path, fixture("root.json"));
    khub_trusted_root_free(root);
}
END_TEST

START_TEST(no_bundle_is_a_verdict)
{
    khub_error err = {0};
    khub_trusted_root *root = open_root();
    ck_khub_fails(verify("none.json", root, &err), &err, KHUB_E_UNTRUSTED,
                  "a kernel: the signature doesn't count (missing)");
    khub_trusted_root_free(root);
}
END_TEST

/* 1 GB is neither read nor taken memory for. */
START_TEST(a_bundle_of_1_gb)
{
    char path[] = "/tmp/khub-signature-XXXXXX";
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(ftruncate(fd, INT64_C(1) << 30), 0);
    close(fd);
    khub_error err = {0};
    khub_signature s;
    khub_signature_options options;
    KHUB_INIT(&options);
    khub_trusted_root *root = open_root();
    options.root = root;
    fm_install();
    long before = atomic_load(&fm_count);
    ck_khub_fails(khub_signature_verify_file(&s, "", 0, path, &options, NULL, &err), &err, KHUB_E_UNTRUSTED,
                  "1073741824 bytes");
    ck_assert_int_lt(atomic_load(&fm_count) - before, 4);
    ck_assert_int_eq(s.reason, KHUB_SIGNATURE_TOO_LARGE);
    khub_signature_free(&s);
    khub_set_allocator(NULL);
    khub_trusted_root_free(root);
    unlink(path);
}
END_TEST

START_TEST(misuse)
{
    khub_error err = {0};
    khub_signature s;
    khub_trusted_root *root = open_root(), *none;
    struct {
        khub_signature_options options;
        int more;
    } large;
    memset(&large, 0, sizeof(large)); /* its padding too */
    large.options.root = root;
    large.options.struct_size = sizeof(large);
    ck_khub_fails(khub_signature_verify(&s, "", 0, "", 0, &large.options, NULL, &err), &err, KHUB_E_UNTRUSTED,
                  "not-json");
    khub_signature_free(&s);
    large.more = 1;
    ck_khub_fails(khub_signature_verify(&s, "", 0, "", 0, &large.options, NULL, &err), &err, KHUB_E_INVAL,
                  "doesn't know");
    large.options.struct_size = sizeof(large.options);
    const khub_identity anybody[] = {{.issuer = "https://github.com"},
                                     {.repository = "https://github.com/a/b"}};
    large.options.identity_count = 1;
    for (size_t i = 0; i < 2; i++) {
        large.options.identities = &anybody[i];
        ck_khub_fails(khub_signature_verify(&s, "", 0, "", 0, &large.options, NULL, &err), &err, KHUB_E_INVAL,
                      "an issuer");
    }
    ck_khub_fails(khub_signature_verify(NULL, "", 0, "", 0, NULL, NULL, &err), &err, KHUB_E_INVAL, "");
    ck_khub_fails(khub_signature_verify(&s, NULL, 1, "", 0, NULL, NULL, &err), &err, KHUB_E_INVAL, "");
    ck_khub_fails(khub_signature_verify_file(&s, "", 0, NULL, NULL, NULL, &err), &err, KHUB_E_INVAL, "");
    ck_khub_fails(khub_trusted_root_open(NULL, "x", &err), &err, KHUB_E_INVAL, "");
    ck_khub_fails(khub_trusted_root_open(&none, "/tmp/khub-no-such-file", &err), &err, KHUB_E_NOTFOUND,
                  "no-such-file");
    ck_assert_ptr_null(none);
    khub_trusted_root_free(root);
    khub_signature_free(NULL);
    khub_trusted_root_free(NULL);
}
END_TEST

/* A list without anybody accepts nobody. */
START_TEST(nobody_is_accepted)
{
    khub_error err = {0};
    khub_signature s;
    khub_signature_options options;
    khub_trusted_root *root = open_root();
    KHUB_INIT(&options);
    options.root = root;
    options.identities = khub_default_identities(NULL);
    ck_khub_fails(
        khub_signature_verify_file(&s, SIGNED, sizeof(SIGNED) - 1, fixture("new.json"), &options, NULL, &err),
        &err, KHUB_E_UNTRUSTED, "none of the 0 accepted identities");
    ck_assert_int_eq(s.reason, KHUB_SIGNATURE_IDENTITY);
    ck_assert_str_eq(s.repository, "https://github.com/huggingface/kernels-community");
    khub_signature_free(&s);
    khub_trusted_root_free(root);
}
END_TEST

static int open_and_verify(void *user, khub_error *err)
{
    khub_trusted_root *root;
    int rc = khub_trusted_root_open(&root, fixture("root.json"), err);
    if (rc == KHUB_OK) rc = verify(user, root, err);
    khub_trusted_root_free(root);
    return rc;
}

START_TEST(memory_fails)
{
    khub_error err = {0};
    ck_khub_ok(open_and_verify("new.json", &err), &err); /* libcrypto is open from here on */
    fm_fail_each_own(open_and_verify, "0.1.json");
    fm_fail_each_own(open_and_verify, "new.json");
}
END_TEST

static void *verify_often(void *root)
{
    khub_error err = {0};
    for (int i = 0; i < 20 && !err.code; i++)
        verify("0.1.json", root, &err);
    return err.code ? root : NULL;
}

START_TEST(threads_share_a_root)
{
    khub_trusted_root *root = open_root();
    pthread_t thread[4];
    for (size_t i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_create(&thread[i], NULL, verify_often, root), 0);
    for (size_t i = 0; i < 4; i++) {
        void *failed;
        ck_assert_int_eq(pthread_join(thread[i], &failed), 0);
        ck_assert_ptr_null(failed);
    }
    khub_trusted_root_free(root);
}
END_TEST

UNIT("signature", lengths_have_one_form, elements_have_one_form, times, proofs_of_other_lengths,
     reasons_have_names, it_holds, no_bundle_is_a_verdict, a_bundle_of_1_gb, misuse, nobody_is_accepted,
     memory_fails, threads_share_a_root)
