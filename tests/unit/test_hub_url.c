/* Addresses: what is one, where a redirect leads (RFC 3986), and how the API's are spelled. */
#include "failing_memory.h"
#include "unit.h"

#include "base/memory.h"
#include "hub/address.h"
#include "hub/url.h"

START_TEST(parts)
{
    static const struct {
        const char *text, *host, *path;
        int https;
        unsigned port;
    } table[] = {
        {"http://h", "h", "", 0, 80},
        {"https://hub.example/a?b", "hub.example", "/a?b", 1, 443},
        {"HTTP://h:8080?x", "h", "?x", 0, 8080},
        {"http://[::1]:1/", "[::1]", "/", 0, 1},
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
        khub__url url;
        ck_assert_int_eq(khub__url_parse(&url, table[i].text), 0);
        ck_assert_uint_eq(url.host_length, strlen(table[i].host));
        ck_assert_int_eq(memcmp(url.host, table[i].host, url.host_length), 0);
        ck_assert_str_eq(url.path, table[i].path);
        ck_assert_int_eq(url.https, table[i].https);
        ck_assert_uint_eq(url.port, table[i].port);
    }
}
END_TEST

START_TEST(addresses_that_are_none)
{
    static const char *const table[] = {
        "",
        "h",
        "ftp://h",
        "file:///x",
        "http:/h",
        "http:///x",
        "http://u@h",
        "http://u:p@h",
        "http://h:x",
        "http://h:0/",
        "http://h:65536",
        "http://h:123456",
        "http://h\\@evil/",
        "http://h /",
        "http://h/\xC3\xA4",
        "http://h/a\nb",
        "http://[::1",
        "http://[]/",
        "http://h:80:80/",
        "http://h#x",
        "http://h/<",
        "javascript:1",
    };
    khub__url url;
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
        ck_assert_msg(khub__url_parse(&url, table[i]) != 0, "\"%s\" was taken", table[i]);
    char *big = khub__malloc(KHUB__URL_MAX + 2);
    memset(big, 'x', KHUB__URL_MAX + 1);
    memcpy(big, "http://h/", 9);
    big[KHUB__URL_MAX + 1] = 0;
    ck_assert_int_ne(khub__url_parse(&url, big), 0);
    big[KHUB__URL_MAX] = 0;
    ck_assert_int_eq(khub__url_parse(&url, big), 0);
    khub__free(big);
}
END_TEST

START_TEST(origins)
{
    static const struct {
        const char *a, *b;
        int same;
    } table[] = {
        {"http://h/a", "http://H:80/b", 1}, {"https://h", "https://h:443", 1}, {"http://h", "https://h", 0},
        {"http://h", "http://h:81", 0},     {"http://h", "http://hh", 0},      {"http://hh", "http://h", 0},
        {"https://h:80", "http://h:80", 0}, {"http://h.", "http://h", 0},      {"http://a.h", "http://h", 0},
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
        khub__url a, b;
        ck_assert_int_eq(khub__url_parse(&a, table[i].a) | khub__url_parse(&b, table[i].b), 0);
        ck_assert_int_eq(khub__url_same_origin(&a, &b), table[i].same);
    }
}
END_TEST

