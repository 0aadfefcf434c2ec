#include "hub/ask.h"

#include "base/error.h"
#include "base/log.h"
#include "hub/clock.h"
#include "hub/retry.h"
#include "hub/token.h"
#include "hub/url.h"

#include <stdio.h>

enum { HURRY_MS = 2500 }; /* for one who has another answer at hand (case D3: below 3 s in all) */

int khub__client_tick(khub__client *client, khub_error *err)
{
    uint64_t now = khub__now_ms();
    if (!client->progress || now < client->ticked_ms + KHUB__TICK_MS) return KHUB_OK;
    return khub__client_tell(client, err);
}

int khub__client_tell(khub__client *client, khub_error *err)
{
    if (!client->progress) return KHUB_OK;
    client->ticked_ms = khub__now_ms();
    if (client->progress(client->user, &client->at) == 0) return KHUB_OK;
    return khub__fail(err, KHUB_E_CANCELED, "%s: canceled", client->at.what ? client->at.what : "the Hub");
}

int khub__client_connect(khub__client *client, const char *what, khub_error *err)
{
    if (client->settings.offline)
        return khub__fail(
            err, KHUB_E_OFFLINE,
            "%s: can't be asked for, the network is off (khub_hub_options.offline or HF_HUB_OFFLINE)", what);
    if (client->engine && !khub__engine_is_own(client->engine)) client->engine = NULL;
    return client->engine ? KHUB_OK : khub__engine_open(&client->engine, &client->settings, err);
}

static int take_head(void *self, khub__transfer *transfer, khub_error *err)
{
    khub__reply *reply = self;
    reply->body.length = 0;
    if (transfer->answer.length != UINT64_MAX && transfer->answer.length > KHUB__JSON_MAX)
        return khub__fail(err, KHUB_E_FORMAT, "the answer is %llu MB long, at most %d are read",
                          (unsigned long long)(transfer->answer.length >> 20), KHUB__JSON_MAX >> 20);
    return KHUB_OK;
}

static int take_body(void *self, khub__transfer *transfer, const void *data, size_t bytes, khub_error *err)
{
    khub__reply *reply = self;
    (void)transfer;
    if (bytes > KHUB__JSON_MAX - reply->body.length)
        return khub__fail(err, KHUB_E_FORMAT, "the answer is longer than %d MB", KHUB__JSON_MAX >> 20);
    khub__text_add_bytes(&reply->body, data, bytes);
    return reply->body.failed ? khub__fail_memory(err, "reading an answer") : KHUB_OK;
}

/* A name that isn't known is asked for once more: mostly there is no network at all. */
static unsigned most_retries(const khub__client *client, const khub__transfer *transfer)
{
    unsigned most = client->settings.retries;
    return transfer->broken && transfer->trouble == KHUB__TROUBLE_NAME && most > 1 ? 1 : most;
}

/* "can't reach http://room:8080: WORDS; tries again in 1 s (2 of 6)" */
static void say_wait(const khub__transfer *transfer, const khub__client *client, int64_t wait_ms,
                     unsigned retry)
{
    char words[sizeof(transfer->why.message)], answer[48];
    int status = transfer->answer.status, unnamed = transfer->trouble == KHUB__TROUBLE_NAME;
    snprintf(answer, sizeof(answer), "it answers %d", status);
    khub__copy(words, sizeof(words), transfer->broken ? transfer->why.message : answer);
    khub__token_hide(words, client->settings.token);
    khub__log(KHUB_LOG_NOTICE, "hub", "", "%s %s: %.600s; tries again in %lld s (%u of %u)%s",
              transfer->broken && !status ? "can't reach" : "waits for", client->settings.endpoint, words,
              (long long)((wait_ms + 999) / 1000), retry + 1, most_retries(client, transfer) + 1,
              unnamed && retry == 1 ? KHUB__WITHOUT_NETWORK : "");
}

int64_t khub__client_retry(unsigned *retries, const khub__client *client, const khub__transfer *transfer)
{
    int status = transfer->broken ? 0 : transfer->answer.status;
    if (transfer->status != KHUB_OK || client->hurries || !khub__is_passing(status)) return -1;
    if (*retries >= most_retries(client, transfer)) return -1;
    int64_t wait = khub__retry_wait_ms(&transfer->answer, ++*retries);
    if (wait < 0) return -1;
    say_wait(transfer, client, wait, *retries);
    return (int64_t)khub__retry_wait((uint32_t)wait);
}

/* Waits, with the progress told. */
static int wait_ms(khub__client *client, int64_t ms, khub_error *err)
{
    uint64_t until = khub__now_ms() + (uint64_t)ms, now;
    int rc = KHUB_OK;
    while (rc == KHUB_OK && (now = khub__now_ms()) < until) {
        unsigned step = until - now < KHUB__TICK_MS ? (unsigned)(until - now) : KHUB__TICK_MS;
        rc = khub__engine_step(client->engine, step, err);
        if (rc == KHUB_OK) rc = khub__client_tick(client, err);
    }
    return rc;
}

/* Sends it and waits until it has ended. */
static int exchange(khub__reply *out, khub__client *client, const khub__request *request, khub_error *err)
{
    int rc = khub__engine_start(client->engine, &out->transfer, request, err);
    while (rc == KHUB_OK && !khub__engine_ended(client->engine)) {
        rc = khub__engine_step(client->engine, KHUB__TICK_MS, err);
        if (rc == KHUB_OK) rc = khub__client_tick(client, err);
    }
    if (rc != KHUB_OK) khub__engine_stop(client->engine, &out->transfer);
    return rc;
}

int khub__client_ask(khub__reply *out, khub__client *client, const char *url, const khub__asked *asked,
                     khub_error *err)
{
    khub__request request = {.url = url,
                             .from = UINT64_MAX,
                             .to = UINT64_MAX,
                             .patience_ms = client->hurries ? HURRY_MS : 0,
                             .head = take_head,
                             .body = take_body,
                             .self = out};
    unsigned retries = 0;
    char shown[208];
    memset(out, 0, sizeof(*out));
    client->at = (khub_progress){.what = asked->repo ? asked->repo->id : asked->org};
    int rc = khub__client_connect(client, khub__url_shown(shown, url), err);
    while (rc == KHUB_OK) {
        rc = exchange(out, client, &request, err);
        if (rc != KHUB_OK) break;
        int64_t wait = khub__client_retry(&retries, client, &out->transfer);
        if (wait < 0) {
            rc = khub__transfer_check(&out->transfer, asked, err);
            break;
        }
        khub__log(KHUB_LOG_DEBUG, "hub", shown, "try %u in %lld ms", retries + 1, (long long)wait);
        rc = wait_ms(client, wait, err);
    }
    if (err) khub__token_hide(err->message, client->settings.token);
    return rc;
}

void khub__reply_free(khub__reply *reply)
{
    khub__transfer_free(&reply->transfer);
    khub__text_free(&reply->body);
}
