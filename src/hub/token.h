/* The user's token: found, cleaned, never shown. */
#ifndef HUB_TOKEN_H
#define HUB_TOKEN_H

#include "hub/settings.h"

/* Fills in token, token_source and token_file. `given` is the caller's (NULL: look for one; "": none).
 * KHUB_E_INVAL: it holds something that a header can't (names the source, not the token); KHUB_E_NOMEM. */
int khub__token_find(khub__hub_settings *out, const char *given, khub_error *err);

/* Overwrites and frees it. NULL is a no-op. */
void khub__token_free(char *token);

/* Replaces the token wherever it stands in `text`, by as many "*". `token` may be NULL. */
void khub__token_hide(char *text, const char *token);

#endif
