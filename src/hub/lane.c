#include "hub/fetch.h"

#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "hub/address.h"
#include "hub/clock.h"
#include "hub/url.h"

static int fail_size(const khub__job *job, uint64_t said, khub_error *err)
{
    return khub__fail(err, KHUB_E_FORMAT, "%s: the listing says %llu bytes, the answer %llu", job->file->path,
                      (unsigned long long)job->size, (unsigned long long)said);
}

/* The request is given up, and comes again later with what was learned. */
static int put_off(khub__lane *lane)
{
    lane->put_off = 1;
    return KHUB_E_CANCELED;
}

/* The tree didn't say what the file is called or how long it is: the answer does. */
static int learn(khub__lane *lane, const khub__transfer *transfer, khub_error *err)
{
    khub__job *job = lane->job;
    const char *endpoint = lane->fetcher->client->settings.endpoint, *path = job->file->path;
    if (!khub__job_etag(job) && !transfer->etag[0])
        return khub__fail(err, KHUB_E_FORMAT, "%s: the answer has no ETag header; is HF_ENDPOINT (%s) a Hub?",
                          path, endpoint);
    if (job->size == UINT64_MAX && transfer->size == UINT64_MAX)
        return khub__fail(err, KHUB_E_FORMAT, "%s: the answer doesn't say how long the file is", path);
    if (!khub__job_etag(job) && !(job->learned_etag = khub__strdup(transfer->etag)))
        return khub__fail_memory(err, "fetching a file");
    if (job->size == UINT64_MAX) {
        job->size = transfer->size;
        lane->fetcher->client->at.bytes_total += job->size;
    }
    lane->end = job->size;
    int rc = khub__job_begin(lane->fetcher, job, err);
    return rc == KHUB__SINK_BUSY || (rc == KHUB_OK && job->done > 0) ? put_off(lane) : rc;
}

int khub__lane_check_head(const khub__lane *lane, const khub__transfer *transfer, khub_error *err)
{
    const khub__answer *answer = &transfer->answer;
    const khub__job *job = lane->job;
    if (answer->status == 416) return KHUB_OK;
    if (answer->status == 200)
        return answer->length == UINT64_MAX || answer->length == job->size
                   ? KHUB_OK
                   : fail_size(job, answer->length, err);
    if (answer->status != 206)
        return khub__fail(err, KHUB_E_FORMAT, "%s: answers %d to a download", job->file->path,
                          answer->status);
    if (answer->range_from != lane->request.from)
        return khub__fail(err, KHUB_E_FORMAT, "%s: byte %llu was asked for, the answer starts elsewhere",
                          job->file->path, (unsigned long long)lane->request.from);
    if (answer->range_total != UINT64_MAX && answer->range_total != job->size)
        return fail_size(job, answer->range_total, err);
    return KHUB_OK;
}

static int take_head(void *self, khub__transfer *transfer, khub_error *err)
{
    khub__lane *lane = self;
    int status = transfer->answer.status;
    int rc = lane->job->begun || status / 100 != 2 ? KHUB_OK : learn(lane, transfer, err);
    if (rc == KHUB_OK) rc = khub__lane_check_head(lane, transfer, err);
    if (rc == KHUB_OK && status == 200 && lane->at > 0) {
        lane->at = 0; /* the whole comes though a part was asked for */
        rc = khub__job_restart(lane->fetcher, lane->job, err);
    }
    return rc;
}

static int take_body(void *self, khub__transfer *transfer, const void *data, size_t bytes, khub_error *err)
{
    khub__lane *lane = self;
    khub__job *job = lane->job;
    (void)transfer;
    if (bytes > lane->end - lane->at)
        return khub__fail(err, KHUB_E_FORMAT, "%s: more than the %llu bytes that it should have arrive",
                          job->file->path, (unsigned long long)job->size);
    int rc = job->file->sink->write(job->file->self, data, bytes, err);
    if (rc != KHUB_OK) return rc;
    lane->at += bytes;
    job->done += bytes;
    lane->fetcher->client->at.bytes_done += bytes;
    return KHUB_OK;
}

