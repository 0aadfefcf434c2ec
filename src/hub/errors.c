#include "hub/errors.h"

#include "base/error.h"
#include "hub/retry.h"
#include "hub/url.h"

/* One refusal at hand, for the functions below. */
typedef struct refusal {
    const khub__transfer *transfer;
    const khub__asked *asked;
    const char *address; /* can be shown */
    khub_error *err;
} refusal;

static const char *kind_of(const refusal *r)
{
    return r->asked->repo && r->asked->repo->kind == KHUB__REPO_MODEL ? "model" : "kernel";
}

static const char *id_of(const refusal *r)
{
    return r->asked->repo ? r->asked->repo->id : r->asked->org ? r->asked->org : r->address;
}

static int fail_repo(const refusal *r)
{
    const khub__hub_settings *settings = r->asked->settings;
    if (settings->token)
        return khub__fail(r->err, KHUB_E_NOTFOUND,
                          "%s: there is no such %s repository at %s, or the token of %s may not see it",
                          id_of(r), kind_of(r), settings->endpoint, settings->token_source);
    return khub__fail(r->err, KHUB_E_NOTFOUND,
                      "%s: there is no such %s repository at %s, or it is private: then set HF_TOKEN to a "
                      "token that may read it",
                      id_of(r), kind_of(r), settings->endpoint);
}

static int fail_revision(const refusal *r)
{
    const char *revision = r->asked->revision ? r->asked->revision : "?";
    return khub__fail(r->err, KHUB_E_NOTFOUND, "%s: has no revision \"%s\" at %s%s", id_of(r), revision,
                      r->asked->settings->endpoint, khub__commit_hint(revision));
}

static int fail_entry(const refusal *r)
{
    return khub__fail(r->err, KHUB_E_NOTFOUND, "%s: has no file \"%s\" at revision %s", id_of(r),
                      r->asked->path ? r->asked->path : "?", r->asked->revision ? r->asked->revision : "?");
}

static int fail_gated(const refusal *r)
{
    return khub__fail(r->err, KHUB_E_DENIED, "%s: is gated: ask for access at %s/%s%s, then %s", id_of(r),
                      r->asked->settings->endpoint, strcmp(kind_of(r), "kernel") == 0 ? "kernels/" : "",
                      id_of(r),
                      r->asked->settings->token ? "try again: the token that was used has none yet"
                                                : "set HF_TOKEN to a token that has it");
}

static int fail_disabled(const refusal *r)
{
    return khub__fail(r->err, KHUB_E_DENIED, "%s: is disabled by the Hub", id_of(r));
}

static int fail_token(const refusal *r)
{
    const char *source = r->asked->settings->token_source;
    return khub__fail(r->err, KHUB_E_DENIED,
                      "%s: the Hub rejects the token of %s: renew it, or take it away (public repositories "
                      "need none)",
                      r->address, source ? source : "nobody");
}

static int is_about_credentials(const char *message)
{
    return strstr(message, "nvalid credentials") || strstr(message, "nvalid user token") ||
           strstr(message, "nvalid token");
}

static int is_passing(const refusal *r)
{
    return khub__is_passing(r->transfer->answer.status);
}

static int fail_passing(const refusal *r)
{
    const khub__answer *answer = &r->transfer->answer;
    int64_t wait = answer->ratelimit_s > answer->retry_after_s ? answer->ratelimit_s : answer->retry_after_s;
    if (answer->status == 429 && wait >= 0)
        return khub__fail(r->err, KHUB_E_NETWORK,
                          "%s: the Hub has had too many requests (429) and asks to wait %lld s%s", r->address,
                          (long long)wait, r->asked->settings->token ? "" : "; with a token it allows more");
    return khub__fail(r->err, KHUB_E_NETWORK, "%s: the Hub answers %d%s%s", r->address, answer->status,
                      answer->error_message[0] ? ": " : "", answer->error_message);
}

static int fail_other(const refusal *r)
{
    const khub__answer *answer = &r->transfer->answer;
    const char *colon = answer->error_message[0] ? ": " : "";
    if (answer->status == 401 || answer->status == 403)
        return khub__fail(r->err, KHUB_E_DENIED, "%s: the Hub refuses (%d)%s%s%s", r->address, answer->status,
                          colon, answer->error_message,
                          r->asked->settings->token ? "; may the token read it?" : "; set HF_TOKEN?");
    if (answer->status == 404 || answer->status == 410)
        return khub__fail(r->err, KHUB_E_NOTFOUND, "%s: isn't there (%d)%s%s; is %s a Hub?", r->address,
                          answer->status, colon, answer->error_message, r->asked->settings->endpoint);
    int plain = answer->status == 400 && strncmp(r->address, "http:", 5) == 0;
    return khub__fail(r->err, KHUB_E_FORMAT,
                      "%s: answers %d%s%s, which the Hub's protocol doesn't have here%s", r->address,
                      answer->status, colon, answer->error_message, plain ? "; is it https://?" : "");
}

