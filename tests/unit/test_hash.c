/* Hashes against the standards' examples (FIPS 180-4) and what git and coreutils say. */
#include "failing_memory.h"
#include "unit.h"

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

UNIT("hash", known_values, million, size_counts_for_git, kinds, failing_memory, free_of_nothing)
