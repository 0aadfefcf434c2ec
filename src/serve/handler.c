#include "serve/handler.h"

#include "serve/api.h"
#include "serve/connections.h"
#include "serve/file.h"
#include "serve/form.h"
#include "serve/log.h"
#include "serve/metrics.h"
#include "serve/place.h"
#include "serve/work.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { BODY_MAX = 1 << 20, BODY_STEP = 4096 };

/* What a request sends: a form. */
typedef struct body {
    char *text; /* with a NUL at the end; NULL: nothing yet */
    size_t length, capacity;
    int too_large;
    size_t count; /* of the values that were taken from the form: then `text` is those */
} body;

typedef struct request {
    serve_job job; /* first, so that the job is the request */
    const serve_options *options;
    struct MHD_Connection *connection;
    char *path, *query; /* one allocation, at `path`; query NULL: none */
    uintptr_t end;      /* of the address where libmicrohttpd has it */
    char method[8];
    struct timespec started;
    body body;
    serve_address address;
    const char *fault; /* why it is no address; NULL: it is one */
    unsigned fault_status;
    serve_found found; /* that the answer may borrow from */
    serve_answer answer;
    int begun, answered;
} request;

static const char *header(const request *r, const char *name)
{
    return MHD_lookup_connection_value(r->connection, MHD_HEADER_KIND, name);
}

/* ---- who may ask ---- */

/* Takes the same time whatever differs. */
static int is_equal(const char *a, const char *b, size_t length)
{
    unsigned char differs = 0;
    for (size_t i = 0; i < length; i++)
        differs |= (unsigned char)(a[i] ^ b[i]);
    return !differs;
}

/* 1: the token is right, or none is needed. 0: none was sent. -1: it is wrong. */
static int is_allowed(const request *r)
{
    const char *given = header(r, "Authorization"), *token = r->options->token;
    if (!token) return 1;
    if (!given) return 0;
    size_t length = strlen(token);
    if (strncasecmp(given, "Bearer ", 7) != 0 || strlen(given + 7) != length) return -1;
    return is_equal(given + 7, token, length) ? 1 : -1;
}

static serve_answer refuse(const request *r, int allowed)
{
    serve_answer answer = allowed < 0
                              ? serve_answer_error(401, NULL, "Invalid credentials in Authorization header")
                              : serve_answer_error(401, r->address.what >= SERVE_INFO ? "RepoNotFound" : NULL,
                                                   "This Hub asks for a token, and none was sent");
    serve_answer_header(&answer, "WWW-Authenticate", "Bearer realm=\"khub\"");
    return answer;
}

/* ---- what is answered ---- */

static serve_answer whoami(const request *r)
{
    if (!r->options->token)
        return serve_answer_error(401, NULL, "This Hub asks for no token, so it knows nobody");
    return serve_answer_json(200, json_pack("{s:s, s:s, s:s, s:[], s:{s:s, s:{s:s, s:s}}}", "type", "user",
                                            "name", "khub", "fullname", "who has the token of this Hub",
                                            "orgs", "auth", "type", "access_token", "accessToken",
                                            "displayName", "khub serve", "role", "read"));
}

static serve_answer overview(const request *r)
{
    const char *organization = r->address.id;
    if (!serve_has_owner(organization))
        return serve_answer_error(404, NULL, "%s: has no repository here", organization);
    int trusted = !r->options->trust_count;
    for (size_t i = 0; i < r->options->trust_count; i++)
        trusted |= !strcmp(r->options->trust[i], organization);
    return serve_api_overview(organization, trusted);
}

static serve_answer metrics(void)
{
    char text[4000];
    serve_metrics_text(text, sizeof(text));
    return serve_answer_text("text/plain; version=0.0.4", text);
}

/* This server's own address, as the client wrote it. */
static void put_base(char *out, size_t size, const request *r)
{
    const char *host = header(r, "Host");
    if (r->options->url)
        snprintf(out, size, "%s", r->options->url);
    else
        snprintf(out, size, "%s://%s", r->options->cert ? "https" : "http", host ? host : "localhost");
}

