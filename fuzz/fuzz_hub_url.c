/* A Location of any bytes: where it leads is http or https, never from https to http, and reads the same to
 * whoever reads it next. */
#include "base/memory.h"
#include "hub/address.h"
#include "hub/url.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(int holds)
{
    if (!holds) abort();
}

static void check_address(const char *text)
{
    khub__url url;
    check(khub__url_parse(&url, text) == 0);
    for (const char *at = text; *at; at++)
        check(*at > ' ' && *at < 127 && *at != '\\');
    check(url.host_length > 0 && !memchr(url.host, '@', url.host_length) && url.port > 0 && url.port < 65536);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    khub__url endpoint, url;
    char *text = khub__strndup((const char *)data, size), *to = NULL;
    if (!text) return 0;
    if (khub__url_resolve(&to, "https://hub.example/a/b?c", text, NULL) == KHUB_OK) {
        check_address(to);
        check(khub__url_parse(&url, to) == 0 && url.https);
        khub__free(to);
    }
    if (khub__address_page(&to, "http://h:1/p", "http://h:1/p/api?x", text, NULL) == KHUB_OK) {
        check(khub__url_parse(&endpoint, "http://h:1/p") == 0 && khub__url_parse(&url, to) == 0);
        check(khub__url_same_origin(&endpoint, &url));
        khub__free(to);
    }
    khub__free(text);
    return 0;
}
