#include "kernel/place.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/text.h"
#include "trust/trust.h"

#include <khub/kernel.h>

int khub__way_open(khub__way *out, const khub_hub_options *hub, const char *lock, khub_error *err)
{
    memset(out, 0, sizeof(*out));
    out->hub = hub;
    out->locked = lock != NULL;
    khub_hub_options ours;
    int rc = khub__options(&ours, sizeof(ours), hub, "khub_hub_options", err);
    if (rc != KHUB_OK) return rc;
    out->rules = (khub__rules){.given = ours.policy, .named = ours.trust};
    return lock ? khub__lockfile_read(&out->lock, lock, err) : KHUB_OK;
}

void khub__way_close(khub__way *way)
{
    khub__session_close(&way->session);
    khub__rules_close(&way->rules);
    khub__lockfile_free(&way->lock);
    for (size_t i = 0; i < way->done_count; i++)
        khub__free(way->done[i]);
    khub__free(way->done);
    memset(way, 0, sizeof(*way));
}

/* The commit that the lock has for it takes the place of a version or a branch. */
static int pin(void *user, khub__wanted *wanted, khub_error *err)
{
    const khub__way *way = user;
    return way->locked ? khub__lockfile_pin(&way->lock, wanted, err) : KHUB_OK;
}

int khub__way_describe(const khub__session *session, const khub_platform *platform, khub_error *err)
{
    return khub__client_describe(session->client, "backend", khub_platform_backend(platform), err);
}

int khub__way_session(khub__way *way, khub_error *err)
{
    if (way->session.client) return KHUB_OK;
    int rc = khub__session_open(&way->session, way->hub, err);
    way->session.pin = pin; /* a redirect leads to a name that must be in the lock, too */
    way->session.pin_user = way;
    return rc == KHUB_OK && way->platform ? khub__way_describe(&way->session, way->platform, err) : rc;
}

static int open_hub(khub__place *out, khub__way *way, const char *name, khub_error *err)
{
    khub__wanted wanted;
    int rc = khub__wanted_parse(&wanted, KHUB__REPO_KERNEL, name, err);
    if (rc == KHUB_OK) rc = pin(way, &wanted, err);
    if (rc == KHUB_OK) rc = khub__way_session(way, err);
    if (rc == KHUB_OK) rc = khub__remote_open(&out->remote, &way->session, &wanted, err);
    return rc == KHUB_OK ? khub__repository_of(&out->repository, &out->remote, err) : rc;
}

int khub__place_open(khub__place *out, khub__way *way, const char *name, khub_error *err)
{
    memset(out, 0, sizeof(*out));
    char *path;
    int rc = khub__repository_find(&path, name, err);
    if (rc == KHUB_OK)
        rc = path ? khub__repository_open(&out->repository, path, err) : open_hub(out, way, name, err);
    khub__free(path);
    if (rc != KHUB_OK) khub__place_close(out);
    return rc;
}

khub__rules *khub__place_rules(khub__place *place, khub__way *way)
{
    return place->repository.remote ? &place->repository.remote->session->rules : &way->rules;
}

/* What came with khub is as good as khub itself: no policy is asked. */
int khub__place_begin_trust(khub_trust **out, khub__place *place, khub__way *way, const char *name,
                            khub_error *err)
{
    const khub__repository *at = &place->repository;
    int built_in = !at->remote && khub__repository_is_built_in(at->path);
    const khub_policy *policy = NULL;
    *out = NULL;
    int rc = built_in ? KHUB_OK : khub__rules_policy(&policy, khub__place_rules(place, way), err);
    if (rc == KHUB_OK) rc = khub__trust_new(out, khub_policy_about(policy).level, err);
    if (rc != KHUB_OK || at->remote) return rc;
    if (built_in)
        khub__trust_add(*out, KHUB__ABOUT_PUBLISHER, KHUB_TRUST_ACCEPTED, "%s: came with khub", name);
    else
        khub__trust_add(*out, KHUB__ABOUT_PUBLISHER, KHUB_TRUST_ACCEPTED,
                        "%s: the caller names the directory %s", name, at->path);
    return KHUB_OK;
}

void khub__place_close(khub__place *place)
{
    khub__repository_close(&place->repository);
    khub__remote_close(&place->remote);
}

int khub_choose_in(khub_choice **out, const char *name, const khub_platform *platform,
                   const khub_hub_options *hub, khub_error *err)
{
    int missing = khub__given("khub_choose_in", out && name && platform, err);
    if (out) *out = NULL;
    if (missing != KHUB_OK) return missing;
    khub__way way;
    khub__place place = {0};
    int rc = khub__way_open(&way, hub, NULL, err);
    way.platform = platform;
    if (rc == KHUB_OK) rc = khub__place_open(&place, &way, name, err);
    if (rc == KHUB_OK) rc = khub__repository_choose(out, &place.repository, platform, err);
    khub__place_close(&place);
    khub__way_close(&way);
    return rc;
}
