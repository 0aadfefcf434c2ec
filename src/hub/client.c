#include "hub/client.h"

#include "base/error.h"
#include "base/memory.h"
#include "hub/address.h"
#include "hub/ask.h"
#include "hub/listing.h"
#include "hub/url.h"

int khub__client_open(khub__client **out, khub__hub_settings *settings, khub_progress_fn progress, void *user,
                      khub_error *err)
{
    khub__client *client = khub__calloc(1, sizeof(*client));
    *out = client;
    if (!client) {
        khub__hub_settings_free(settings);
        return khub__fail_memory(err, "opening a client");
    }
    client->settings = *settings;
    memset(settings, 0, sizeof(*settings));
    client->progress = progress;
    client->user = user;
    return KHUB_OK;
}

void khub__client_close(khub__client *client)
{
    if (!client) return;
    khub__engine_close(client->engine);
    khub__hub_settings_free(&client->settings);
    khub__free(client);
}

int khub__client_offline(const khub__client *client)
{
    return client->settings.offline;
}

void khub__client_hurry(khub__client *client, int hurries)
{
    client->hurries = hurries;
}

int khub__client_describe(khub__client *client, const char *name, const char *value, khub_error *err)
{
    int rc = khub__hub_settings_tell(&client->settings, name, value);
    return rc == KHUB_OK ? rc : khub__fail_memory(err, "describing this machine");
}

uint64_t khub__client_requests(void)
{
    return khub__engine_requests();
}

/* Asks at `url` (freed; NULL: there was no memory for it) and hands over what came. */
static int ask(khub__reply *out, khub__client *client, char *url, const khub__asked *asked, khub_error *err)
{
    memset(out, 0, sizeof(*out));
    if (!url) return khub__fail_memory(err, "asking the Hub");
    int rc = khub__client_ask(out, client, url, asked, err);
    khub__free(url);
    return rc;
}

static const char *body_of(const khub__reply *reply)
{
    return reply->body.data ? reply->body.data : "";
}

int khub__client_refs(khub__refs *out, khub__client *client, const khub__repo *repo, khub_error *err)
{
    khub__asked asked = {.settings = &client->settings, .repo = repo};
    const char *endpoint = client->settings.endpoint;
    khub__reply reply;
    char shown[208];
    memset(out, 0, sizeof(*out));
    int rc = ask(&reply, client, khub__address_refs(endpoint, repo), &asked, err);
    if (rc == KHUB_OK)
        rc = khub__listing_refs(out, body_of(&reply), reply.body.length,
                                khub__url_shown(shown, reply.transfer.url), err);
    khub__repo there;
    if (rc == KHUB_OK && khub__address_repo(&there, endpoint, repo->kind, "refs", reply.transfer.url) &&
        strcmp(there.id, repo->id) != 0)
        out->moved_to = there;
    khub__reply_free(&reply);
    return rc;
}

int khub__client_commit(char commit[KHUB__COMMIT_MAX + 1], khub__client *client, const khub__repo *repo,
                        const char *revision, khub_error *err)
{
    khub__asked asked = {.settings = &client->settings, .repo = repo, .revision = revision};
    khub__reply reply;
    char shown[208];
    int rc =
        ask(&reply, client, khub__address_revision(client->settings.endpoint, repo, revision), &asked, err);
    if (rc == KHUB_OK)
        rc = khub__listing_commit(commit, body_of(&reply), reply.body.length,
                                  khub__url_shown(shown, reply.transfer.url), err);
    khub__reply_free(&reply);
    return rc;
}

int khub__client_publisher(int *trusted, khub__client *client, const char *org, khub_error *err)
{
    khub__asked asked = {.settings = &client->settings, .org = org};
    khub__reply reply;
    khub_error why = {0};
    char shown[208];
    *trusted = 0;
    int rc = ask(&reply, client, khub__address_overview(client->settings.endpoint, org), &asked, &why);
    if (rc == KHUB_OK)
        rc = khub__listing_publisher(trusted, body_of(&reply), reply.body.length,
                                     khub__url_shown(shown, reply.transfer.url), &why);
    else if (reply.transfer.answer.status == 404 && rc == KHUB_E_NOTFOUND)
        rc = KHUB_OK; /* the owner is a person */
    khub__reply_free(&reply);
    return rc == KHUB_OK ? rc : khub__fail(err, rc, "%s", why.message);
}
