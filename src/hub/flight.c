#include "hub/flight.h"

#include "base/error.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/text.h"
#include "hub/clock.h"
#include "hub/token.h"
#include "hub/url.h"

#include <stdio.h>
#include <stdlib.h>

enum { HOPS_MAX = 10, IGNORED_MAX = 1 << 20, BUFFER_BYTES = 256 << 10 };

static int is_redirect(int status)
{
    return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

/* Takes what this answer says of the content, unless one before it did. */
static void note_content(khub__transfer *transfer)
{
    const khub__answer *answer = &transfer->answer;
    khub__hash_kind kind;
    int is_hash = khub__hash_kind_of(&kind, answer->etag) == 0;
    if (!transfer->etag[0] || (is_hash && khub__hash_kind_of(&kind, transfer->etag) != 0))
        khub__copy(transfer->etag, sizeof(transfer->etag),
                   answer->etag); /* a redirect may have an ETag of its own, which is no hash */
    if (!transfer->commit[0]) khub__copy(transfer->commit, sizeof(transfer->commit), answer->commit);
    if (transfer->size != UINT64_MAX) return;
    if (answer->linked_size != UINT64_MAX)
        transfer->size = answer->linked_size;
    else if (answer->status == 200)
        transfer->size = answer->length;
    else if (answer->status == 206 || answer->status == 416)
        transfer->size = answer->range_total;
}

/* The listener wants it: a success, or the refusal of a range. */
static int is_wanted(const khub__transfer *transfer)
{
    int status = transfer->answer.status;
    return status / 100 == 2 || (status == 416 && transfer->request->from != UINT64_MAX);
}

/* The head says it all: what follows is read so that the connection can be used again, and no longer. */
static int is_head_all(const khub__flight *flight)
{
    return flight->head_seen && (!is_wanted(flight->transfer) || flight->transfer->answer.status == 416);
}

static int take_head(khub__flight *flight)
{
    khub__transfer *transfer = flight->transfer;
    const khub__answer *answer = &transfer->answer;
    if (answer->status / 100 != 2 && !is_redirect(answer->status) && !is_wanted(transfer)) return KHUB_OK;
    note_content(transfer);
    if (!is_wanted(transfer)) return KHUB_OK;
    if (answer->encoded)
        return khub__fail(&transfer->why, KHUB_E_FORMAT,
                          "the answer is compressed though it was asked for as it is");
    if (answer->status == 206 && transfer->request->from == UINT64_MAX)
        return khub__fail(&transfer->why, KHUB_E_FORMAT,
                          "the answer is a part though the whole was asked for");
    int rc = transfer->request->head(transfer->request->self, transfer, &transfer->why);
    transfer->by_listener = rc != KHUB_OK;
    return rc;
}

static size_t on_header(char *line, size_t size, size_t count, void *user)
{
    khub__flight *flight = user;
    khub__transfer *transfer = flight->transfer;
    size_t length = size * count;
    if (flight->head_seen) return length; /* trailers: nobody wants them, so they don't keep it alive */
    flight->last_ms = khub__now_ms();
    transfer->status = khub__answer_line(&transfer->answer, line, length, &transfer->why);
    int is_end = length <= 2 && (line[0] == '\r' || line[0] == '\n');
    if (transfer->status == KHUB_OK && is_end && transfer->answer.status >= 200) {
        flight->head_seen = 1;
        transfer->status = take_head(flight);
    }
    return transfer->status == KHUB_OK ? length : 0;
}

static size_t on_body(char *data, size_t size, size_t count, void *user)
{
    khub__flight *flight = user;
    khub__transfer *transfer = flight->transfer;
    size_t length = size * count;
    if (is_head_all(flight)) {
        flight->ignored += length;
        return flight->ignored <= IGNORED_MAX ? length : 0;
    }
    flight->last_ms = khub__now_ms();
    int rc = transfer->request->body(transfer->request->self, transfer, data, length, &transfer->why);
    if (rc == KHUB__PAUSE) {
        flight->paused = 1;
        return CURL_WRITEFUNC_PAUSE;
    }
    transfer->status = rc;
    transfer->by_listener = rc != KHUB_OK;
    if (rc == KHUB_OK) transfer->bytes += length;
    return rc == KHUB_OK ? length : 0;
}

/* libcurl reads the proxies' variables itself, but not HTTP_PROXY, which a web server could set from a
 * request's header (then REQUEST_METHOD is set too). The other tools read it. */
static void set_proxy(const khub__curl_table *curl, CURL *easy, const char *url)
{
    const char *proxy =
        khub__env("http_proxy") || khub__env("REQUEST_METHOD") ? NULL : khub__env("HTTP_PROXY");
    if (proxy && strncmp(url, "http:", 5) != 0) proxy = NULL;
    curl->curl_easy_setopt(easy, CURLOPT_PROXY, proxy);
}

static void set_certificates(const khub__curl_table *curl, CURL *easy)
{
    khub_network_info said = {0};
    khub__curl_certificates(&said);
    if (said.certificate_dir) curl->curl_easy_setopt(easy, CURLOPT_CAPATH, said.certificate_dir);
    if (said.certificate_file) curl->curl_easy_setopt(easy, CURLOPT_CAINFO, said.certificate_file);
}

/* What the server says in a TLS handshake that fails: libcurl has one code for all of it, for a connection
 * that broke too. Only libcurl with OpenSSL shows it. */
static int on_debug(CURL *easy, curl_infotype type, char *data, size_t size, void *user)
{
    enum { FIRST_TYPE = 20, LAST_TYPE = 24, FATAL = 2 }; /* RFC 8446, 5.1 and 6 */
    khub__flight *flight = user;
    (void)easy;
    if (type != CURLINFO_SSL_DATA_IN || size == 0) return 0;
    const unsigned char *bytes = (const unsigned char *)data;
    if (!flight->tls_seen) flight->no_tls = bytes[0] < FIRST_TYPE || bytes[0] > LAST_TYPE;
    flight->tls_seen = 1;
    if (size == 2 && bytes[0] == FATAL) flight->tls_alert = bytes[1];
    return 0;
}

/* What is the same for every request. */
static void set_up(const khub__curl_table *curl, khub__flight *flight)
{
    CURL *easy = flight->easy;
    curl->curl_easy_setopt(easy, CURLOPT_PRIVATE, flight);
    curl->curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, flight->words);
    curl->curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header);
    curl->curl_easy_setopt(easy, CURLOPT_HEADERDATA, flight);
    curl->curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
    curl->curl_easy_setopt(easy, CURLOPT_WRITEDATA, flight);
    curl->curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, (long)BUFFER_BYTES);
    curl->curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl->curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, khub__flight_socket);
    curl->curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, flight);
    curl->curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
    curl->curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl->curl_easy_setopt(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    curl->curl_easy_setopt(easy, CURLOPT_DEBUGFUNCTION, on_debug);
    curl->curl_easy_setopt(easy, CURLOPT_DEBUGDATA, flight);
#if LIBCURL_VERSION_NUM >= 0x075700
    curl->curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L); /* a cancel doesn't wait for a name to resolve */
