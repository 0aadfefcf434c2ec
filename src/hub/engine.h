/* Requests side by side over one set of connections, redirects followed by hand. One thread at a time. */
#ifndef HUB_ENGINE_H
#define HUB_ENGINE_H

#include "hub/answer.h"
#include "hub/settings.h"

typedef struct khub__engine khub__engine;
typedef struct khub__transfer khub__transfer;

/* What a listener's `body` may return beside a status: nothing was taken; the same bytes come again after
 * khub__transfer_resume. */
enum { KHUB__PAUSE = 1 };

/* What to ask, and who listens. Borrowed while the request runs. */
typedef struct khub__request {
    const char *url;
    uint64_t from,
        to; /* the bytes wanted, both included; from UINT64_MAX: all, no Range; to UINT64_MAX: the rest */
    int without_token;
    unsigned patience_ms; /* given up when there is no head after this time; 0: as the settings say */
    /* The head of the last answer (redirects and errors don't count, 416 for a Range does). Not KHUB_OK ends
     * the request with that status. */
    int (*head)(void *self, khub__transfer *transfer, khub_error *err);
    /* Bytes of its body, in order. A status that isn't KHUB_OK ends the request with it. */
    int (*body)(void *self, khub__transfer *transfer, const void *data, size_t bytes, khub_error *err);
    void *self;
} khub__request;

/* What a connection failed by, where there is advice for it. */
typedef enum khub__trouble {
    KHUB__TROUBLE_OTHER,
    KHUB__TROUBLE_CERTIFICATE,        /* the server's is one that nobody vouches for */
    KHUB__TROUBLE_CERTIFICATES,       /* the file of those that are trusted can't be used */
    KHUB__TROUBLE_CLIENT_CERTIFICATE, /* the server wants one of us */
    KHUB__TROUBLE_HANDSHAKE,
    KHUB__TROUBLE_NO_TLS,  /* the server speaks something else */
    KHUB__TROUBLE_NO_HTTP, /* what came, if anything, was no HTTP */
    KHUB__TROUBLE_NAME,    /* the address of its host, or of the proxy's, isn't known */
    KHUB__TROUBLE_FILES    /* too many are open here */
} khub__trouble;

/* What became of a request. */
struct khub__transfer {
    const khub__request *request;
    khub__answer answer; /* of the last hop */
    char *url;           /* of the last hop */
    /* From the first answer that had them, redirects included. */
    char etag[KHUB__ETAG_MAX + 1], commit[KHUB__COMMIT_MAX + 1];
    uint64_t size;   /* UINT64_MAX: not said */
    int hops;        /* redirects followed */
    int left;        /* went to another origin than the endpoint's: the token stays at home from there on */
    int status;      /* KHUB_OK; else why it ended early, with words in `why`: not worth another try */
    int by_listener; /* it was the listener who ended it */
    int broken;      /* the connection failed, with words in `why`: worth another try */
    khub__trouble trouble; /* of a connection that failed */
    uint64_t bytes;        /* of the body, handed to the listener */
    khub_error why;
    struct khub__flight *flight; /* the engine's; NULL when it has ended */
};

/* Gets the engine that a closed client with the same endpoint and token left, or a new one. Borrows
 * `settings`. */
int khub__engine_open(khub__engine **out, const khub__hub_settings *settings, khub_error *err);
/* 1: it was opened in this process. After a fork the connections are the parent's, and an engine of another
 * process must be left alone for good. */
int khub__engine_is_own(const khub__engine *engine);

/* Ends what is under way and keeps the connections for the next. NULL is a no-op. */
void khub__engine_close(khub__engine *engine);

/* Starts a request. *transfer (zeroed before its first use) must stay where it is until it has ended. */
int khub__engine_start(khub__engine *engine, khub__transfer *transfer, const khub__request *request,
                       khub_error *err);

/* Goes on with all that is under way for at most `timeout_ms`, less when something ends or is woken. */
int khub__engine_step(khub__engine *engine, unsigned timeout_ms, khub_error *err);

/* The next that has ended; NULL: none. */
khub__transfer *khub__engine_ended(khub__engine *engine);

/* Ends one that is under way. */
void khub__engine_stop(khub__engine *engine, khub__transfer *transfer);

/* Makes the engine's step return at once. Any thread. */
void khub__engine_wake(khub__engine *engine);

/* Goes on with one that was paused. */
void khub__engine_resume(khub__engine *engine, khub__transfer *transfer);

/* 1: the last answer came over a connection that carries many requests at once. */
int khub__engine_multiplexes(const khub__engine *engine);

void khub__transfer_free(khub__transfer *transfer); /* frees what it holds */

/* Requests sent by this process so far, redirects apart. */
uint64_t khub__engine_requests(void);

#endif
