/* What an answer that isn't a success means, in words that say what to do. */
#ifndef HUB_ERRORS_H
#define HUB_ERRORS_H

#include "hub/engine.h"

/* What was asked for; NULL where it doesn't apply. */
typedef struct khub__asked {
    const khub__hub_settings *settings;
    const khub__repo *repo;
    const char *revision, *path;
    const char *org; /* of an overview */
} khub__asked;

/* What to do on a machine that no network is at, behind a message. */
#define KHUB__WITHOUT_NETWORK                                                                                \
    "; without a network, khub_hub_options.offline (HF_HUB_OFFLINE=1) takes what the cache has, and "        \
    "khub_hub_options.no_retry (KHUB_RETRIES=0) doesn't try again"

/* The error of a request that has ended: by its listener, by the connection, or by the answer's status. */
int khub__transfer_fail(const khub__transfer *transfer, const khub__asked *asked, khub_error *err);

/* KHUB_OK for a success, or one of the above. */
int khub__transfer_check(const khub__transfer *transfer, const khub__asked *asked, khub_error *err);

#endif
