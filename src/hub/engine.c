#include "hub/engine.h"

#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "hub/clock.h"
#include "hub/curl.h"
#include "hub/flight.h"
#include "hub/kept.h"
#include "hub/token.h"
#include "hub/url.h"

#include <stdatomic.h>
#include <stdio.h>

enum { CONNECTIONS = 8 };

static atomic_uint_fast64_t requests;

uint64_t khub__engine_requests(void)
{
    return atomic_load(&requests);
}

int khub__engine_is_own(const khub__engine *engine)
{
    return engine->process == khub__process();
}

static void destroy(khub__engine *engine)
{
    if (!engine) return;
    while (engine->idle) {
        khub__flight *flight = engine->idle;
        engine->idle = flight->next;
        khub__flight_free(engine, flight);
    }
    if (engine->multi) engine->curl->curl_multi_cleanup(engine->multi);
    khub__token_free(engine->token);
    khub__free(engine->endpoint);
    khub__free(engine);
}

static khub__engine *create(const khub__hub_settings *settings, const khub__curl_table *curl)
{
    khub__engine *engine = khub__calloc(1, sizeof(*engine));
    if (!engine) return NULL;
    engine->curl = curl;
    engine->process = khub__process();
    engine->endpoint = khub__strdup(settings->endpoint);
    engine->token = khub__strdup(settings->token);
    engine->multi = curl->curl_multi_init();
    if (!engine->multi || !engine->endpoint || (settings->token && !engine->token)) {
        destroy(engine);
        return NULL;
    }
    curl->curl_multi_setopt(engine->multi, CURLMOPT_MAX_HOST_CONNECTIONS, (long)CONNECTIONS);
    curl->curl_multi_setopt(engine->multi, CURLMOPT_MAXCONNECTS, (long)CONNECTIONS * 2);
    return engine;
}

int khub__engine_open(khub__engine **out, const khub__hub_settings *settings, khub_error *err)
{
    const khub__curl_table *curl;
    *out = NULL;
    int rc = khub__curl_open(&curl, err);
    if (rc != KHUB_OK) return rc;
    if (strncmp(settings->endpoint, "https", 5) == 0 && !curl->has_tls)
        return khub__fail(err, KHUB_E_NETWORK,
                          "%s: this libcurl was built without TLS, https can't be spoken",
                          settings->endpoint);
    khub__engine *engine = khub__kept_take(settings);
    if (!engine) engine = create(settings, curl);
    if (!engine) return khub__fail_memory(err, "opening a connection");
    engine->settings = settings;
    *out = engine;
    return KHUB_OK;
}

void khub__engine_close(khub__engine *engine)
{
    if (!engine || !khub__engine_is_own(engine)) return;
    while (engine->flying)
        khub__engine_stop(engine, engine->flying->transfer);
    engine->settings = NULL;
    khub__engine *oldest = khub__kept_put(engine);
    if (oldest && khub__engine_is_own(oldest)) destroy(oldest);
}

/* Puts it on the wire. */
static int launch(khub__engine *engine, khub__flight *flight, khub_error *err)
{
    int rc = khub__flight_prepare(engine, flight, err);
    if (rc != KHUB_OK) return rc;
    if (engine->curl->curl_multi_add_handle(engine->multi, flight->easy) != CURLM_OK)
        return khub__fail_memory(err, "sending a request");
    flight->added = 1;
    flight->last_ms = flight->launched_ms = khub__now_ms();
    return KHUB_OK;
}

/* Takes a flight out of the list of those under way and makes it idle. */
static void land(khub__engine *engine, khub__flight *flight)
{
    for (khub__flight **at = &engine->flying; *at; at = &(*at)->next)
        if (*at == flight) {
            *at = flight->next;
            break;
        }
    if (flight->added) engine->curl->curl_multi_remove_handle(engine->multi, flight->easy);
    flight->added = 0;
    flight->transfer->flight = NULL;
    flight->transfer = NULL;
    flight->next = engine->idle;
    engine->idle = flight;
}

static void reset(khub__transfer *transfer)
{
    khub__transfer_free(transfer);
    memset(transfer, 0, sizeof(*transfer));
    khub__answer_clear(&transfer->answer);
    transfer->size = UINT64_MAX;
}

int khub__engine_start(khub__engine *engine, khub__transfer *transfer, const khub__request *request,
                       khub_error *err)
{
    reset(transfer);
    transfer->request = request;
    transfer->left = request->without_token;
    transfer->url = khub__strdup(request->url);
    khub__flight *flight = engine->idle;
    if (flight)
        engine->idle = flight->next;
    else
        flight = khub__flight_new(engine);
    if (!transfer->url || !flight) {
        if (flight) flight->next = engine->idle, engine->idle = flight;
        return khub__fail_memory(err, "sending a request");
    }
    flight->transfer = transfer;
    flight->next = engine->flying;
    engine->flying = flight;
    transfer->flight = flight;
    int rc = launch(engine, flight, err);
    if (rc != KHUB_OK)
        land(engine, flight);
    else
        atomic_fetch_add(&requests, 1);
    return rc;
}