#endif
    set_certificates(curl, easy);
}

khub__flight *khub__flight_new(khub__engine *engine)
{
    khub__flight *flight = khub__calloc(1, sizeof(*flight));
    if (!flight) return NULL;
    flight->easy = engine->curl->curl_easy_init();
    if (!flight->easy) {
        khub__free(flight);
        return NULL;
    }
    flight->engine = engine;
    set_up(engine->curl, flight);
    return flight;
}

void khub__flight_free(khub__engine *engine, khub__flight *flight)
{
    engine->curl->curl_easy_cleanup(flight->easy);
    engine->curl->curl_slist_free_all(flight->headers);
    khub__free(flight);
}

/* `start` is the header's name and what stands before `value`. */
static int add_header(const khub__curl_table *curl, struct curl_slist **list, const char *start,
                      const char *value)
{
    khub__text text = {0};
    khub__text_add(&text, start);
    khub__text_add(&text, value);
    struct curl_slist *longer = text.failed ? NULL : curl->curl_slist_append(*list, text.data);
    for (volatile char *at = text.data; at && *at; at++) /* it may hold the token */
        *at = 0;
    khub__text_free(&text);
    if (longer) *list = longer;
    return longer != NULL;
}

/* The token goes to the endpoint's origin only, and not after a hop through another. */
static int may_have_token(const khub__engine *engine, khub__transfer *transfer)
{
    khub__url endpoint, url;
    if (khub__url_parse(&endpoint, engine->endpoint) != 0 || khub__url_parse(&url, transfer->url) != 0 ||
        !khub__url_same_origin(&endpoint, &url))
        transfer->left = 1;
    return engine->token && !transfer->left;
}

