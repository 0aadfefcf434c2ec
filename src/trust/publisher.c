#include "trust/publisher.h"

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/memory.h"
#include "cache/disk.h"

#include <time.h>

#define RECORD "publisher.json"
enum { RECORD_MAX = 4096, DAY_S = 24 * 60 * 60 };

/* An answer of the Hub: publisher.json of a repository in the cache, {"publisher": ORG, "trusted": BOOL,
 * "asked": SECONDS}. */
typedef struct answer {
    int found, trusted;
    int64_t asked_s; /* since 1970 */
} answer;

/* A record of another owner, or one that can't be read, is none. */
static int read_record(answer *out, const khub__store *store, const char *owner, khub_error *err)
{
    memset(out, 0, sizeof(*out));
    char *text = NULL;
    size_t bytes = 0;
    json_t *json = NULL;
    const char *publisher = NULL;
    khub_error why = {0};
    khub__json_source source = {RECORD, &why};
    int rc = khub__disk_get(&text, &bytes, NULL, store, RECORD, RECORD_MAX, &why);
    if (rc == KHUB_OK) rc = khub__json_parse(&json, text, bytes, RECORD, &why);
    if (rc == KHUB_OK) rc = khub__json_string(&publisher, json, "publisher", &source);
    if (rc == KHUB_OK) rc = khub__json_bool(&out->trusted, json, "trusted", &source);
    if (rc == KHUB_OK) rc = khub__json_integer(&out->asked_s, json, "asked", &source);
    out->found = rc == KHUB_OK && publisher && !strcmp(publisher, owner);
    json_decref(json);
    khub__free(text);
    return rc == KHUB_E_NOMEM ? khub__fail_memory(err, "reading publisher.json") : KHUB_OK;
}

/* What can't be kept is asked for again the next time. */
static void keep_record(const khub__store *store, const char *owner, int trusted)
{
    char text[512];
    int n = snprintf(text, sizeof(text), "{\"publisher\": \"%s\", \"trusted\": %s, \"asked\": %lld}\n", owner,
                     trusted ? "true" : "false", (long long)time(NULL));
    khub_error why = {0};
    if (khub__file_kind(store->folder) != KHUB__FILE_DIRECTORY) return; /* nothing of it is in the cache */
    if (khub__disk_put(store, RECORD, text, (size_t)n, &why) != KHUB_OK)
        khub__log(KHUB_LOG_DEBUG, "trust", store->repo.id, "the Hub's answer isn't kept: %s", why.message);
}

static int is_vouched_for(const char *const *trust, const khub__repo *repo, const char *owner)
{
    for (; trust && *trust; trust++)
        if (!strcmp(*trust, repo->id) || (*owner && !strcmp(*trust, owner))) return 1;
    return 0;
}

static int refuse(const khub__repo *repo, const char *owner, khub_error *err)
{
    return khub__fail(
        err, KHUB_E_UNTRUSTED,
        "%s: the Hub doesn't call %s a trusted publisher of kernels; nothing was loaded. To load its kernels "
        "all the same, vouch for it: khub_hub_options.trust %s",
        repo->id, owner, repo->id);
}

/* Not to know is not a verdict, and says so. */
static int ask(answer *out, const khub__store *store, const khub__repo *repo, const char *owner,
               khub__client *client, khub_error *err)
{
    khub_error why = {0};
    int rc = khub__client_publisher(&out->trusted, client, owner, &why);
    if (rc == KHUB_E_NOMEM || rc == KHUB_E_CANCELED) return khub__fail(err, rc, "%s", why.message);
    if (rc != KHUB_OK)
        return khub__fail(err, KHUB_E_UNTRUSTED,
                          "%s: whether %s is a trusted publisher couldn't be found out (%s); to load it "
                          "all the same: khub_hub_options.trust %s",
                          repo->id, owner, why.message, repo->id);
    keep_record(store, owner, out->trusted);
    return KHUB_OK;
}

static void say_offline(const khub__repo *repo, const char *owner, const answer *record)
{
    char day[32] = "";
    time_t asked = (time_t)record->asked_s;
    struct tm parts;
    if (record->found && gmtime_r(&asked, &parts)) strftime(day, sizeof(day), "%Y-%m-%d", &parts);
    if (record->found)
        khub__log(KHUB_LOG_DEBUG, "trust", repo->id, "offline; on %s the Hub called %s a trusted publisher",
                  day, owner);
    else
        khub__log(KHUB_LOG_WARNING, "trust", repo->id,
                  "offline, and nothing here says whether %s is a trusted publisher; it is taken from the "
                  "cache as it is",
                  owner);
}

int khub__publisher_check(const khub__store *store, const khub__repo *repo, khub__client *client,
                          const char *const *trust, int again, khub_error *err)
{
    char owner[KHUB__REPO_ID_MAX + 1];
    answer record;
    khub__repo_owner(owner, repo);
    if (is_vouched_for(trust, repo, owner)) return KHUB_OK;
    int rc = read_record(&record, store, owner, err);
    if (rc != KHUB_OK) return rc;
    int64_t now_s = (int64_t)time(NULL);
    int old = record.asked_s > now_s || record.asked_s < now_s - DAY_S;
    int stale = !record.found || !record.trusted || (again && old);
    if (khub__client_offline(client)) {
        say_offline(repo, owner, &record);
        return record.found && !record.trusted ? refuse(repo, owner, err) : KHUB_OK;
    }
    if (stale) rc = ask(&record, store, repo, owner, client, err);
    if (rc != KHUB_OK) return rc;
    return record.trusted ? KHUB_OK : refuse(repo, owner, err);
}
