/* What fetching reads and matches: patterns, kernel-status.toml, versions. */
#include "unit.h"

#include "failing_memory.h"

#include "fetch/glob.h"
#include "fetch/resolve.h"
#include "fetch/snapshots.h"
#include "fetch/status.h"

#include <khub/khub.h>

#include <stdio.h>
#include <stdlib.h>

/* Expected as Python's fnmatch.fnmatchcase says. */
START_TEST(globs)
{
    static const struct {
        const char *pattern, *path;
        int takes;
    } table[] = {
        {"", "", 1},
        {"", "a", 0},
        {"*", "", 1},
        {"*", "a/b/c", 1},
        {"build/*", "build/x/y.so", 1},
        {"build/*", "builds/x", 0},
        {"*.json", "build/a/metadata.json", 1},
        {"*.json", "metadata.json.sigstore", 0},
        {"a?c", "abc", 1},
        {"a?c", "ac", 0},
        {"model-*-of-*.safetensors", "model-00001-of-00002.safetensors", 1},
        {"*a*b", "xaab", 1},
        {"*a*b", "xaba", 0},
        {"[a-c]x", "bx", 1},
        {"[a-c]x", "dx", 0},
        {"[!a-c]x", "dx", 1},
        {"[!a-c]x", "ax", 0},
        {"[]]x", "]x", 1},
        {"[", "[", 1},
        {"[a", "[a", 1},
        {"\xff*", "\xff\xfe", 1},
        {"build/x/", "build/x/y/z", 1}, /* the peers' own addition: all below a folder */
        {"build/x/", "build/xy/z", 0},
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
        ck_assert_msg(khub__glob(table[i].pattern, table[i].path) == table[i].takes, "%s against %s",
                      table[i].pattern, table[i].path);
}
END_TEST

START_TEST(globs_that_explode_elsewhere)
{
    char pattern[201], path[2001];
    memset(path, 'a', 2000);
    path[2000] = 0;
    for (int i = 0; i < 100; i++)
        memcpy(pattern + 2 * i, "a*", 2);
    pattern[199] = 'b'; /* a*a*…a*ab: backtracking into every star would take for ever */
    pattern[200] = 0;
    ck_assert_int_eq(khub__glob(pattern, path), 0);
}
END_TEST

START_TEST(versions)
{
    ck_assert_int_eq(khub__version_of("v0"), 0);
    ck_assert_int_eq(khub__version_of("v12"), 12);
    static const char *const none[] = {
        "", "v", "1", "v01", "v-1", "v1x", "V1", "main", "v1.0", "v 1", "v99999999999999999999"};
    for (size_t i = 0; i < sizeof(none) / sizeof(*none); i++)
        ck_assert_msg(khub__version_of(none[i]) == -1, "%s", none[i]);
}
END_TEST

START_TEST(freshness)
{
    unsetenv("KHUB_REFRESH_SECONDS");
    ck_assert_int_eq(khub__refresh_seconds(), 600);
    setenv("KHUB_REFRESH_SECONDS", "0", 1);
    ck_assert_int_eq(khub__refresh_seconds(), 0);
    setenv("KHUB_REFRESH_SECONDS", "86400", 1);
    ck_assert_int_eq(khub__refresh_seconds(), 86400);
    static const char *const nonsense[] = {"", "-1", "1h", "soon"};
    for (size_t i = 0; i < sizeof(nonsense) / sizeof(*nonsense); i++) {
        setenv("KHUB_REFRESH_SECONDS", nonsense[i], 1);
        ck_assert_int_eq(khub__refresh_seconds(), 600);
    }
}
END_TEST

static int parse_status(khub__status *out, const char *text, khub_error *err)
{
    return khub__status_parse(out, text, strlen(text), "kernel-status.toml", err);
}

START_TEST(redirects)
{
    khub__status status;
    khub_error err = {0};
    ck_khub_ok(parse_status(&status, "kind = \"redirect\"\ndestination = \"org/name\"\n", &err), &err);
    ck_assert_str_eq(status.destination, "org/name");
    ck_assert_str_eq(status.revision, "main"); /* as the peer has it when nothing is said */
    ck_khub_ok(parse_status(&status,
                            "# moved\r\n\r\nkind='redirect' # yes\r\nwhy = \"told \\\"so\\\"\"\r\n"
                            "\tdestination\t=\t\"o\\\\/x\"\r\nrevision = 'v2'\r\n[later]\r\nkind = 1\r\n",
                            &err),
               &err);
    ck_assert_str_eq(status.destination, "o\\/x");
    ck_assert_str_eq(status.revision, "v2");
}
END_TEST

START_TEST(statuses_that_are_none)
{
    static const char *const table[][2] = {
        {"", "\"kind\" is missing"},
        {"kind = \"redirect\"", "\"destination\" is missing"},
        {"kind = redirect", ":1: a string in quotes"},
        {"\n\nkind \"redirect\"", ":3: \"=\" is expected"},
        {"kind = \"redirect", "doesn't end on its line"},
        {"kind = \"a\" b", "text follows"},
        {"kind = \"\\q\"", "escape"},
        {"kind = \"redirect\"\nkind = \"redirect\"", ":2: the key is there twice"},
    };
    khub__status status;
    khub_error err = {0};
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
        ck_khub_fails(parse_status(&status, table[i][0], &err), &err, KHUB_E_FORMAT, table[i][1]);
    ck_khub_ok(parse_status(&status, "kind = \"archived\"\ndestination = \"org/name\"", &err), &err);
    ck_assert_str_eq(status.destination, ""); /* of tomorrow: a notice, and the repository is used */
    char big[700];
    int n = snprintf(big, sizeof(big), "kind = \"redirect\"\ndestination = \"%0600d\"", 0);
    ck_khub_fails(khub__status_parse(&status, big, (size_t)n, "f", &err), &err, KHUB_E_FORMAT,
                  "f:2: the string is too long");
}
END_TEST

UNIT("fetch", globs, globs_that_explode_elsewhere, versions, freshness, redirects, statuses_that_are_none)