int khub__lane_start(khub__lane *lane, khub_error *err)
{
    khub__job *job = lane->job;
    const khub__fetcher *fetcher = lane->fetcher;
    lane->url = khub__address_file(fetcher->client->settings.endpoint, fetcher->repo, fetcher->commit,
                                   job->file->path);
    if (!lane->url) return khub__fail_memory(err, "fetching a file");
    lane->put_off = 0;
    lane->at = job->done;
    lane->end = job->size;
    lane->request = (khub__request){.url = lane->url,
                                    .from = lane->at > 0 ? lane->at : UINT64_MAX,
                                    .to = UINT64_MAX,
                                    .head = take_head,
                                    .body = take_body,
                                    .self = lane};
    return khub__engine_start(fetcher->client->engine, &lane->transfer, &lane->request, err);
}

void khub__lane_clear(khub__lane *lane)
{
    if (lane->transfer.flight) khub__engine_stop(lane->fetcher->client->engine, &lane->transfer);
    khub__transfer_free(&lane->transfer);
    khub__free(lane->url);
    lane->url = NULL;
    lane->job = NULL;
    lane->sleeps_until_ms = 0;
}

static void wait_for(khub__lane *lane, int64_t ms)
{
    khub__fetcher_wait(lane->fetcher, lane->job, khub__now_ms() + (uint64_t)ms);
}

/* The tries start anew when the last one brought a good deal. */
static void forgive(khub__job *job)
{
    enum { GOOD_DEAL = 1 << 20 };
    if (job->done < job->retried_at + GOOD_DEAL) return;
    job->retried_at = job->done;
    job->retries = 0;
}

int64_t khub__lane_retry(khub__lane *lane, khub_error *err)
{
    khub__fetcher *fetcher = lane->fetcher;
    khub__job *job = lane->job;
    khub__transfer *transfer = &lane->transfer;
    khub__asked asked = {.settings = &fetcher->client->settings,
                         .repo = fetcher->repo,
                         .revision = fetcher->commit,
                         .path = job->file->path};
    if (transfer->status == KHUB_OK && !transfer->broken && transfer->answer.status / 100 == 2) {
        transfer->broken = 1; /* a body without a length, cut short */
        khub__fail(&transfer->why, KHUB_E_NETWORK, "the answer ended %llu bytes too early",
                   (unsigned long long)(lane->end - lane->at));
    }
    forgive(job);
    unsigned retries = job->retries;
    int64_t wait = khub__client_retry(&retries, fetcher->client, transfer);
    job->retries = (unsigned char)retries;
    if (wait < 0) khub__transfer_fail(transfer, &asked, err);
    return wait;
}

/* What is next for the job of a request that has ended; *wait becomes not negative when it must be asked for
 * again. */
static int judge(khub__lane *lane, int64_t *wait, khub_error *err)
{
    const khub__transfer *transfer = &lane->transfer;
    int status = transfer->status == KHUB_OK && !transfer->broken ? transfer->answer.status : 0;
    if (lane->put_off) {
        *wait = lane->job->begun ? 0 : KHUB__BUSY_MS;
        return KHUB_OK;
    }
    if (status / 100 == 2 && lane->at == lane->end) return khub__job_finish(lane->fetcher, lane->job, err);
    if (status == 416 && lane->request.from != UINT64_MAX) {
        *wait = 0;
        int rc = khub__job_count_refusal(lane->job, err);
        return rc != KHUB_OK ? rc : khub__job_restart(lane->fetcher, lane->job, err);
    }
    *wait = khub__lane_retry(lane, err);
    return *wait >= 0 ? KHUB_OK : lane->transfer.status != KHUB_OK ? lane->transfer.status : KHUB_E_NETWORK;
}

int khub__lane_end(khub__lane *lane, khub_error *err)
{
    int64_t wait = -1;
    khub_error why = {0};
    int rc = judge(lane, &wait, &why);
    if (rc == KHUB_OK && wait >= 0) wait_for(lane, wait);
    khub__lane_clear(lane);
    return rc == KHUB_OK ? rc : khub__fail(err, why.code ? why.code : rc, "%s", why.message);
}