START_TEST(redirects)
{
    static const struct {
        const char *base, *location, *to;
    } table[] = {
        {"http://h/a/b?c", "http://other/x", "http://other/x"},
        {"http://h/a/b?c", "https://other/x", "https://other/x"},
        {"http://h/a/b?c", "HTTP://Other/x", "http://Other/x"},
        {"http://h/a/b?c", "//other:1/x", "http://other:1/x"},
        {"https://h/a/b?c", "/x?y", "https://h/x?y"},
        {"http://h/a/b?c", "x", "http://h/a/x"},
        {"http://h/a/b?c", "../x", "http://h/a/../x"},
        {"http://h/a/b?c", "?d", "http://h/a/b?d"},
        {"http://h/a/b?c", "#f", "http://h/a/b?c"},
        {"http://h", "x", "http://h/x"},
        {"http://h/a", "/x y/\xC3\xA4#f", "http://h/x%20y/%C3%A4"},
        {"http://h/a", "/x%20y", "http://h/x%20y"},
        {"http://h/a", "/x|y", "http://h/x%7Cy"},
        {"https://h/a", "http://h/a", NULL},
        {"http://h/a", "file:///etc/passwd", NULL},
        {"http://h/a", "ftp://h/", NULL},
        {"http://h/a", "mailto:x", NULL},
        {"http://h/a", "http://", NULL},
        {"http://h/a", "//", NULL},
        {"http://h/a", "http:/x", NULL},
        {"http://h/a", "http://u@h/", NULL},
        {"http://h/a", "/\\evil", NULL},
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
        khub_error err = {0};
        char *to;
        int rc = khub__url_resolve(&to, table[i].base, table[i].location, &err);
        ck_assert_msg((rc == KHUB_OK) == (table[i].to != NULL), "%s: %s", table[i].location, err.message);
        if (rc == KHUB_OK)
            ck_assert_str_eq(to, table[i].to);
        else
            ck_assert(rc == KHUB_E_NETWORK && !to && err.message[0]);
        khub__free(to);
    }
}
END_TEST

START_TEST(shown_without_query)
{
    char shown[208], long_text[400];
    ck_assert_str_eq(khub__url_shown(shown, "http://h/a?token=x"), "http://h/a");
    ck_assert_str_eq(khub__url_shown(shown, "http://h/\n\x1b"), "http://h/??");
    memset(long_text, 'x', 399);
    long_text[399] = 0;
    ck_assert_uint_eq(strlen(khub__url_shown(shown, long_text)), 203);
}
END_TEST

/* Frees `got` after comparing. */
static void is(char *got, const char *expected)
{
    ck_assert_str_eq(got, expected);
    khub__free(got);
}

START_TEST(words_without_a_password)
{
    static const struct {
        const char *words, *shown;
    } table[] = {
        {"Failed to connect to h port 1", "Failed to connect to h port 1"},
        {"no name matches 'h'", "no name matches 'h'"},
        {"Couldn't connect to server", "Couldn't connect to server"},
        {"the issuer is me@h", "the issuer is me@h"},
        {"scheme for 'x://me:secret@h:1'", "scheme for 'x://...@h:1'"},
        {"syntax in 'http://me:sec ret@at@h:1'", "syntax in 'http://...@h:1'"},
        {"syntax in 'http://me:it's@h'", "syntax in 'http://...@h'"},
        {"syntax in 'me:secret@[::1'", "syntax in '...@[::1'"},
        {"syntax in 'http://@h'", "syntax in 'http://@h'"},
        {"syntax in 'http://m@h'", "syntax in 'http://.@h'"},
        {"can't speak to http://me:secret@h", "can't speak to http://...@h"},
        {"syntax in 'http://me:secret and more that is cut", "syntax in 'http://..."},
        {"", ""},
    };
    char words[64];
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
        khub__copy(words, sizeof(words), table[i].words);
        khub__url_hide_user(words);
        ck_assert_str_eq(words, table[i].shown);
    }
}
END_TEST

START_TEST(addresses)
{
    khub__repo kernel = {KHUB__REPO_KERNEL, "o/n"}, model = {KHUB__REPO_MODEL, "o/n"};
    is(khub__address_refs("http://h/p", &kernel), "http://h/p/api/kernels/o/n/refs");
    is(khub__address_revision("http://h", &model, "refs/pr/4"),
       "http://h/api/models/o/n/revision/refs%2Fpr%2F4");
    is(khub__address_tree("http://h", &kernel, "abc"), "http://h/api/kernels/o/n/tree/abc?recursive=true");
    is(khub__address_overview("http://h", "o"), "http://h/api/organizations/o/overview");
    is(khub__address_file("http://h", &kernel, "abc", "a b/\xC3\xA4?#%"),
       "http://h/kernels/o/n/resolve/abc/a%20b/%C3%A4%3F%23%25");
    is(khub__address_file("http://h", &model, "abc", "f"), "http://h/o/n/resolve/abc/f");
}
END_TEST

