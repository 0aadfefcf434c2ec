/* Sampling: how calls are timed, and what becomes of the times. The rules that a reader needs to know stand
 * at khub_timing. */
#ifndef MEASURE_SAMPLING_H
#define MEASURE_SAMPLING_H

#include <khub/bench.h>

enum { KHUB__MOST_SAMPLES = 1000, KHUB__FEWEST_ROUNDS = 3 };

/* Of `count` (at least 1) numbers in ascending order: where the share `q` (0 to 1) lies, interpolated. */
double khub__quantile(const double *sorted, size_t count, double q);

/* Sorts the samples (at least 1) and fills in all but `calls`. */
void khub__timing_of(khub_timing *out, double *samples, size_t count);

/* How many calls of about `seconds` each make one sample: KHUB__SAMPLE_SECONDS at least. */
#define KHUB__SAMPLE_SECONDS 50e-6
uint64_t khub__calls_a_sample(double seconds);

/* What is timed: calls something `calls` times. `timed` (NULL: the race's clock is read before and after)
 * does the same and says how long that took by another clock, as of what a GPU does later. */
typedef struct khub__contender {
    int (*run)(void *user, uint64_t calls, khub_error *err);
    void *user;
    int (*timed)(double *seconds, void *user, uint64_t calls, khub_error *err);
} khub__contender;

typedef struct khub__race_options {
    double seconds;      /* for all of it, about: KHUB__FEWEST_ROUNDS are run in any case */
    int cold;            /* not 0: no call that isn't counted before each sample */
    double rest;         /* seconds before each sample in which the other's threads go to sleep, followed by
                          * calls that aren't counted until one's own are awake; 0: none */
    double (*now)(void); /* a clock in seconds; NULL: the system's, which only goes forward */
} khub__race_options;

typedef struct khub__race_result {
    khub_timing a, b;
    double ratio_q1, ratio, ratio_q3; /* b's time over a's, pair by pair; 0 without b */
} khub__race_result;

/* Times a and b (may be NULL) in turn, sample by sample, each going first in every other round. KHUB_E_NOMEM,
 * or what `run` returns. */
int khub__race(khub__race_result *out, const khub__contender *a, const khub__contender *b,
               const khub__race_options *options, khub_error *err);

/* Seconds on the system's clock that only goes forward. */
double khub__seconds(void);

#endif
