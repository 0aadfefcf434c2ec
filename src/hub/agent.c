#include "hub/settings.h"

#include "base/memory.h"
#include "base/text.h"
#include "platform/system.h"

#include <stdio.h>

static int is_quiet(void)
{
    static const char *const variables[] = {"HF_HUB_DISABLE_TELEMETRY", "DISABLE_TELEMETRY", "DO_NOT_TRACK"};
    for (size_t i = 0; i < sizeof(variables) / sizeof(*variables); i++)
        if (khub__env_is_true(variables[i])) return 1;
    return 0;
}

char *khub__user_agent(void)
{
    khub__text text = {0};
    khub__text_addf(&text, "khub/%s", khub_version());
    if (is_quiet()) return khub__text_take(&text);
    khub__pool pool = {0};
    const char *os, *arch, *glibc = khub__system_glibc();
    khub__system_names(&os, &arch, &pool);
    if (os && arch)
        khub__text_addf(&text, "; platform/%s-%s", arch, os);
    else
        text.failed = 1;
    if (glibc) khub__text_addf(&text, "; glibc/%s", glibc);
    khub__pool_free(&pool);
    return khub__text_take(&text);
}

int khub__hub_settings_tell(khub__hub_settings *settings, const char *name, const char *value)
{
    char begin[64];
    snprintf(begin, sizeof(begin), "; %s/", name);
    if (is_quiet() || !value || strpbrk(value, "\r\n;") || strstr(settings->user_agent, begin))
        return KHUB_OK;
    khub__text text = {0};
    khub__text_addf(&text, "%s%s%s", settings->user_agent, begin, value);
    char *longer = khub__text_take(&text);
    if (!longer) return KHUB_E_NOMEM;
    khub__free(settings->user_agent);
    settings->user_agent = longer;
    return KHUB_OK;
}
