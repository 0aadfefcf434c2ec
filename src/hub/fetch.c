#include "hub/fetch.h"

#include "base/error.h"
#include "base/memory.h"
#include "hub/clock.h"
#include "hub/token.h"

void khub__fetcher_wait(khub__fetcher *f, khub__job *job, uint64_t until_ms)
{
    job->wait_until_ms = until_ms;
    job->next = f->waiting;
    f->waiting = job;
}

static size_t lane_count(const khub__fetcher *f)
{
    size_t lanes = khub__engine_multiplexes(f->client->engine) ? KHUB__LANES_SHARED : KHUB__LANES;
    return lanes < f->lanes_most ? lanes : f->lanes_most;
}

/* The next job whose time has come; NULL: none now. While as many as there are lanes are begun, those that
 * wait for a new try included, no other begins: a Hub that asks to wait isn't asked for all the rest. */
static khub__job *take_job(khub__fetcher *f, uint64_t now)
{
    int more = f->begun < lane_count(f);
    for (khub__job **at = &f->waiting; *at; at = &(*at)->next) {
        khub__job *job = *at;
        if (job->wait_until_ms > now || !(more || job->begun)) continue;
        *at = job->next;
        return job;
    }
    return more && f->next < f->count ? &f->jobs[f->next++] : NULL;
}

khub__lane *khub__fetcher_lane(khub__fetcher *f)
{
    for (size_t i = 0; i < lane_count(f); i++)
        if (!f->lanes[i].job) return &f->lanes[i];
    return NULL;
}

static int is_big(const khub__job *job)
{
    return job->size != UINT64_MAX && job->size - job->done >= KHUB__BIG_BYTES;
}

/* Tells the sink, and sends the request unless everything is there already. */
static int start_job(khub__fetcher *f, khub__lane *lane, khub__job *job, uint64_t now, khub_error *err)
{
    int rc = KHUB_OK;
    if (f->big && is_big(job)) { /* one at a time: its window is as much memory as may be used */
        khub__fetcher_wait(f, job, now + KHUB__BUSY_MS);
        return KHUB_OK;
    }
    if (!job->begun && khub__job_etag(job) && job->size != UINT64_MAX) rc = khub__job_begin(f, job, err);
    if (rc == KHUB__SINK_BUSY) {
        khub__fetcher_wait(f, job, now + KHUB__BUSY_MS);
        return KHUB_OK;
    }
    if (rc == KHUB_OK && job->begun && job->done == job->size) return khub__job_finish(f, job, err);
    if (rc != KHUB_OK) return rc;
    if (job->begun && is_big(job)) return khub__big_start(f, job, err);
    lane->job = job;
    return khub__lane_start(lane, err);
}

static int start_some(khub__fetcher *f, khub_error *err)
{
    uint64_t now = khub__now_ms();
    int rc = KHUB_OK;
    for (khub__lane *lane; rc == KHUB_OK && (lane = khub__fetcher_lane(f));) {
        khub__job *job = take_job(f, now);
        if (!job) break;
        rc = start_job(f, lane, job, now, err);
        if (rc == KHUB_OK) rc = khub__client_tick(f->client, err);
    }
    return rc;
}

static int end_some(khub__fetcher *f, khub_error *err)
{
    khub__transfer *ended;
    int rc = KHUB_OK;
    while (rc == KHUB_OK && (ended = khub__engine_ended(f->client->engine))) {
        khub__lane *lane = ended->request->self;
        khub__job *job = lane->job;
        rc = f->big && f->big->job == lane->job ? khub__big_lane_end(lane, err) : khub__lane_end(lane, err);
        if (rc != KHUB_OK) f->blamed = job;
        if (rc == KHUB_OK) rc = khub__client_tick(f->client, err);
    }
    return rc;
}

static int run(khub__fetcher *f, khub_error *err)
{
    int rc = KHUB_OK;
    while (rc == KHUB_OK && f->finished < f->count) {
        khub__job *big = f->big ? f->big->job : NULL;
        rc = big ? khub__big_step(f, err) : KHUB_OK;
        if (rc != KHUB_OK) f->blamed = big;
        if (rc == KHUB_OK) rc = start_some(f, err);
        if (rc == KHUB_OK && f->finished < f->count)
            rc = khub__engine_step(f->client->engine, KHUB__TICK_MS, err);
        if (rc == KHUB_OK) rc = end_some(f, err);
        if (rc == KHUB_OK) rc = khub__client_tick(f->client, err);
    }
    return rc;
}

/* What arrived is good when it was the network, the user or another file that ended it. On a full disk it is
 * in the way. */
static int is_worth_keeping(const khub__fetcher *f, const khub__job *job, int rc)
{
    if (rc == KHUB_E_NOSPACE) return 0;
    return job != f->blamed || rc == KHUB_E_NETWORK || rc == KHUB_E_CANCELED || rc == KHUB_E_NOMEM;
}

static void give_up(khub__fetcher *f, int rc)
{
    for (size_t i = 0; i < KHUB__LANES_SHARED; i++)
        khub__lane_clear(&f->lanes[i]);
    khub__big_close(f);
    for (size_t i = 0; i < f->next; i++)
        if (f->jobs[i].begun)
            f->jobs[i].file->sink->abandon(f->jobs[i].file->self, is_worth_keeping(f, &f->jobs[i], rc));
}

/* A file takes its own, its folder's, its lock's and a connection; some others are open besides. */
static size_t lanes_for(unsigned descriptors)
{
    enum { OTHERS = 16, EACH = 4 };
    return descriptors < OTHERS + 2 * EACH ? 1 : (descriptors - OTHERS) / EACH;
}

static void set_up(khub__fetcher *f, const khub__fetch *files, const char *what)
{
    f->lanes_most = lanes_for(khub__descriptors());
    f->client->at = (khub_progress){.what = what, .files_total = (uint32_t)f->count};
    for (size_t i = 0; i < f->count; i++) {
        f->jobs[i].file = &files[i];
        f->jobs[i].size = files[i].size;
        if (files[i].size != UINT64_MAX) f->client->at.bytes_total += files[i].size;
    }
    for (size_t i = 0; i < KHUB__LANES_SHARED; i++)
        f->lanes[i].fetcher = f;
}

int khub__client_fetch(khub__client *client, const khub__repo *repo, const char *commit,
                       const khub__fetch *files, size_t count, const char *what, khub_error *err)
{
    if (count == 0) return KHUB_OK;
    int rc = khub__client_connect(client, what, err);
    if (rc != KHUB_OK) return rc;
    khub__fetcher *f = khub__calloc(1, sizeof(*f));
    if (f) f->jobs = khub__calloc(count, sizeof(*f->jobs));
    if (!f || !f->jobs) {
        khub__free(f);
        return khub__fail_memory(err, "fetching files");
    }
    f->client = client;
    f->repo = repo;
    f->commit = commit;
    f->count = count;
    set_up(f, files, what);
    rc = run(f, err);
    give_up(f, rc);
    if (rc == KHUB_OK) khub__client_tell(client, NULL); /* all is there: too late to cancel */
    for (size_t i = 0; i < count; i++)
        khub__free(f->jobs[i].learned_etag);
    khub__free(f->jobs);
    khub__free(f);
    if (err) khub__token_hide(err->message, client->settings.token);
    client->at.what = NULL; /* the caller's, borrowed for the call */
    return rc;
}
