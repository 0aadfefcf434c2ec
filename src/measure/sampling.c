#include "measure/sampling.h"

#include "base/error.h"
#include "base/memory.h"

#include <stdlib.h>
#include <time.h>

/* Warming up: caches and predictors need a few calls, a processor that slept a few milliseconds; no more than
 * a tenth of the time there is. A call that is longer than that brings its own arguments near. */
#define WARM_SECONDS 5e-3
#define WARM_SHARE   0.1
enum { WARM_CALLS = 3 };
/* Between an event of a device and the first call behind it pass some µs: samples are so many times as long.
 */
#define DEVICE_TIMES 10
/* A thread that sleeps is awake within some 50 µs. */
#define WAKE_SECONDS 100e-6

double khub__seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

double khub__quantile(const double *sorted, size_t count, double q)
{
    double at = q * (double)(count - 1);
    size_t below = (size_t)at;
    if (below + 1 >= count) return sorted[count - 1];
    return sorted[below] + (at - (double)below) * (sorted[below + 1] - sorted[below]);
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void khub__timing_of(khub_timing *out, double *samples, size_t count)
{
    qsort(samples, count, sizeof(*samples), by_size);
    out->best = samples[0];
    out->q1 = khub__quantile(samples, count, 0.25);
    out->median = khub__quantile(samples, count, 0.5);
    out->q3 = khub__quantile(samples, count, 0.75);
    out->samples = count;
    double fence = out->q3 + 3 * (out->q3 - out->q1);
    out->outliers = 0;
    while (out->outliers < count && samples[count - 1 - out->outliers] > fence)
        out->outliers++;
}

uint64_t khub__calls_a_sample(double seconds)
{
    const double most = 1e6; /* for what takes no time at all */
    double calls = seconds > KHUB__SAMPLE_SECONDS / most ? KHUB__SAMPLE_SECONDS / seconds : most;
    uint64_t whole = (uint64_t)calls;
    return whole + ((double)whole < calls * (1 - 1e-9)); /* 50 calls of a microsecond are enough */
}

/* One side of a race, with its samples. */
struct lane {
    const khub__contender *who;
    double *samples; /* KHUB__MOST_SAMPLES */
    uint64_t calls;
    int bring; /* 1: calls that aren't counted before each sample */
};

struct race {
    const khub__race_options *options;
    double (*now)(void);
    double deadline;
};

/* `calls` calls, and how long they took together. */
static int time_calls(double *seconds, const struct race *race, const khub__contender *who, uint64_t calls,
                      khub_error *err)
{
    if (who->timed) return who->timed(seconds, who->user, calls, err);
    double start = race->now();
    int rc = who->run(who->user, calls, err);
    *seconds = race->now() - start;
    return rc;
}

/* Calls until the processor is warm; how long a call took at best says how many make a sample. */
static int warm_up(struct race *race, struct lane *lane, khub_error *err)
{
    double limit = WARM_SHARE * race->options->seconds;
    if (limit > WARM_SECONDS) limit = WARM_SECONDS;
    double start = race->now(), best = 0;
    for (int i = 0; i < WARM_CALLS || race->now() - start < limit; i++) {
        double took = 0;
        int rc = time_calls(&took, race, lane->who, 1, err);
        if (rc != KHUB_OK) return rc;
        if (i == 0 || took < best) best = took;
        if (best > WARM_SECONDS) break;
    }
    lane->calls = khub__calls_a_sample(lane->who->timed ? best / DEVICE_TIMES : best);
    lane->bring = (!race->options->cold || race->options->rest > 0) && best <= WARM_SECONDS;
    return KHUB_OK;
}

static void rest(double seconds)
{
    const struct timespec t = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
    if (seconds > 0) nanosleep(&t, NULL); /* shorter after a signal, which does no harm */
}

/* Arguments near, threads awake. */
static int bring(const struct race *race, const struct lane *lane, khub_error *err)
{
    double awake = race->options->rest > 0 ? WAKE_SECONDS : 0, start = race->now();
    int rc = KHUB_OK;
    do
        rc = lane->who->run(lane->who->user, 1, err);
    while (rc == KHUB_OK && awake > 0 && race->now() - start < awake);
    return rc;
}

static int sample(const struct race *race, struct lane *lane, size_t round, khub_error *err)
{
    rest(race->options->rest);
    int rc = lane->bring ? bring(race, lane, err) : KHUB_OK;
    double took = 0;
    if (rc == KHUB_OK) rc = time_calls(&took, race, lane->who, lane->calls, err);
    lane->samples[round] = took / (double)lane->calls;
    return rc;
}

/* `lanes` in turn until the time is over; *rounds says how many there were. */
static int run_rounds(struct race *race, struct lane *lanes, size_t lane_count, size_t *rounds,
                      khub_error *err)
{
    size_t done = 0;
    for (; done < KHUB__MOST_SAMPLES; done++) {
        if (done >= KHUB__FEWEST_ROUNDS && race->now() >= race->deadline) break;
        for (size_t i = 0; i < lane_count; i++) {
            int rc = sample(race, &lanes[(i + done) % lane_count], done, err);
            if (rc != KHUB_OK) return rc;
        }
    }
    *rounds = done;
    return KHUB_OK;
}

/* Before the samples are sorted: a pair stands at the same place in both. */
static void summarize_ratio(khub__race_result *out, const double *a, const double *b, double *room,
                            size_t count)
{
    for (size_t i = 0; i < count; i++)
        room[i] = a[i] > 0 ? b[i] / a[i] : 0;
    qsort(room, count, sizeof(*room), by_size);
    out->ratio_q1 = khub__quantile(room, count, 0.25);
    out->ratio = khub__quantile(room, count, 0.5);
    out->ratio_q3 = khub__quantile(room, count, 0.75);
}

int khub__race(khub__race_result *out, const khub__contender *a, const khub__contender *b,
               const khub__race_options *options, khub_error *err)
{
    memset(out, 0, sizeof(*out));
    double *room = khub__malloc(3 * KHUB__MOST_SAMPLES * sizeof(*room));
    if (!room) return khub__fail_memory(err, "timing calls");
    struct lane lanes[2] = {{a, room, 0, 0}, {b, room + KHUB__MOST_SAMPLES, 0, 0}};
    struct race race = {options, options->now ? options->now : khub__seconds, 0};
    race.deadline = race.now() + options->seconds;
    size_t count = b ? 2 : 1, rounds = 0;
    int rc = KHUB_OK;
    for (size_t i = 0; i < count && rc == KHUB_OK; i++)
        rc = warm_up(&race, &lanes[i], err);
    if (rc == KHUB_OK) rc = run_rounds(&race, lanes, count, &rounds, err);
    if (rc == KHUB_OK && b)
        summarize_ratio(out, lanes[0].samples, lanes[1].samples, room + 2 * KHUB__MOST_SAMPLES, rounds);
    for (size_t i = 0; i < count && rc == KHUB_OK; i++) {
        khub_timing *timing = i == 0 ? &out->a : &out->b;
        khub__timing_of(timing, lanes[i].samples, rounds);
        timing->calls = lanes[i].calls;
    }
    khub__free(room);
    return rc;
}