void khub__engine_stop(khub__engine *engine, khub__transfer *transfer)
{
    if (transfer->flight) land(engine, transfer->flight);
}

void khub__engine_wake(khub__engine *engine)
{
    engine->curl->curl_multi_wakeup(engine->multi);
}

void khub__engine_resume(khub__engine *engine, khub__transfer *transfer)
{
    if (!transfer->flight || !transfer->flight->paused) return;
    transfer->flight->paused = 0;
    transfer->flight->last_ms = khub__now_ms();
    engine->curl->curl_easy_pause(transfer->flight->easy, CURLPAUSE_CONT);
}

int khub__engine_multiplexes(const khub__engine *engine)
{
    return engine->multiplexes;
}

/* When a flight has failed unless something arrives; *allowed_ms is how long that is after the last. */
static uint64_t deadline(const khub__engine *engine, const khub__flight *flight, uint64_t *allowed_ms)
{
    const khub__hub_settings *settings = engine->settings;
    unsigned patience = flight->transfer->request->patience_ms;
    *allowed_ms = settings->stall_timeout_ms;
    if (!flight->head_seen && patience) {
        *allowed_ms = patience;
        return flight->launched_ms + patience;
    }
    if (!flight->transfer->answer.bytes) *allowed_ms += settings->connect_timeout_ms;
    return flight->last_ms + *allowed_ms;
}

/* No byte for the time allowed? A paused one waits for us, not for the Hub. */
static void check_stalled(khub__engine *engine, khub__flight *flight, uint64_t now)
{
    uint64_t allowed;
    if (flight->paused) flight->last_ms = now;
    if (!flight->ended && now >= deadline(engine, flight, &allowed)) khub__flight_stall(flight, allowed);
}

static void gather(khub__engine *engine)
{
    CURLMsg *message;
    int left;
    while ((message = engine->curl->curl_multi_info_read(engine->multi, &left))) {
        if (message->msg != CURLMSG_DONE) continue;
        char *flight = NULL;
        CURLcode code = message->data.result; /* the message is gone with the next call */
        engine->curl->curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &flight);
        khub__flight_end(engine, (khub__flight *)(void *)flight, code);
    }
    uint64_t now = khub__now_ms();
    for (khub__flight *flight = engine->flying; flight; flight = flight->next)
        check_stalled(engine, flight, now);
}

static int any_ended(const khub__engine *engine)
{
    for (const khub__flight *flight = engine->flying; flight; flight = flight->next)
        if (flight->ended) return 1;
    return 0;
}

int khub__engine_step(khub__engine *engine, unsigned timeout_ms, khub_error *err)
{
    const khub__curl_table *curl = engine->curl;
    int running;
    khub__hush hush;
    khub__hush_begin(&hush);
    CURLMcode code = curl->curl_multi_perform(engine->multi, &running);
    if (code == CURLM_OK) gather(engine);
    if (code == CURLM_OK && !any_ended(engine)) {
        code = curl->curl_multi_poll(engine->multi, NULL, 0, (int)timeout_ms, NULL);
        if (code == CURLM_OK) code = curl->curl_multi_perform(engine->multi, &running);
        if (code == CURLM_OK) gather(engine);
    }
    khub__hush_end(&hush);
    if (code == CURLM_OUT_OF_MEMORY) return khub__fail_memory(err, "waiting for the network");
    return code == CURLM_OK
               ? KHUB_OK
               : khub__fail(err, KHUB_E_NETWORK, "libcurl can't go on (multi error %d)", (int)code);
}

/* Sends a redirected request on its way again. 1: it flies. */
static int fly_on(khub__engine *engine, khub__flight *flight)
{
    khub__transfer *transfer = flight->transfer;
    engine->curl->curl_multi_remove_handle(engine->multi, flight->easy);
    flight->added = 0;
    flight->ended = 0;
    int rc = khub__flight_redirect(engine, flight, &transfer->why);
    if (rc == KHUB_OK) rc = launch(engine, flight, &transfer->why);
    if (rc == KHUB_OK) return 1;
    transfer->status = rc;
    return 0;
}

khub__transfer *khub__engine_ended(khub__engine *engine)
{
    khub__flight *next;
    for (khub__flight *flight = engine->flying; flight; flight = next) {
        next = flight->next;
        if (!flight->ended || (khub__flight_is_redirected(flight) && fly_on(engine, flight))) continue;
        khub__transfer *transfer = flight->transfer;
        land(engine, flight);
        return transfer;
    }
    return NULL;
}

void khub__transfer_free(khub__transfer *transfer)
{
    khub__answer_clear(&transfer->answer);
    khub__free(transfer->url);
    transfer->url = NULL;
}