static serve_answer tree(const request *r, const serve_found *found)
{
    char base[512];
    put_base(base, sizeof(base), r);
    return serve_api_tree(&r->address, found, base);
}

static serve_answer file(const request *r, const serve_found *found, int may_wait)
{
    serve_conditions conditions = {header(r, "Range"), header(r, "If-Range"), header(r, "If-None-Match")};
    return serve_file(&r->address, found, &conditions, may_wait);
}

static serve_answer answer_found(const request *r, const serve_found *found, int may_wait)
{
    switch (r->address.what) {
    case SERVE_REFS:
        return serve_api_refs(&r->address, found);
    case SERVE_TREE:
        return tree(r, found);
    case SERVE_PATHS:
        return serve_api_paths(&r->address, found, r->body.text, r->body.count);
    case SERVE_RESOLVE:
        return file(r, found, may_wait);
    default:
        return serve_api_info(&r->address, found);
    }
}

static serve_answer answer_unfound(const request *r, serve_how how, const khub_error *err)
{
    const serve_address *address = &r->address;
    serve_answer answer;
    switch (how) {
    case SERVE_NO_REPOSITORY:
        return serve_answer_error(404, "RepoNotFound", "Repository not found: %s", address->id);
    case SERVE_NO_REVISION:
        return serve_answer_error(404, "RevisionNotFound", "Invalid rev id: %s has no %s", address->id,
                                  address->revision[0] ? address->revision : "branch");
    case SERVE_BUSY:
        answer = serve_answer_error(503, NULL, "%s is being changed", address->id);
        serve_answer_header(&answer, "Retry-After", "1");
        return answer;
    default:
        fprintf(stderr, "khub: serve: %s\n", err->message);
        return serve_answer_error(500, NULL, "%s can't be read", address->id);
    }
}

/* 1 when r->answer is there; 0: it takes the disk, and the caller doesn't wait. */
static int answer_repository(request *r, int may_wait)
{
    khub_error err = {0};
    serve_how how = serve_find(&r->found, &r->address, may_wait, &err);
    if (how == SERVE_LATER) return 0;
    r->answer = how == SERVE_FOUND ? answer_found(r, &r->found, may_wait) : answer_unfound(r, how, &err);
    if (r->answer.status) return 1;
    serve_found_free(&r->found);
    return 0;
}

static int answer(request *r, int may_wait)
{
    switch (r->address.what) {
    case SERVE_HOME:
        r->answer = serve_answer_text("text/plain; charset=utf-8",
                                      "khub serve: a Hub for one room. HF_ENDPOINT is this "
                                      "address.\n");
        return 1;
    case SERVE_METRICS:
        r->answer = metrics();
        return 1;
    case SERVE_WHOAMI:
        r->answer = whoami(r);
        return 1;
    case SERVE_OVERVIEW:
        r->answer = overview(r);
        return 1;
    default:
        return answer_repository(r, may_wait);
    }
}

/* ---- a request's course ---- */

static void resume(serve_job *job)
{
    request *r = (request *)job;
    unsigned moment = serve_work_moment();
    r->answered = answer(r, 1);
    if (!r->answered && serve_work_again(job, moment)) return;
    if (!r->answered) r->answer = answer_unfound(r, SERVE_BUSY, NULL);
    r->answered = 1;
    MHD_resume_connection(r->connection);
}

/* Where a request's body ends, as its headers say. */
typedef struct framing {
    unsigned lengths, encodings; /* headers */
    int has_body, unknown;       /* unknown: an encoding other than "chunked" */
} framing;

static enum MHD_Result take_framing(void *to, enum MHD_ValueKind kind, const char *name, const char *value)
{
    framing *f = to;
    (void)kind;
    int is_length = !strcasecmp(name, "Content-Length"), is_encoding = !strcasecmp(name, "Transfer-Encoding");
    if (!value) value = "";
    f->lengths += is_length;
    f->encodings += is_encoding;
    f->unknown |= is_encoding && strcasecmp(value, "chunked") != 0;
    f->has_body |= is_encoding || (is_length && strspn(value, "0") != strlen(value));
    return MHD_YES;
}

