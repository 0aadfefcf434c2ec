/* libcurl, opened when the first request needs it: its headers at compile time, its functions by name. */
#ifndef HUB_CURL_H
#define HUB_CURL_H

#include <khub/hub.h>

#include <curl/curl.h>

#define KHUB__CURL_FUNCTIONS(X)                                                                              \
    X(curl_global_init)                                                                                      \
    X(curl_version_info)                                                                                     \
    X(curl_slist_append)                                                                                     \
    X(curl_slist_free_all)                                                                                   \
    X(curl_easy_init)                                                                                        \
    X(curl_easy_setopt)                                                                                      \
    X(curl_easy_getinfo)                                                                                     \
    X(curl_easy_reset)                                                                                       \
    X(curl_easy_pause)                                                                                       \
    X(curl_easy_strerror)                                                                                    \
    X(curl_easy_cleanup)                                                                                     \
    X(curl_multi_init)                                                                                       \
    X(curl_multi_setopt)                                                                                     \
    X(curl_multi_add_handle)                                                                                 \
    X(curl_multi_remove_handle)                                                                              \
    X(curl_multi_perform)                                                                                    \
    X(curl_multi_poll)                                                                                       \
    X(curl_multi_wakeup)                                                                                     \
    X(curl_multi_info_read)                                                                                  \
    X(curl_multi_cleanup)

/* curl.h puts macros that check types in front of some; the names as parameters don't meet them. */
#undef curl_easy_setopt
#undef curl_easy_getinfo
#undef curl_multi_setopt

#define KHUB__CURL_POINTER(name) __typeof__(&name) name;

/* khub__curl()->curl_easy_init() */
typedef struct khub__curl_table {
    KHUB__CURL_FUNCTIONS(KHUB__CURL_POINTER)
    int has_tls, has_http2;
    const char *path; /* of the library; NULL: unknown */
} khub__curl_table;

/* Opens it once per process; any thread. KHUB_E_NETWORK: it isn't there, or too old. */
int khub__curl_open(const khub__curl_table **out, khub_error *err);

/* Fills in the certificates that the environment says are trusted; NULL stays what it doesn't say. */
void khub__curl_certificates(khub_network_info *info);

#endif
