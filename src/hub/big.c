#include "hub/fetch.h"

#include "base/error.h"
#include "base/memory.h"
#include "hub/address.h"
#include "hub/clock.h"
#include "hub/window.h"

enum { BIG_LANES = 4 };

static int take_head(void *self, khub__transfer *transfer, khub_error *err)
{
    khub__lane *lane = self;
    khub__big *big = lane->fetcher->big;
    int rc = khub__lane_check_head(lane, transfer, err);
    if (rc != KHUB_OK || transfer->answer.status == 416) return rc;
    if (transfer->answer.status == 206) {
        if (big->mode == KHUB__BIG_PROBING) big->mode = KHUB__BIG_RANGES;
        return KHUB_OK;
    }
    if (lane->at > 0 || big->mode == KHUB__BIG_RANGES) { /* not from inside a callback */
        lane->put_off = big->start_over = 1;
        return KHUB_E_CANCELED;
    }
    big->mode = KHUB__BIG_STREAM;
    big->next = lane->end = big->job->size;
    return KHUB_OK;
}

static int take_body(void *self, khub__transfer *transfer, const void *data, size_t bytes, khub_error *err)
{
    khub__lane *lane = self;
    khub__big *big = lane->fetcher->big;
    (void)transfer;
    if (bytes > lane->end - lane->at)
        return khub__fail(err, KHUB_E_FORMAT, "%s: more bytes arrive than were asked for",
                          big->job->file->path);
    if (khub__window_room(big->window, lane->at) < bytes) return KHUB__PAUSE;
    khub__window_put(big->window, lane->at, data, bytes);
    lane->at += bytes;
    big->job->done += bytes;
    big->fetcher->client->at.bytes_done += bytes;
    return KHUB_OK;
}

/* Asks for lane->at up to lane->end. */
static int ask(khub__big *big, khub__lane *lane, khub_error *err)
{
    const khub__fetcher *f = big->fetcher;
    khub__free(lane->url);
    lane->url = big->direct ? khub__strdup(big->direct)
                            : khub__address_file(f->client->settings.endpoint, f->repo, f->commit,
                                                 big->job->file->path);
    if (!lane->url) return khub__fail_memory(err, "fetching a file");
    int is_whole = lane->at == 0 && big->mode == KHUB__BIG_STREAM;
    lane->is_direct = big->direct != NULL;
    lane->put_off = 0;
    lane->sleeps_until_ms = 0;
    lane->request = (khub__request){.url = lane->url,
                                    .from = is_whole ? UINT64_MAX : lane->at,
                                    .to = lane->end - 1,
                                    .without_token = big->direct && big->direct_left,
                                    .head = take_head,
                                    .body = take_body,
                                    .self = lane};
    return khub__engine_start(f->client->engine, &lane->transfer, &lane->request, err);
}

/* Gives the next chunk, or in a stream all, to a free lane. *given: there was something to give. */
static int give_chunk(khub__big *big, int *given, khub_error *err)
{
    uint64_t size = big->job->size, left = size - big->next;
    size_t room = khub__window_room(big->window, big->next);
    size_t want = left < KHUB__CHUNK_BYTES ? (size_t)left : KHUB__CHUNK_BYTES;
    khub__lane *lane = left && room >= want ? khub__fetcher_lane(big->fetcher) : NULL;
    *given = lane != NULL;
    if (!lane) return KHUB_OK;
    lane->job = big->job;
    lane->at = big->next;
    lane->end = big->next = big->mode == KHUB__BIG_STREAM ? size : big->next + want;
    return ask(big, lane, err);
}

/* Lanes that have it; those that wait are sent again when their time has come, those that are paused when
 * there is room. */
static int look_after_lanes(khub__big *big, size_t *count, khub_error *err)
{
    khub__fetcher *f = big->fetcher;
    uint64_t now = khub__now_ms();
    int rc = KHUB_OK;
    *count = 0;
    for (size_t i = 0; i < KHUB__LANES_SHARED && rc == KHUB_OK; i++) {
        khub__lane *lane = &f->lanes[i];
        if (lane->job != big->job) continue;
        ++*count;
        if (lane->sleeps_until_ms && now >= lane->sleeps_until_ms)
            rc = ask(big, lane, err);
        else if (khub__window_room(big->window, lane->at) >= KHUB__CHUNK_BYTES / 4 ||
                 lane->end == big->job->size)
            khub__engine_resume(f->client->engine, &lane->transfer);
    }
    return rc;
}

