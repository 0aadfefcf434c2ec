#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* dladdr */
#endif
#include "hub/curl.h"

#include "base/error.h"
#include "base/symbols.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#define SYMBOL(name) {#name, offsetof(khub__curl_table, name)},

static const khub__symbol symbols[] = {KHUB__CURL_FUNCTIONS(SYMBOL){NULL, 0}};
static const char *const libraries[] = {"libcurl.so.4", "libcurl-gnutls.so.4", "libcurl.4.dylib", NULL};

enum { OLDEST = 0x075500 }; /* 7.85.0: protocols by name */

static khub__curl_table table;
static int opened = -1;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards the two above until `opened` is KHUB_OK */

static int open_curl(khub_error *err)
{
    khub_error why = {0};
    if (khub__symbols_open(&table, symbols, libraries, KHUB_E_NETWORK, &why) != KHUB_OK)
        return khub__fail(err, KHUB_E_NETWORK,
                          "the Hub can't be reached without libcurl (package libcurl4): %s", why.message);
    if (table.curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        return khub__fail(err, KHUB_E_NETWORK, "libcurl doesn't start");
    const curl_version_info_data *info = table.curl_version_info(CURLVERSION_NOW);
    if (info->version_num < OLDEST)
        return khub__fail(err, KHUB_E_NETWORK, "libcurl %s is too old, 7.85 is needed", info->version);
    table.has_tls = (info->features & CURL_VERSION_SSL) != 0;
    Dl_info where;
    table.path = dladdr((void *)(uintptr_t)table.curl_easy_init, &where) ? where.dli_fname : NULL;
    table.has_http2 = (info->features & CURL_VERSION_HTTP2) != 0;
    return KHUB_OK;
}

int khub__curl_open(const khub__curl_table **out, khub_error *err)
{
    *out = &table;
    pthread_mutex_lock(&lock);
    if (opened != KHUB_OK) opened = open_curl(err);
    int rc = opened;
    pthread_mutex_unlock(&lock);
    return rc;
}
