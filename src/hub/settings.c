#include "hub/settings.h"

#include "base/error.h"
#include "base/memory.h"
#include "hub/retry.h"
#include "hub/token.h"
#include "hub/url.h"

#include <stdlib.h>

static const char default_endpoint[] = "https://huggingface.co";

/* HF_HUB_ETAG_TIMEOUT and HF_HUB_DOWNLOAD_TIMEOUT are in seconds. */
static uint32_t timeout_ms(const char *name)
{
    enum { DEFAULT_MS = 10000, MAX_S = 86400 };
    const char *value = khub__env(name);
    char *end;
    double seconds = value ? strtod(value, &end) : 0;
    if (!value || end == value || !(seconds > 0)) return DEFAULT_MS;
    return seconds > MAX_S ? MAX_S * 1000u : seconds < 0.001 ? 1 : (uint32_t)(seconds * 1000);
}

/* KHUB_RETRIES: how often a request that fails is sent again. */
static unsigned read_retries(void)
{
    const char *value = khub__env("KHUB_RETRIES");
    char *end;
    long n = value ? strtol(value, &end, 10) : -1;
    return n < 0 || *end ? KHUB__RETRIES : n < KHUB__RETRIES_MAX ? (unsigned)n : KHUB__RETRIES_MAX;
}

/* `text` without blanks around it and slashes at its end. NULL: no memory. */
static char *trimmed(const char *text)
{
    text += strspn(text, " \t\r\n");
    size_t length = strlen(text);
    while (length > 0 && strchr(" \t\r\n", text[length - 1]))
        length--;
    while (length > 0 && text[length - 1] == '/')
        length--;
    return khub__strndup(text, length);
}

static int read_endpoint(khub__hub_settings *out, const char *given, khub_error *err)
{
    const char *set = khub__env("HF_ENDPOINT");
    const char *source = given ? "the endpoint" : "HF_ENDPOINT";
    out->endpoint = trimmed(given ? given : set ? set : default_endpoint);
    if (!out->endpoint) return khub__fail_memory(err, "reading the settings");
    khub__url url;
    khub__url_tidy(out->endpoint);
    if (khub__url_parse(&url, out->endpoint) == 0 && !strpbrk(url.path, "?#")) return KHUB_OK;
    char shown[208];
    khub__url_shown(shown, out->endpoint);
    return khub__fail(err, KHUB_E_INVAL,
                      "%s (\"%s\") isn't the address of a Hub, https://HOST or http://HOST[:PORT][/PATH]",
                      source, strchr(out->endpoint, '@') ? "..." : shown); /* before "@" stands a password */
}

int khub__hub_settings_read(khub__hub_settings *out, const khub_hub_options *options, khub_error *err)
{
    memset(out, 0, sizeof(*out));
    out->offline = (options && options->offline) || khub__env_is_true("HF_HUB_OFFLINE") ||
                   khub__env_is_true("TRANSFORMERS_OFFLINE");
    out->retries = options && options->no_retry ? 0 : read_retries();
    out->connect_timeout_ms = timeout_ms("HF_HUB_ETAG_TIMEOUT");
    out->stall_timeout_ms = timeout_ms("HF_HUB_DOWNLOAD_TIMEOUT");
    int rc = read_endpoint(out, options ? options->endpoint : NULL, err);
    if (rc == KHUB_OK) rc = khub__token_find(out, options ? options->token : NULL, err);
    if (rc == KHUB_OK && !(out->user_agent = khub__user_agent()))
        rc = khub__fail_memory(err, "reading the settings");
    if (rc != KHUB_OK) khub__hub_settings_free(out);
    return rc;
}

void khub__hub_settings_free(khub__hub_settings *settings)
{
    khub__token_free(settings->token);
    khub__free(settings->endpoint);
    khub__free(settings->token_file);
    khub__free(settings->user_agent);
    memset(settings, 0, sizeof(*settings));
}