START_TEST(next_pages)
{
    static const struct {
        const char *endpoint, *next, *to;
    } table[] = {
        {"http://h", "http://h/api?c=1", "http://h/api?c=1"},
        {"http://h", "https://hub.example/api?c=1", "http://h/api?c=1"},
        {"http://h", "http://h:99/api?c=1", "http://h/api?c=1"},
        {"http://h/p", "https://hub.example/api?c=1", "http://h/p/api?c=1"},
        {"http://h/p", "https://hub.example/p/api?c=1", "http://h/p/api?c=1"},
        {"http://h/p", "https://hub.example/pq/api", "http://h/p/pq/api"},
        {"http://h", "https://hub.example?c=1", "http://h?c=1"},
        {"https://h", "http://h/api?c=1", "https://h/api?c=1"},
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
        khub_error err = {0};
        char *to, page[64];
        snprintf(page, sizeof(page), "%s/api?first", table[i].endpoint);
        ck_khub_ok(khub__address_page(&to, table[i].endpoint, page, table[i].next, &err), &err);
        is(to, table[i].to);
    }
}
END_TEST

START_TEST(repository_of_an_address)
{
    khub__repo repo;
    ck_assert(khub__address_repo(&repo, "http://h/p", KHUB__REPO_KERNEL, "refs",
                                 "http://h/p/api/kernels/o/n/refs"));
    ck_assert_str_eq(repo.id, "o/n");
    ck_assert(khub__address_repo(&repo, "http://h", KHUB__REPO_KERNEL, "tree/abc",
                                 "http://h/api/kernels/a/b/tree/abc?recursive=true"));
    ck_assert_str_eq(repo.id, "a/b");
    ck_assert(!khub__address_repo(&repo, "http://h", KHUB__REPO_KERNEL, "tree/abc",
                                  "http://h/api/kernels/a/b/tree/abd?x=/tree/abc"));
    static const char *const none[] = {
        "http://h/p/api/kernels/refs",       "http://h/p/api/models/o/n/refs",
        "http://h/api/kernels/o/n/refs",     "http://x/p/api/kernels/o/n/refs",
        "http://h/p/api/kernels/o/n/xrefs",  "http://h/p/api/kernels/o/../refs",
        "http://h/p/api/kernels/o/n?/refs",  "http://h/p/api/kernels//refs",
        "http://h/p/api/kernels/o/n@1/refs", "http://h/p/api/kernels/o/n/efs"};
    for (size_t i = 0; i < sizeof(none) / sizeof(*none); i++)
        ck_assert_msg(!khub__address_repo(&repo, "http://h/p", KHUB__REPO_KERNEL, "refs", none[i]), "%s",
                      none[i]);
}
END_TEST

static int spell(void *user, khub_error *err)
{
    (void)user;
    khub__repo kernel = {KHUB__REPO_KERNEL, "o/n"};
    char *to = NULL, *file = khub__address_file("http://h", &kernel, "abc", "f"), *page = NULL;
    int rc = file ? khub__url_resolve(&to, file, "/x", err) : KHUB_E_NOMEM;
    if (!file) err->code = rc;
    if (rc == KHUB_OK) rc = khub__address_page(&page, "http://h", file, "https://x/y", err);
    khub__free(file);
    khub__free(to);
    khub__free(page);
    return rc;
}

START_TEST(failing_memory)
{
    fm_fail_each(spell, NULL);
}
END_TEST

UNIT("hub_url", parts, addresses_that_are_none, origins, redirects, shown_without_query,
     words_without_a_password, addresses, next_pages, repository_of_an_address, failing_memory)