static framing framing_of(const request *r)
{
    framing f = {0};
    MHD_get_connection_values(r->connection, MHD_HEADER_KIND, take_framing, &f);
    return f;
}

/* A request that somebody on the way may have read to another end (RFC 9112, 6.3): what follows it isn't
 * read. */
static int is_ambiguous(const framing *f)
{
    return f->lengths + f->encodings > 1 || f->unknown;
}

/* The one thing that is asked with a body. */
static int takes_form(const request *r)
{
    return !r->fault && r->address.what == SERVE_PATHS;
}

static serve_answer refuse_method(const request *r)
{
    int form = takes_form(r);
    serve_answer answer =
        serve_answer_error(405, NULL, form ? "Paths are asked for with POST" : "This Hub is only read");
    serve_answer_header(&answer, "Allow", form ? "POST" : "GET, HEAD");
    return answer;
}

static int is_method(const request *r, const char *method)
{
    if (takes_form(r)) return !strcmp(method, "POST");
    return !strcmp(method, "GET") || !strcmp(method, "HEAD");
}

/* 1 when the request is refused before its body, if any, is read. */
static int refuse_early(request *r, const char *method)
{
    framing f = framing_of(r);
    snprintf(r->method, sizeof(r->method), "%s", method);
    if (is_ambiguous(&f))
        r->answer = serve_answer_error(400, NULL, "Where the body ends is said twice, or in an unknown way");
    else if (!is_method(r, method))
        r->answer = refuse_method(r);
    else if (f.has_body && !takes_form(r))
        r->answer = serve_answer_error(400, NULL, "This Hub takes no body");
    else if (f.has_body && is_allowed(r) <= 0)
        r->answer = refuse(r, is_allowed(r));
    else
        return 0;
    serve_answer_header(&r->answer, "Connection", "close");
    return 1;
}

/* What is too much is read, since that is how a request ends, but not kept. -1: no memory. */
static int take_body(body *to, const char *data, size_t length)
{
    size_t need = to->length + length + 1;
    if (need > BODY_MAX) to->too_large = 1;
    if (to->too_large) return 0;
    if (need > to->capacity) {
        size_t capacity = need + need / 2 + BODY_STEP;
        char *more = realloc(to->text, capacity);
        if (!more) return -1;
        to->text = more;
        to->capacity = capacity;
    }
    memcpy(to->text + to->length, data, length);
    to->length += length;
    to->text[to->length] = 0;
    return 0;
}

/* 1 when the form is read; 0: r->answer says why not. */
static int read_form(request *r)
{
    const char *type = header(r, "Content-Type");
    if (r->body.too_large)
        r->answer = serve_answer_error(413, NULL, "The form is too large: at most %d bytes", BODY_MAX);
    else if (r->body.length && (!type || strncasecmp(type, "application/x-www-form-urlencoded", 33) != 0))
        r->answer =
            serve_answer_error(415, NULL, "The body isn't a form (application/x-www-form-urlencoded)");
    else if (r->body.length && serve_form_values(&r->body.count, r->body.text, "paths") != 0)
        r->answer = serve_answer_error(400, NULL, "The form isn't percent-encoded as it should be");
    else
        return 1;
    return 0;
}

/* Answers at once what can be. 0: it takes the disk. */
static int begin(request *r)
{
    int allowed = is_allowed(r);
    if (allowed <= 0)
        r->answer = refuse(r, allowed);
    else if (r->fault)
        r->answer = serve_answer_error(r->fault_status, NULL, "%s", r->fault);
    else if (!takes_form(r) || read_form(r))
        return answer(r, 0);
    return 1;
}

static void free_answer(request *r)
{
    if (r->answer.response && !r->answer.shared) MHD_destroy_response(r->answer.response);
    r->answer.response = NULL;
    serve_found_free(&r->found);
}

static enum MHD_Result send_answer(request *r)
{
    if (!takes_form(r)) serve_answer_unless(&r->answer, header(r, "If-None-Match"));
    if (!r->answer.response) return MHD_NO; /* no memory: the connection ends */
    enum MHD_Result rc = MHD_queue_response(r->connection, r->answer.status, r->answer.response);
    free_answer(r);
    return rc;
}

