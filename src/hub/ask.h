/* One question with a JSON answer: asked, waited for, asked again where that helps. Inside of the client. */
#ifndef HUB_ASK_H
#define HUB_ASK_H

#include "base/text.h"
#include "hub/client.h"
#include "hub/errors.h"

enum { KHUB__TICK_MS = 30 }; /* how often the progress is told */

enum { KHUB__JSON_MAX = 32 << 20 }; /* a page of the Hub's has 1,000 entries, some 300 KB */

struct khub__client {
    khub__hub_settings settings;
    khub_progress_fn progress;
    void *user;
    khub__engine *engine; /* NULL: nothing was asked yet */
    int hurries;          /* one attempt per question */
    uint64_t ticked_ms;   /* when the progress was last told */
    khub_progress at;     /* where we are */
};

/* Tells the progress unless it was told just now. KHUB_E_CANCELED. */
int khub__client_tick(khub__client *client, khub_error *err);
/* Tells it in any case. */
int khub__client_tell(khub__client *client, khub_error *err);

/* Makes sure of the engine. KHUB_E_OFFLINE, KHUB_E_NETWORK, KHUB_E_NOMEM. */
int khub__client_connect(khub__client *client, const char *what, khub_error *err);

/* An answer's body and head; both are freed with khub__reply_free. */
typedef struct khub__reply {
    khub__transfer transfer;
    khub__text body;
} khub__reply;

int khub__client_ask(khub__reply *out, khub__client *client, const char *url, const khub__asked *asked,
                     khub_error *err);
void khub__reply_free(khub__reply *reply);

/* How long to wait before the next try of a request that has ended badly; -1: there is none. `retries` counts
 * those made and is counted up. */
int64_t khub__client_retry(unsigned *retries, const khub__client *client, const khub__transfer *transfer);

#endif