static int refuse(const refusal *r)
{
    const khub__answer *answer = &r->transfer->answer;
    const char *code = answer->error_code;
    if (answer->status == 401 && r->asked->settings->token && is_about_credentials(answer->error_message))
        return fail_token(r);
    if (strcmp(answer->error_message, "Access to this resource is disabled.") == 0) return fail_disabled(r);
    static const struct {
        const char *code;
        int (*fail)(const refusal *r);
    } codes[] = {{"RepoNotFound", fail_repo},
                 {"RevisionNotFound", fail_revision},
                 {"EntryNotFound", fail_entry},
                 {"GatedRepo", fail_gated}};
    for (size_t i = 0; i < sizeof(codes) / sizeof(*codes); i++)
        if (strcmp(codes[i].code, code) == 0) return codes[i].fail(r);
    if (answer->status == 401 && r->asked->repo) return fail_repo(r);
    return is_passing(r) ? fail_passing(r) : fail_other(r);
}

/* What to try when the connection failed. */
static const char *advice(const khub__transfer *transfer)
{
    static const char *const known[] = {
        [KHUB__TROUBLE_FILES] = "",
        [KHUB__TROUBLE_CERTIFICATE] = "; SSL_CERT_FILE names a file of the certificates that are trusted",
        [KHUB__TROUBLE_CERTIFICATES] =
            "; SSL_CERT_FILE, REQUESTS_CA_BUNDLE or CURL_CA_BUNDLE names that file",
        [KHUB__TROUBLE_CLIENT_CERTIFICATE] = "; the server wants a certificate of its clients, khub has none",
        [KHUB__TROUBLE_HANDSHAKE] = "; TLS wasn't agreed on: is the address right, and its https://?",
        [KHUB__TROUBLE_NO_TLS] = "; what is there doesn't speak TLS: is it http://?",
        [KHUB__TROUBLE_NO_HTTP] = "; is it https://?"};
    if (transfer->answer.status || !transfer->url) return "";
    int https = strncmp(transfer->url, "https:", 6) == 0;
    khub__trouble trouble = transfer->trouble;
    if (trouble != KHUB__TROUBLE_OTHER && trouble != KHUB__TROUBLE_NAME &&
        !(https && trouble == KHUB__TROUBLE_NO_HTTP))
        return known[trouble];
    return khub__env("HF_ENDPOINT") ? "; is HF_ENDPOINT right, is a proxy needed (HTTPS_PROXY, HTTP_PROXY)?"
                                    : "; is there a network, is a proxy needed (HTTPS_PROXY)?";
}

/* Who has no network doesn't want to wait for it the next time. */
static const char *way_out(const khub__transfer *transfer)
{
    return transfer->trouble == KHUB__TROUBLE_NAME ? KHUB__WITHOUT_NETWORK : "";
}

/* The words of a redirect that isn't followed begin with it already. */
static int begins_with(const char *words, const char *address)
{
    size_t n = strlen(address);
    return strncmp(words, address, n) == 0 && words[n] == ':';
}

int khub__transfer_fail(const khub__transfer *transfer, const khub__asked *asked, khub_error *err)
{
    char shown[208];
    refusal r = {transfer, asked, khub__url_shown(shown, transfer->url ? transfer->url : ""), err};
    int is_named = begins_with(transfer->why.message, r.address);
    int has_object = transfer->by_listener && asked->path; /* a download's listener names the file itself */
    if (transfer->status == KHUB_E_NOMEM || transfer->status == KHUB_E_CANCELED || has_object)
        return khub__fail(err, transfer->status, "%s", transfer->why.message);
    if (transfer->status != KHUB_OK || transfer->broken)
        return khub__fail(err, transfer->status ? transfer->status : KHUB_E_NETWORK, "%s%s%s%s%s",
                          is_named ? "" : r.address, is_named ? "" : ": ", transfer->why.message,
                          advice(transfer), way_out(transfer));
    return refuse(&r);
}

int khub__transfer_check(const khub__transfer *transfer, const khub__asked *asked, khub_error *err)
{
    int good = transfer->status == KHUB_OK && !transfer->broken && transfer->answer.status / 100 == 2;
    return good ? KHUB_OK : khub__transfer_fail(transfer, asked, err);
}
