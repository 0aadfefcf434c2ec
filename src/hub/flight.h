/* One request on the wire: a libcurl handle and what its callbacks know. Inside of the engine. */
#ifndef HUB_FLIGHT_H
#define HUB_FLIGHT_H

#include "hub/curl.h"
#include "hub/engine.h"

typedef struct khub__flight khub__flight;

struct khub__flight {
    CURL *easy;
    struct curl_slist *headers;
    khub__transfer *transfer;
    khub__engine *engine;
    khub__flight *next;
    uint64_t launched_ms;
    uint64_t last_ms; /* when something that is wanted last arrived */
    uint64_t ignored; /* bytes of a body that nobody wants */
    int added, ended, paused, head_seen;
    int no_more_files;               /* that a process or the system may have open, so no connection either */
    int tls_seen, no_tls, tls_alert; /* a record came; the first was none; the fatal alert that came, or 0 */
    char words[CURL_ERROR_SIZE];
};

struct khub__engine {
    const khub__curl_table *curl;
    const khub__hub_settings *settings; /* of the client that has it */
    CURLM *multi;
    char *endpoint, *token;
    int64_t process;
    int multiplexes;
    khub__flight *flying, *idle;
};

khub__flight *khub__flight_new(khub__engine *engine); /* NULL: no memory */
void khub__flight_free(khub__engine *engine, khub__flight *flight);

/* Sets up the handle for the transfer's address, with the token only where it may go. */
int khub__flight_prepare(khub__engine *engine, khub__flight *flight, khub_error *err);

/* Opens a connection's socket, which isn't inherited; `user` is the flight. */
curl_socket_t khub__flight_socket(void *user, curlsocktype purpose, struct curl_sockaddr *to);

/* libcurl is done with it: says in the transfer what came of it. */
void khub__flight_end(khub__engine *engine, khub__flight *flight, CURLcode code);

/* Nothing came for as long as it may: that is the end of it, and a failure unless the head said it all. */
void khub__flight_stall(khub__flight *flight, uint64_t allowed_ms);

/* 1: it ended with an answer that sends us elsewhere. */
int khub__flight_is_redirected(const khub__flight *flight);

/* Makes the transfer's address the one where the answer sends us. KHUB_E_NETWORK. */
int khub__flight_redirect(khub__engine *engine, khub__flight *flight, khub_error *err);

#endif
