/* Hashes against the standards' examples (FIPS 180-4) and what git and coreutils say. */
#include "failing_memory.h"
#include "root.h"

#include "base/hash.h"

/* Hashes `text` in pieces of `step` bytes. */
static void hash_text(char hex[KHUB__HASH_HEX_MAX + 1], khub__hash_kind kind, const char *text, size_t step)
{
    khub_error err = {0};
    khub__hash *hash;
    size_t length = strlen(text);
    ck_khub_ok(khub__hash_new(&hash, kind, length, &err), &err);
    for (size_t at = 0; at < length; at += step)
        khub__hash_add(hash, text + at, step < length - at ? step : length - at);
    khub__hash_end(hash, hex);
    khub__hash_free(hash);
}

static const struct {
    khub__hash_kind kind;
    const char *text, *hex;
} known[] = {
    /* FIPS 180-4 examples of SHA-256 */
    {KHUB__HASH_SHA256, "abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
    {KHUB__HASH_SHA256, "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
     "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
    {KHUB__HASH_SHA256, "", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
    /* and of SHA-512 */
    {KHUB__HASH_SHA512, "abc",
     "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a2192992a274fc1a836ba3c23a3feebbd454d442"
     "3643c"
     "e80e2a9ac94fa54ca49f"},
    /* printf ... | git hash-object --stdin */
    {KHUB__HASH_GIT_BLOB, "", "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"},
    {KHUB__HASH_GIT_BLOB, "hello\n", "ce013625030ba8dba906f756967f9e9ca394464a"},
};

START_TEST(known_values)
{
    char hex[KHUB__HASH_HEX_MAX + 1];
    for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
        for (size_t step = 1; step <= 64; step *= 4) {
            hash_text(hex, known[i].kind, known[i].text, step);
            ck_assert_str_eq(hex, known[i].hex);
        }
}
END_TEST

/* FIPS 180-4: a million times "a". */
START_TEST(million)
{
    khub_error err = {0};
    khub__hash *hash;
    char piece[1000], hex[KHUB__HASH_HEX_MAX + 1];
    memset(piece, 'a', sizeof(piece));
    ck_khub_ok(khub__hash_new(&hash, KHUB__HASH_SHA256, 1000000, &err), &err);
    for (int i = 0; i < 1000; i++)
        khub__hash_add(hash, piece, sizeof(piece));
    khub__hash_end(hash, hex);
    khub__hash_free(hash);
    ck_assert_str_eq(hex, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}
END_TEST

/* The same million from a file, for three hashes that read it once. git: … | git hash-object --stdin */
START_TEST(a_file_for_several)
{
    static const khub__hash_kind kinds_of[] = {KHUB__HASH_SHA512, KHUB__HASH_SHA256, KHUB__HASH_GIT_BLOB};
    static const char *const expected[] = {
        ("e718483d0ce769644e2e42c7bc15b4638e1f98b13b2044285632a803afa973ebde0ff244877ea60a4cb0432ce577c31b"
         "eb009c5c2c49aa2e4eadb217ad8cc09b"),
        "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0",
        "de1fbf0c2f34f67f01f355f31ed0cf7319643c5e"};
    khub_error err = {0};
    khub__hash *hashes[3];
    khub__stream file;
    char hex[KHUB__HASH_HEX_MAX + 1], path[100];
    make_root();
    char *text = malloc(1000000);
    memset(text, 'a', 1000000);
    put_bytes("/a", text, 1000000);
    free(text);
    snprintf(path, sizeof(path), "%s/a", root);
    ck_khub_ok(khub__stream_open(&file, path, &err), &err);
    for (int i = 0; i < 3; i++)
        ck_khub_ok(khub__hash_new(&hashes[i], kinds_of[i], file.size, &err), &err);
    ck_khub_ok(khub__hash_stream(hashes, 3, &file, &err), &err);
    ck_khub_fails(khub__hash_stream(hashes, 3, &file, &err), &err, KHUB_E_FORMAT,
                  "ends 65536 bytes too early");
    khub__stream_close(&file);
    remove_root();
    for (int i = 0; i < 3; i++) {
        khub__hash_end(hashes[i], hex);
        khub__hash_free(hashes[i]);
        ck_assert_str_eq(hex, expected[i]);
    }
}
END_TEST

START_TEST(size_counts_for_git)
{
    char a[KHUB__HASH_HEX_MAX + 1], b[KHUB__HASH_HEX_MAX + 1];
    khub_error err = {0};
    khub__hash *hash;
    hash_text(a, KHUB__HASH_GIT_BLOB, "x", 1);
    ck_khub_ok(khub__hash_new(&hash, KHUB__HASH_GIT_BLOB, 2, &err), &err);
    khub__hash_add(hash, "x", 1);
    khub__hash_end(hash, b);
    khub__hash_free(hash);
    ck_assert_str_ne(a, b);
}
END_TEST

START_TEST(kinds)
{
    char name[80];
    khub__hash_kind kind = KHUB__HASH_SHA256;
    memset(name, 'a', sizeof(name));
    name[64] = 0;
    ck_assert_int_eq(khub__hash_kind_of(&kind, name), 0);
    ck_assert_int_eq(kind, KHUB__HASH_SHA256);
    name[40] = 0;
    ck_assert_int_eq(khub__hash_kind_of(&kind, name), 0);
    ck_assert_int_eq(kind, KHUB__HASH_GIT_BLOB);
    name[39] = 'A';
    ck_assert_int_eq(khub__hash_kind_of(&kind, name), -1);
    name[39] = 0;
    ck_assert_int_eq(khub__hash_kind_of(&kind, name), -1);
    ck_assert_int_eq(khub__hash_kind_of(&kind, ""), -1);
    ck_assert_int_eq(khub__hash_kind_of(&kind, "../../x"), -1);
}
END_TEST

static int new_hash(void *user, khub_error *err)
{
    (void)user;
    khub__hash *hash = NULL;
    int rc = khub__hash_new(&hash, KHUB__HASH_SHA256, 3, err);
    ck_assert_int_eq(rc == KHUB_OK, hash != NULL);
    khub__hash_free(hash);
    return rc;
}

START_TEST(failing_memory)
{
    fm_fail_each(new_hash, NULL);
}
END_TEST

START_TEST(free_of_nothing)
{
    khub__hash_free(NULL);
}
END_TEST

UNIT("hash", known_values, million, a_file_for_several, size_counts_for_git, kinds, failing_memory,
     free_of_nothing)
