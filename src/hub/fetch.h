/* Many files at once: jobs (one per file) are carried by lanes (one per request under way). */
#ifndef HUB_FETCH_H
#define HUB_FETCH_H

#include "hub/ask.h"

enum {
    KHUB__LANES = 8,            /* requests at a time; as many connections where one carries one request */
    KHUB__LANES_SHARED = 32,    /* where a connection carries many */
    KHUB__BIG_BYTES = 64 << 20, /* from here on a file comes in ranges */
    KHUB__BUSY_MS = 50          /* how often a file that someone else is bringing is asked for again */
};

typedef struct khub__job khub__job;
typedef struct khub__lane khub__lane;
typedef struct khub__fetcher khub__fetcher;
typedef struct khub__big khub__big;

/* One file. There may be a million: what only a request needs is in the lane. */
struct khub__job {
    const khub__fetch *file;
    char *learned_etag; /* from an answer, when the tree didn't say; owned */
    uint64_t size;      /* UINT64_MAX: unknown */
    uint64_t done;      /* bytes that the sink has, in order */
    uint64_t wait_until_ms;
    uint64_t retried_at; /* `done` at the last try that brought something */
    khub__job *next;     /* in the list of those that wait */
    unsigned char begun, retries, refusals;
};

/* A request for bytes `at`..`end` of a job's file. */
struct khub__lane {
    khub__transfer transfer;
    khub__request request;
    khub__fetcher *fetcher;
    khub__job *job; /* NULL: the lane is free */
    char *url;
    uint64_t at, end;
    uint64_t sleeps_until_ms; /* not 0: waits before the next try */
    int is_direct;            /* asks where an earlier redirect led */
    int put_off; /* the sink is busy, or has some already: the request ends without being a failure */
};

struct khub__fetcher {
    khub__client *client;
    const khub__repo *repo;
    const char *commit;
    khub__job *jobs;
    size_t count, next, finished; /* `next` is the first that was never tried */
    size_t begun;                 /* of which the sink was told: each holds open files, so there are few */
    size_t lanes_most;            /* as the process's open files allow */
    khub__job *waiting;
    khub__job *blamed; /* the one whose failure ended all; NULL: none's, or none did */
    khub__big *big;    /* the large file that is coming; NULL: none */
    khub__lane lanes[KHUB__LANES_SHARED];
};

/* The large file at hand. */
struct khub__big {
    khub__job *job;
    struct khub__window *window;
    khub__fetcher *fetcher;
    char *direct;    /* where the redirects of a range led; NULL: none, or not known yet */
    int direct_left; /* the token may not go there */
    uint64_t next;   /* the first byte that no lane has */
    enum { KHUB__BIG_PROBING, KHUB__BIG_RANGES, KHUB__BIG_STREAM } mode;
    int start_over; /* the whole came where a part was asked for */
};

/* A lane without a job; NULL: none. */
khub__lane *khub__fetcher_lane(khub__fetcher *fetcher);

/* Puts a job off until then (khub__now_ms; 0: its turn is now). */
void khub__fetcher_wait(khub__fetcher *fetcher, khub__job *job, uint64_t until_ms);

/* The name of the job's content; NULL: not known yet. */
const char *khub__job_etag(const khub__job *job);

/* Tells the sink that the file comes. Fills in what is there. KHUB__SINK_BUSY. */
int khub__job_begin(khub__fetcher *fetcher, khub__job *job, khub_error *err);
int khub__job_finish(khub__fetcher *fetcher, khub__job *job, khub_error *err);

/* The sink's finish said KHUB__SINK_AGAIN: all of it is asked for anew. */
void khub__job_again(khub__fetcher *fetcher, khub__job *job);
int khub__job_restart(khub__fetcher *fetcher, khub__job *job, khub_error *err);

/* Their bookkeeping alone, for a file whose sink is called elsewhere. */
void khub__job_count_restart(khub__fetcher *fetcher, khub__job *job);
/* A 416: starting over is worth one try. */
int khub__job_count_refusal(khub__job *job, khub_error *err);
void khub__job_count_finish(khub__fetcher *fetcher, khub__job *job);

/* Sends the request for what is missing of lane->job. */
int khub__lane_start(khub__lane *lane, khub_error *err);

/* What an answer to a download must be: KHUB_OK for a part that starts at lane->at, for the whole and for
 * 416. */
int khub__lane_check_head(const khub__lane *lane, const khub__transfer *transfer, khub_error *err);

/* How long to wait before the next try of the lane's request; -1: there is none, *err says why. */
int64_t khub__lane_retry(khub__lane *lane, khub_error *err);

/* Its request has ended. What comes next is in the job. */
int khub__lane_end(khub__lane *lane, khub_error *err);

/* Makes the lane free, its request stopped. */
void khub__lane_clear(khub__lane *lane);

/* A large file: ranges over several lanes into a window. The job has begun. */
int khub__big_start(khub__fetcher *fetcher, khub__job *job, khub_error *err);
/* What there is to do now: new ranges, tries that have waited, the end. */
int khub__big_step(khub__fetcher *fetcher, khub_error *err);
/* A request of its has ended. */
int khub__big_lane_end(khub__lane *lane, khub_error *err);
/* Gives it up when there is one. What the sink has stays. */
void khub__big_close(khub__fetcher *fetcher);

#endif