static int set_headers(khub__engine *engine, khub__flight *flight)
{
    const khub__curl_table *curl = engine->curl;
    struct curl_slist *list = NULL;
    int done = add_header(curl, &list, "Accept-Encoding: ", "identity") &&
               add_header(curl, &list, "User-Agent: ", engine->settings->user_agent);
    if (done && may_have_token(engine, flight->transfer))
        done = add_header(curl, &list, "Authorization: Bearer ", engine->token);
    curl->curl_easy_setopt(flight->easy, CURLOPT_HTTPHEADER, list);
    curl->curl_slist_free_all(flight->headers);
    flight->headers = list;
    return done;
}

int khub__flight_prepare(khub__engine *engine, khub__flight *flight, khub_error *err)
{
    const khub__curl_table *curl = engine->curl;
    const khub__request *request = flight->transfer->request;
    long https = strncmp(flight->transfer->url, "https", 5) == 0;
    char range[48] = "", shown[208];
    if (request->from != UINT64_MAX && request->to != UINT64_MAX)
        snprintf(range, sizeof(range), "%llu-%llu", (unsigned long long)request->from,
                 (unsigned long long)request->to);
    else if (request->from != UINT64_MAX)
        snprintf(range, sizeof(range), "%llu-", (unsigned long long)request->from);
    flight->words[0] = 0;
    flight->ignored = 0;
    flight->ended = flight->paused = flight->head_seen = 0;
    flight->tls_seen = flight->no_tls = flight->tls_alert = flight->no_more_files = 0;
    khub__answer_clear(&flight->transfer->answer);
    curl->curl_easy_setopt(flight->easy, CURLOPT_CONNECTTIMEOUT_MS,
                           (long)engine->settings->connect_timeout_ms);
    curl->curl_easy_setopt(flight->easy, CURLOPT_RANGE, range[0] ? range : NULL);
    /* streams of one connection rather than connections: with TLS, since HTTP/2 is agreed on there */
    curl->curl_easy_setopt(flight->easy, CURLOPT_PIPEWAIT, https);
    curl->curl_easy_setopt(flight->easy, CURLOPT_VERBOSE, https); /* for on_debug; nothing is printed */
    set_proxy(curl, flight->easy, flight->transfer->url);
    if (!set_headers(engine, flight) ||
        curl->curl_easy_setopt(flight->easy, CURLOPT_URL, flight->transfer->url) != CURLE_OK)
        return khub__fail_memory(err, "sending a request");
    khub__url_shown(shown, flight->transfer->url);
    khub__token_hide(shown, engine->token);
    khub__log(KHUB_LOG_DEBUG, "hub", shown, "asking for it%s%s", range[0] ? ", bytes " : "", range);
    return KHUB_OK;
}

enum { INTERNAL_ERROR = 80, CERTIFICATE_REQUIRED = 116 }; /* alerts, RFC 8446, 6 */

/* What came in between, where libcurl's code doesn't tell. */
static khub__trouble trouble_in_tls(const khub__flight *flight)
{
    return flight->no_tls                              ? KHUB__TROUBLE_NO_TLS
           : flight->tls_alert == CERTIFICATE_REQUIRED ? KHUB__TROUBLE_CLIENT_CERTIFICATE
                                                       : KHUB__TROUBLE_HANDSHAKE;
}

