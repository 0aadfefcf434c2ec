/* How the Hub is reached: what the caller's options and the environment say, read once for one client. */
#ifndef HUB_SETTINGS_H
#define HUB_SETTINGS_H

#include "base/home.h"

#include <khub/hub.h>

typedef struct khub__hub_settings {
    char *endpoint;           /* without a trailing "/" */
    char *token;              /* NULL: none. Never printed, logged or put into an error */
    const char *token_source; /* "HF_TOKEN", "the file /…/token" (in `token_file`), "the caller" */
    char *token_file;
    char *user_agent;
    int offline;
    unsigned retries; /* KHUB_RETRIES, or 0 where the caller says so; else KHUB__RETRIES */
    uint32_t connect_timeout_ms,
        stall_timeout_ms; /* HF_HUB_ETAG_TIMEOUT, HF_HUB_DOWNLOAD_TIMEOUT; 10 s each */
} khub__hub_settings;

/* `options` may be NULL. KHUB_E_INVAL: an endpoint that isn't http or https, a token with a control character
 * (names its source); KHUB_E_NOMEM. */
int khub__hub_settings_read(khub__hub_settings *out, const khub_hub_options *options, khub_error *err);
void khub__hub_settings_free(khub__hub_settings *settings); /* frees what it holds and zeroes it */

/* Adds a fact about the machine to the user agent ("backend", "cu128"), unless it is there already or the
 * user doesn't want any told (HF_HUB_DISABLE_TELEMETRY, DISABLE_TELEMETRY, DO_NOT_TRACK). `value` may be
 * NULL. KHUB_OK or KHUB_E_NOMEM. */
int khub__hub_settings_tell(khub__hub_settings *settings, const char *name, const char *value);

/* "khub/0.1.0; platform/x86_64-linux; glibc/2.36", or its first part alone. The caller's; NULL: no memory. */
char *khub__user_agent(void);

#endif