static void drop_lanes(khub__big *big)
{
    for (size_t i = 0; i < KHUB__LANES_SHARED; i++)
        if (big->fetcher->lanes[i].job == big->job) khub__lane_clear(&big->fetcher->lanes[i]);
}

/* The server can't give parts: all of it, in one stream. */
static int start_over(khub__big *big, khub_error *err)
{
    khub__job *job = big->job;
    drop_lanes(big);
    big->start_over = 0;
    big->next = 0;
    big->mode = KHUB__BIG_STREAM;
    khub__job_count_restart(big->fetcher, job);
    return khub__window_restart(big->window, err);
}

int khub__big_step(khub__fetcher *f, khub_error *err)
{
    khub__big *big = f->big;
    int status, given = 1;
    size_t lanes;
    khub__window_state state = khub__window_look(big->window, &status, err);
    if (state == KHUB__WINDOW_FAILED) return status;
    if (state == KHUB__WINDOW_FINISHED || state == KHUB__WINDOW_AGAIN) {
        khub__job *job = big->job;
        khub__big_close(f);
        (state == KHUB__WINDOW_AGAIN ? khub__job_again : khub__job_count_finish)(f, job);
        return KHUB_OK;
    }
    int rc = big->start_over ? start_over(big, err) : KHUB_OK;
    if (rc == KHUB_OK) rc = look_after_lanes(big, &lanes, err);
    size_t most = big->mode == KHUB__BIG_RANGES ? BIG_LANES : 1;
    for (; rc == KHUB_OK && given && lanes < most; lanes++)
        rc = give_chunk(big, &given, err);
    return rc;
}

/* Where the redirects led is asked directly from now on. */
static int note_direct(khub__big *big, const khub__transfer *transfer, khub_error *err)
{
    if (big->direct || transfer->hops == 0) return KHUB_OK;
    big->direct = khub__strdup(transfer->url);
    big->direct_left = transfer->left;
    return big->direct ? KHUB_OK : khub__fail_memory(err, "fetching a file");
}

/* A download address is valid for a while only: the next one comes from the Hub. */
static int is_expired(const khub__lane *lane)
{
    const khub__transfer *transfer = &lane->transfer;
    return lane->is_direct && transfer->status == KHUB_OK && !transfer->broken &&
           transfer->answer.status / 100 == 4;
}

int khub__big_lane_end(khub__lane *lane, khub_error *err)
{
    khub__big *big = lane->fetcher->big;
    khub__transfer *transfer = &lane->transfer;
    int status = transfer->status == KHUB_OK && !transfer->broken ? transfer->answer.status : 0;
    if (lane->put_off) {
        khub__lane_clear(lane);
        return KHUB_OK;
    }
    if (status / 100 == 2 && lane->at == lane->end) {
        int rc = note_direct(big, transfer, err);
        khub__lane_clear(lane);
        return rc;
    }
    if (status == 416) {
        big->start_over = 1;
        khub__lane_clear(lane);
        return khub__job_count_refusal(big->job, err);
    }
    if (is_expired(lane)) {
        khub__free(big->direct);
        big->direct = NULL;
        return ask(big, lane, err);
    }
    khub_error why = {0};
    int64_t wait = khub__lane_retry(lane, &why);
    if (wait < 0) return khub__fail(err, why.code, "%s", why.message);
    lane->sleeps_until_ms = khub__now_ms() + (uint64_t)wait + 1;
    return KHUB_OK;
}

static void wake(void *user)
{
    khub__engine_wake(user);
}

int khub__big_start(khub__fetcher *f, khub__job *job, khub_error *err)
{
    khub__big *big = khub__calloc(1, sizeof(*big));
    if (!big) return khub__fail_memory(err, "fetching a file");
    big->job = job;
    big->fetcher = f;
    big->next = job->done;
    int rc = khub__window_open(&big->window, job->file, job->done, job->size, wake, f->client->engine, err);
    if (rc == KHUB_OK)
        f->big = big;
    else
        khub__free(big);
    return rc == KHUB_OK ? khub__big_step(f, err) : rc;
}

void khub__big_close(khub__fetcher *f)
{
    khub__big *big = f->big;
    int ended = 0;
    if (!big) return;
    drop_lanes(big);
    khub__window_close(big->window, &ended);
    if (ended) big->job->begun = 0;
    khub__free(big->direct);
    khub__free(big);
    f->big = NULL;
}