/* Says what the trouble is; 1: it won't be better at the next try. */
static int judge(khub__trouble *trouble, const khub__flight *flight, CURLcode code)
{
    static const struct {
        CURLcode code;
        khub__trouble trouble;
        int is_final;
    } known[] = {{CURLE_UNSUPPORTED_PROTOCOL, KHUB__TROUBLE_NO_HTTP, 1}, /* HTTP/0.9, it means */
                 {CURLE_URL_MALFORMAT, KHUB__TROUBLE_OTHER, 1},
                 {CURLE_NOT_BUILT_IN, KHUB__TROUBLE_OTHER, 1},
                 {CURLE_COULDNT_RESOLVE_HOST, KHUB__TROUBLE_NAME, 0}, /* a resolver may be slow to start */
                 {CURLE_COULDNT_RESOLVE_PROXY, KHUB__TROUBLE_NAME, 0},
                 {CURLE_PEER_FAILED_VERIFICATION, KHUB__TROUBLE_CERTIFICATE, 1},
                 {CURLE_SSL_ISSUER_ERROR, KHUB__TROUBLE_CERTIFICATE, 1},
                 {CURLE_SSL_CACERT_BADFILE, KHUB__TROUBLE_CERTIFICATES, 1},
                 {CURLE_SSL_CERTPROBLEM, KHUB__TROUBLE_CLIENT_CERTIFICATE, 1},
                 {CURLE_SSL_CLIENTCERT, KHUB__TROUBLE_CLIENT_CERTIFICATE, 1},
                 {CURLE_SSL_ENGINE_NOTFOUND, KHUB__TROUBLE_OTHER, 1},
                 {CURLE_SSL_CONNECT_ERROR, KHUB__TROUBLE_HANDSHAKE, 0}, /* or the connection broke in it */
                 {CURLE_GOT_NOTHING, KHUB__TROUBLE_NO_HTTP, 0},
                 {CURLE_RECV_ERROR, KHUB__TROUBLE_NO_HTTP, 0}};
    int is_final = 0;
    for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
        if (known[i].code == code) {
            *trouble = known[i].trouble;
            is_final = known[i].is_final;
        }
    int refused = flight->no_tls || (flight->tls_alert && flight->tls_alert != INTERNAL_ERROR);
    if (is_final || !refused || flight->head_seen) return is_final;
    *trouble = trouble_in_tls(flight);
    return 1;
}

void khub__flight_end(khub__engine *engine, khub__flight *flight, CURLcode code)
{
    khub__transfer *transfer = flight->transfer;
    long version = 0;
    flight->ended = 1;
    if (transfer->status != KHUB_OK) return; /* a listener ended it */
    if (is_head_all(flight)) return;
    engine->curl->curl_easy_getinfo(flight->easy, CURLINFO_HTTP_VERSION, &version);
    if (flight->head_seen) engine->multiplexes = version >= CURL_HTTP_VERSION_2_0;
    if (code == CURLE_OK && flight->head_seen) return;
    if (code == CURLE_OUT_OF_MEMORY) { /* or a line of the head that is longer than libcurl takes */
        transfer->status =
            transfer->answer.status
                ? khub__fail(&transfer->why, KHUB_E_FORMAT, "the head of the answer is too long")
                : khub__fail_memory(&transfer->why, "waiting for the network");
        return;
    }
    const char *words = flight->no_more_files ? "too many files are open for another connection"
                        : flight->words[0]    ? flight->words
                        : code == CURLE_OK    ? "the server closed the connection without an answer"
                                              : engine->curl->curl_easy_strerror(code);
    khub__fail(&transfer->why, KHUB_E_NETWORK, "%s", words);
    khub__url_hide_user(transfer->why.message);
    transfer->status = judge(&transfer->trouble, flight, code) ? KHUB_E_NETWORK : KHUB_OK;
    transfer->broken = !transfer->status;
    if (flight->no_more_files) transfer->trouble = KHUB__TROUBLE_FILES;
}

void khub__flight_stall(khub__flight *flight, uint64_t allowed_ms)
{
    flight->ended = 1;
    if (is_head_all(flight)) return;
    flight->transfer->broken = 1;
    khub__fail(&flight->transfer->why, KHUB_E_NETWORK, "nothing arrived for %g s", (double)allowed_ms / 1000);
}

int khub__flight_is_redirected(const khub__flight *flight)
{
    const khub__transfer *transfer = flight->transfer;
    return transfer->status == KHUB_OK && !transfer->broken && is_redirect(transfer->answer.status) &&
           transfer->answer.location;
}

int khub__flight_redirect(khub__engine *engine, khub__flight *flight, khub_error *err)
{
    (void)engine;
    khub__transfer *transfer = flight->transfer;
    char *next, shown[208];
    if (++transfer->hops > HOPS_MAX)
        return khub__fail(err, KHUB_E_NETWORK, "more than %d redirects, the last from %s", HOPS_MAX,
                          khub__url_shown(shown, transfer->url));
    int rc = khub__url_resolve(&next, transfer->url, transfer->answer.location, err);
    if (rc != KHUB_OK) return rc;
    khub__free(transfer->url);
    transfer->url = next;
    return KHUB_OK;
}
