#include "kernel/needs.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"

#include <stdio.h>

enum { MAX_CHAIN = 32 };

int khub__need_name(char name[KHUB__NEED_NAME_MAX], const khub__metadata_need *need, khub_error *err)
{
    khub__wanted wanted;
    khub_error why = {0};
    if (need->version >= 0)
        snprintf(name, KHUB__NEED_NAME_MAX, "%s@v%lld", need->repo_id, (long long)need->version);
    else
        snprintf(name, KHUB__NEED_NAME_MAX, "%s@%s", need->repo_id, need->revision);
    int rc = khub__wanted_parse(&wanted, KHUB__REPO_KERNEL, name, &why);
    return rc == KHUB_OK ? rc : khub__fail(err, KHUB_E_FORMAT, "\"kernel-depends\": %s", why.message);
}

static int fail_circle(const khub__chain *last, const char *name, khub_error *err)
{
    khub__text text = {0};
    const khub__chain *all[MAX_CHAIN];
    size_t n = 0;
    for (; last && n < MAX_CHAIN; last = last->before)
        all[n++] = last;
    while (n--)
        khub__text_addf(&text, "%s needs ", all[n]->name);
    char *names = khub__text_take(&text);
    int rc = names ? khub__fail(err, KHUB_E_FORMAT,
                                "%s%s: kernels that need each other in a circle, or too deep", names, name)
                   : khub__fail_memory(err, "following what kernels need");
    khub__free(names);
    return rc;
}

int khub__chain_check(const khub__chain *last, const char *name, khub_error *err)
{
    size_t n = 0;
    for (const khub__chain *at = last; at; at = at->before)
        if (!strcmp(at->name, name) || ++n >= MAX_CHAIN) return fail_circle(last, name, err);
    return KHUB_OK;
}