/* What serve_on_connection put there. */
static serve_connection *connection_of(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return info ? info->socket_context : NULL;
}

/* libmicrohttpd cuts a request's line where it lies: behind the address and its NUL stands the version. What
 * is between them is the rest of an address that has a NUL of its own. */
static int is_cut(const request *r, const char *version)
{
    uintptr_t at = (uintptr_t)version;
    return at > r->end + 1 && at - r->end < SERVE_CONNECTION_MEMORY;
}

static void parse_address(request *r, const char *version)
{
    r->fault_status = 400;
    r->fault = is_cut(r, version) ? "The address has a NUL"
                                  : serve_address_parse(&r->address, &r->fault_status, r->path, r->query);
}

void *serve_on_uri(void *cls, const char *uri, struct MHD_Connection *connection)
{
    request *r = calloc(1, sizeof(*r));
    if (r) r->path = strdup(uri);
    if (r) r->end = (uintptr_t)uri + strlen(uri);
    if (!r || !r->path) {
        free(r);
        return NULL;
    }
    r->options = cls;
    r->connection = connection;
    r->job.run = resume;
    clock_gettime(CLOCK_MONOTONIC, &r->started);
    r->query = strchr(r->path, '?');
    if (r->query) *r->query++ = 0;
    serve_count_active(1);
    return r;
}

enum MHD_Result serve_on_request(void *cls, struct MHD_Connection *connection, const char *url,
                                 const char *method, const char *version, const char *data, size_t *size,
                                 void **context)
{
    (void)cls, (void)url;
    request *r = *context;
    if (!r) return MHD_NO;
    if (*size) {
        size_t length = *size;
        *size = 0;
        return takes_form(r) && take_body(&r->body, data, length) != 0 ? MHD_NO : MHD_YES;
    }
    if (!r->begun) {
        r->begun = 1;
        parse_address(r, version);
        if (refuse_early(r, method))
            return send_answer(r); /* which closes the connection: a body may follow */
        return MHD_YES;
    }
    if (!r->answered) {
        serve_connection_busy(connection_of(connection), 1); /* all of the request is there */
        r->answered = begin(r);
        if (!r->answered) {
            MHD_suspend_connection(connection);
            serve_work_add(&r->job);
            return MHD_YES;
        }
    }
    return send_answer(r);
}

static void log_request(const request *r, int whole)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(r->connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    serve_log_line line = {.client = info ? info->client_addr : NULL,
                           .method = r->method,
                           .path = r->path,
                           .agent = header(r, "User-Agent"),
                           .status = r->answer.status,
                           .bytes = r->answer.bytes,
                           .ms = (double)(now.tv_sec - r->started.tv_sec) * 1e3 +
                                 (double)(now.tv_nsec - r->started.tv_nsec) / 1e6,
                           .whole = whole};
    serve_log(&line);
}

void serve_on_completed(void *cls, struct MHD_Connection *connection, void **context,
                        enum MHD_RequestTerminationCode why)
{
    (void)cls;
    request *r = *context;
    int whole = why == MHD_REQUEST_TERMINATED_COMPLETED_OK;
    serve_connection_busy(connection_of(connection), 0);
    if (!r) return;
    if (!strcmp(r->method, "HEAD")) r->answer.bytes = 0;
    if (whole)
        serve_count_request(r->answer.status, r->answer.bytes);
    else
        serve_count_aborted();
    if (r->begun && !r->options->quiet) log_request(r, whole);
    free_answer(r);
    free(r->path);
    free(r->body.text);
    free(r);
    *context = NULL;
    serve_count_active(-1);
}

void serve_on_connection(void *cls, struct MHD_Connection *connection, void **socket,
                         enum MHD_ConnectionNotificationCode what)
{
    (void)cls;
    if (what == MHD_CONNECTION_NOTIFY_STARTED) {
        const union MHD_ConnectionInfo *info =
            MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
        *socket = info ? serve_connection_opened(info->connect_fd) : NULL;
        serve_count_open(1);
    } else {
        serve_connection_closed(*socket);
        *socket = NULL;
        serve_count_open(-1);
    }
}
