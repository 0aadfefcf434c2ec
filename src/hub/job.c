#include "hub/fetch.h"

#include "base/error.h"
#include "base/hash.h"

const char *khub__job_etag(const khub__job *job)
{
    return job->learned_etag ? job->learned_etag : job->file->etag;
}

/* Bytes that were counted for the progress, and how many they are now. */
static void count(khub__fetcher *fetcher, khub__job *job, uint64_t done)
{
    fetcher->client->at.bytes_done += done - job->done; /* less, too: unsigned arithmetic comes round */
    job->done = done;
}

int khub__job_begin(khub__fetcher *fetcher, khub__job *job, khub_error *err)
{
    uint64_t have = 0;
    const khub__fetch *file = job->file;
    khub__hash_kind kind;
    if (khub__hash_kind_of(&kind, khub__job_etag(job)) != 0)
        return khub__fail(err, KHUB_E_FORMAT, "%s: its ETag isn't a hash of 40 or 64 hex digits", file->path);
    int rc = file->sink->begin(file->self, khub__job_etag(job), job->size, &have, err);
    if (rc != KHUB_OK) return rc;
    job->begun = 1;
    fetcher->begun++;
    if (have > job->size) return khub__job_restart(fetcher, job, err);
    count(fetcher, job, have);
    job->retried_at = have;
    return KHUB_OK;
}

void khub__job_count_restart(khub__fetcher *fetcher, khub__job *job)
{
    if (job->retried_at < job->done) job->retried_at = job->done; /* only more than that is progress */
    count(fetcher, job, 0);
}

int khub__job_restart(khub__fetcher *fetcher, khub__job *job, khub_error *err)
{
    khub__job_count_restart(fetcher, job);
    return job->file->sink->restart(job->file->self, err);
}

int khub__job_count_refusal(khub__job *job, khub_error *err)
{
    if (job->refusals++ == 0) return KHUB_OK;
    return khub__fail(err, KHUB_E_FORMAT, "%s: the server refuses parts of it that it should have (416)",
                      job->file->path);
}

void khub__job_again(khub__fetcher *fetcher, khub__job *job)
{
    job->begun = 1;
    khub__job_count_restart(fetcher, job);
    khub__fetcher_wait(fetcher, job, 0);
}

void khub__job_count_finish(khub__fetcher *fetcher, khub__job *job)
{
    job->begun = 0;
    fetcher->begun--;
    fetcher->finished++;
    fetcher->client->at.files_done++;
}

int khub__job_finish(khub__fetcher *fetcher, khub__job *job, khub_error *err)
{
    job->begun = 0;
    int rc = job->file->sink->finish(job->file->self, err);
    if (rc == KHUB_OK) khub__job_count_finish(fetcher, job);
    if (rc == KHUB__SINK_AGAIN) khub__job_again(fetcher, job);
    return rc == KHUB__SINK_AGAIN ? KHUB_OK : rc;
}
