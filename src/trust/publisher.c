#include "trust/publisher.h"

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/ours.h"
#include "base/text.h"
#include "cache/disk.h"
#include "trust/trust.h"

#include <time.h>

#define RECORD "publisher.json"
enum { RECORD_MAX = 4096, DAY_S = 24 * 60 * 60 };

/* An answer of the Hub: publisher.json of a repository in the cache, {"publisher": ORG, "trusted": BOOL,
 * "asked": SECONDS}. */
typedef struct answer {
    int found, trusted;
    int64_t asked_s; /* since 1970 */
} answer;

/* What others may have written says nothing. */
static int is_ours(const khub__store *store, khub_error *err)
{
    char path[KHUB__DISK_PATH_MAX];
    if (khub__disk_path(path, store, RECORD) != 0) return KHUB_E_IO;
    int rc = khub__path_is_ours(NULL, path, err);
    if (rc == KHUB_E_UNTRUSTED) khub__log(KHUB_LOG_DEBUG, "trust", store->repo.id, "%s", err->message);
    return rc;
}

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
    int rc = is_ours(store, &why);
    if (rc == KHUB_OK) rc = khub__disk_get(&text, &bytes, NULL, store, RECORD, RECORD_MAX, &why);
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

/* One publisher that is judged. */
typedef struct question {
    khub_trust *trust; /* may be NULL */
    const khub__store *store;
    const khub__repo *repo;
    const khub_policy *policy;
    char owner[KHUB__REPO_ID_MAX + 1];
} question;

enum { WORDS_MAX = 620 }; /* of the decision itself; an owner's name is cut nowhere */

static void add(const question *q, khub_trust_decision decision, const char *words)
{
    khub__trust_add(q->trust, KHUB__ABOUT_PUBLISHER, decision, "%s: %s", q->repo->id, words);
}

/* What is refused, and what to do about it. */
static int refuse(const question *q, const char *words, khub_error *err)
{
    khub_error why = {0};
    int rc = khub__fail(&why, KHUB_E_UNTRUSTED,
                        "%s: %s; nothing was loaded. To load its kernels all the same, vouch for it: "
                        "khub_hub_options.trust %s, or for good: khub trust add %s",
                        q->repo->id, words, q->repo->id, q->repo->id);
    khub__trust_add(q->trust, KHUB__ABOUT_PUBLISHER, KHUB_TRUST_REFUSED, "%s", why.message);
    return khub__fail(err, rc, "%s", why.message);
}

static int refuse_unknown(const question *q, khub_error *err)
{
    char words[WORDS_MAX];
    snprintf(words, sizeof(words), "the Hub doesn't call %s a trusted publisher of kernels", q->owner);
    return refuse(q, words, err);
}

/* 0: nobody vouches for it. */
static int is_vouched_for(const question *q, const char *const *named)
{
    char words[WORDS_MAX];
    const char *path = khub_policy_about(q->policy).path;
    for (; named && *named; named++)
        if (!strcmp(*named, q->repo->id) || (*q->owner && !strcmp(*named, q->owner)))
            return add(q, KHUB_TRUST_ACCEPTED, "the caller vouches for it"), 1;
    if (!khub__policy_vouches(q->policy, q->repo->id, q->owner)) return 0;
    snprintf(words, sizeof(words), "%.250s vouches for it", path ? path : "the policy");
    return add(q, KHUB_TRUST_ACCEPTED, words), 1;
}

/* Not to know is not a verdict, and says so. */
static int ask(answer *out, const question *q, khub__client *client, khub_error *err)
{
    khub_error why = {0};
    char words[WORDS_MAX];
    int rc = khub__client_publisher(&out->trusted, client, q->owner, &why);
    if (rc == KHUB_E_NOMEM || rc == KHUB_E_CANCELED) return khub__fail(err, rc, "%s", why.message);
    if (rc == KHUB_OK) {
        out->asked_s = (int64_t)time(NULL);
        keep_record(q->store, q->owner, out->trusted);
        return rc;
    }
    snprintf(words, sizeof(words), "whether %s is a trusted publisher couldn't be found out (%.300s)",
             q->owner, why.message);
    return refuse(q, words, err);
}

static void day_of(char out[16], int64_t seconds)
{
    time_t at = (time_t)seconds;
    struct tm parts;
    if (!gmtime_r(&at, &parts) || !strftime(out, 16, "%Y-%m-%d", &parts)) khub__copy(out, 16, "a day");
}

/* The Hub said yes. */
static int accept_answer(const question *q, const answer *record, int offline)
{
    char words[WORDS_MAX], day[16];
    day_of(day, record->asked_s);
    snprintf(words, sizeof(words), "%son %s the Hub called %s a trusted publisher",
             offline ? "offline; " : "", day, q->owner);
    if (offline) khub__log(KHUB_LOG_DEBUG, "trust", q->repo->id, "%s", words);
    add(q, KHUB_TRUST_ACCEPTED, words);
    return KHUB_OK;
}

static int judge_offline(const question *q, const answer *record, khub_error *err)
{
    char words[WORDS_MAX];
    if (record->found) return record->trusted ? accept_answer(q, record, 1) : refuse_unknown(q, err);
    if (q->policy->offline_refuse) {
        snprintf(words, sizeof(words),
                 "offline, and nothing here says whether %s is a trusted publisher, which the policy refuses",
                 q->owner);
        return refuse(q, words, err);
    }
    snprintf(
        words, sizeof(words),
        "offline, and nothing here says whether %s is a trusted publisher; it is taken from the cache as "
        "it is",
        q->owner);
    khub__log(KHUB_LOG_WARNING, "trust", q->repo->id, "%s", words);
    add(q, KHUB_TRUST_NOTED, words);
    return KHUB_OK;
}

int khub__publisher_check(khub_trust *trust, const khub__store *store, const khub__repo *repo,
                          khub__client *client, khub__rules *rules, int again, khub_error *err)
{
    question q = {.trust = trust, .store = store, .repo = repo};
    answer record;
    khub__repo_owner(q.owner, repo);
    int rc = khub__rules_policy(&q.policy, rules, err);
    if (rc != KHUB_OK || is_vouched_for(&q, rules->named)) return rc;
    rc = read_record(&record, store, q.owner, err);
    if (rc != KHUB_OK) return rc;
    if (khub__client_offline(client)) return judge_offline(&q, &record, err);
    int64_t now_s = (int64_t)time(NULL);
    int old = record.asked_s > now_s || record.asked_s < now_s - DAY_S;
    if (!record.found || !record.trusted || (again && old)) rc = ask(&record, &q, client, err);
    if (rc != KHUB_OK) return rc;
    return record.trusted ? accept_answer(&q, &record, 0) : refuse_unknown(&q, err);
}
