/* Timing: made-up samples, and races against a clock that goes as the test says. */
#include "unit.h"

#include "measure/peaks.h"
#include "measure/sampling.h"

#include <math.h>

#define NEAR 1e-11 /* what a clock at 1,000 s makes of a double */

START_TEST(quantiles_lie_between_numbers)
{
    static const double five[] = {1, 2, 4, 8, 16}, one[] = {3};
    ck_assert_double_eq(khub__quantile(five, 5, 0), 1);
    ck_assert_double_eq(khub__quantile(five, 5, 0.25), 2);
    ck_assert_double_eq(khub__quantile(five, 5, 0.5), 4);
    ck_assert_double_eq(khub__quantile(five, 5, 1), 16);
    ck_assert_double_eq(khub__quantile(five, 4, 0.5), 3);     /* between 2 and 4 */
    ck_assert_double_eq(khub__quantile(five, 4, 0.25), 1.75); /* three quarters of the way from 1 to 2 */
    ck_assert_double_eq(khub__quantile(one, 1, 0.75), 3);
}
END_TEST

START_TEST(outliers_are_above_the_outer_fence)
{
    khub_timing t;
    double even[] = {14, 10, 12, 13, 11};
    khub__timing_of(&t, even, 5);
    ck_assert_double_eq(t.best, 10);
    ck_assert_double_eq(t.q1, 11);
    ck_assert_double_eq(t.median, 12);
    ck_assert_double_eq(t.q3, 13);
    ck_assert_uint_eq(t.samples, 5);
    ck_assert_uint_eq(t.outliers, 0);
    /* quartiles 11 and 13 of nine numbers: the fence is 19 */
    double jumps[] = {10, 19.5, 11, 11, 12, 12, 500, 13, 12};
    khub__timing_of(&t, jumps, 9);
    ck_assert_double_eq(t.q1, 11);
    ck_assert_double_eq(t.q3, 13);
    ck_assert_double_eq(t.median, 12);
    ck_assert_uint_eq(t.outliers, 2);
    double on_it[] = {10, 19, 11, 11, 12, 12, 19, 13, 12}; /* at the fence is not above it */
    khub__timing_of(&t, on_it, 9);
    ck_assert_uint_eq(t.outliers, 0);
    double same[] = {2, 2, 2, 2, 3};
    khub__timing_of(&t, same, 5);
    ck_assert_uint_eq(t.outliers, 1);
    double alone[] = {7};
    khub__timing_of(&t, alone, 1);
    ck_assert_double_eq(t.best, 7);
    ck_assert_double_eq(t.q3, 7);
    ck_assert_uint_eq(t.outliers, 0);
}
END_TEST

START_TEST(a_sample_is_longer_than_the_clock_is_coarse)
{
    ck_assert_uint_eq(khub__calls_a_sample(50e-6), 1);
    ck_assert_uint_eq(khub__calls_a_sample(1), 1);
    ck_assert_uint_eq(khub__calls_a_sample(20e-6), 3); /* 2 would be 40 µs */
    ck_assert_uint_eq(khub__calls_a_sample(1e-6), 50);
    ck_assert_uint_eq(khub__calls_a_sample(0), 1000000); /* a call that the clock doesn't see */
}
END_TEST

/* A world whose clock goes on when something is called. */
static double clock_now;
static char order[64];
static size_t called;
static double fake_clock(void)
{
    return clock_now;
}

typedef struct runner {
    char name;
    double seconds;       /* of a call */
    size_t slow_at, runs; /* the run that takes ten times as long, from 1; 0: none */
    size_t fails_at;
    uint64_t most_calls;
} runner;

static int take_time(void *user, uint64_t calls, khub_error *err)
{
    runner *r = user;
    r->runs++;
    if (called < sizeof(order) - 1) order[called++] = r->name;
    clock_now += (double)calls * r->seconds * (r->runs == r->slow_at ? 10 : 1);
    if (calls > r->most_calls) r->most_calls = calls;
    if (r->runs != r->fails_at) return KHUB_OK;
    err->code = KHUB_E_KERNEL;
    return KHUB_E_KERNEL;
}

static void new_world(void)
{
    clock_now = 1000;
    memset(order, 0, sizeof(order));
    called = 0;
}

START_TEST(a_race_takes_turns)
{
    new_world();
    runner slow = {'a', 3e-3, 0}, fast = {'b', 2e-3, 0};
    khub__contender a = {take_time, &slow}, b = {take_time, &fast};
    khub__race_options options = {.seconds = 0.053, .cold = 1, .now = fake_clock};
    khub__race_result result;
    khub_error err = {0};
    ck_khub_ok(khub__race(&result, &a, &b, &options, &err), &err);
    /* 3 calls of each to warm up, 15 ms; then rounds of 5 ms while there is time: 8 of them */
    ck_assert_str_eq(order, "aaabbb"
                            "abbaabbaabbaabba");
    ck_assert_uint_eq(result.a.samples, 8);
    ck_assert_uint_eq(result.b.samples, 8);
    ck_assert_uint_eq(result.a.calls, 1);
    ck_assert_double_eq_tol(result.a.median, 3e-3, NEAR);
    ck_assert_double_eq_tol(result.b.best, 2e-3, NEAR);
    ck_assert_double_eq_tol(result.ratio, 2 / 3.0, 1e-9);
    ck_assert_double_eq_tol(result.ratio_q3 - result.ratio_q1, 0, 1e-9);
}
END_TEST

START_TEST(a_call_that_is_not_counted_comes_before_each_sample)
{
    new_world();
    runner one = {'a', 25e-6, 0};
    khub__contender a = {take_time, &one};
    khub__race_options options = {.seconds = 1e-4, .now = fake_clock};
    khub__race_result result;
    khub_error err = {0};
    ck_khub_ok(khub__race(&result, &a, NULL, &options, &err), &err);
    /* 3 to warm up; then at least 3 rounds of one call and of two */
    ck_assert_uint_eq(result.a.samples, 3);
    ck_assert_uint_eq(result.a.calls, 2);
    ck_assert_uint_eq(one.runs, 3 + 3 * 2);
    ck_assert_double_eq_tol(clock_now - 1000, 25e-6 * (3 + 3 * 3), 1e-9);
    ck_assert_double_eq_tol(result.a.median, 25e-6, 1e-9);
    ck_assert_double_eq(result.ratio, 0);
    ck_assert_uint_eq(result.b.samples, 0);
}
END_TEST

/* A clock that goes twice as fast as ours, for which 50 µs is too short a sample. */
static int take_time_there(double *seconds, void *user, uint64_t calls, khub_error *err)
{
    double before = clock_now;
    int rc = take_time(user, calls, err);
    *seconds = 2 * (clock_now - before);
    return rc;
}

START_TEST(a_device_has_its_own_clock)
{
    new_world();
    runner one = {'a', 25e-6, 0};
    khub__contender a = {take_time, &one, take_time_there};
    khub__race_options options = {.seconds = 1e-4, .now = fake_clock};
    khub__race_result result;
    khub_error err = {0};
    ck_khub_ok(khub__race(&result, &a, NULL, &options, &err), &err);
    ck_assert_uint_eq(result.a.calls, 10); /* 500 µs */
    ck_assert_double_eq_tol(result.a.median, 50e-6, 1e-9);
}
END_TEST

/* After a rest calls aren't counted for 100 µs, with `cold` too: threads are woken, whatever else is near. */
START_TEST(after_a_rest_calls_wake_the_threads)
{
    new_world();
    runner one = {'a', 25e-6, 0};
    khub__contender a = {take_time, &one};
    khub__race_options options = {.seconds = 1e-4, .cold = 1, .rest = 1e-6, .now = fake_clock};
    khub__race_result result;
    khub_error err = {0};
    ck_khub_ok(khub__race(&result, &a, NULL, &options, &err), &err);
    ck_assert_uint_eq(result.a.samples, 3);
    ck_assert_uint_eq(one.runs, 3 + 3 * (4 + 1));
    ck_assert_double_eq_tol(clock_now - 1000, 25e-6 * (3 + 3 * (4 + 2)), 1e-9);
    ck_assert_double_eq_tol(result.a.median, 25e-6, 1e-9);
}
END_TEST

START_TEST(one_slow_moment_shows_as_an_outlier)
{
    new_world();
    runner first = {'a', 1e-3, 20}, second = {'b', 2e-3, 0};
    khub__contender a = {take_time, &first}, b = {take_time, &second};
    khub__race_options options = {.seconds = 0.1, .cold = 1, .now = fake_clock};
    khub__race_result result;
    khub_error err = {0};
    ck_khub_ok(khub__race(&result, &a, &b, &options, &err), &err);
    ck_assert_uint_gt(result.a.samples, 10);
    ck_assert_uint_eq(result.a.outliers, 1);
    ck_assert_uint_eq(result.b.outliers, 0);
    ck_assert_double_eq_tol(result.a.median, 1e-3, 1e-9);
    ck_assert_double_eq_tol(result.ratio, 2, 1e-6);
}
END_TEST

START_TEST(a_call_longer_than_the_time_is_called_no_more_than_needed)
{
    new_world();
    runner one = {'a', 9, 0};
    khub__contender a = {take_time, &one};
    khub__race_options options = {.seconds = 1, .now = fake_clock};
    khub__race_result result;
    khub_error err = {0};
    ck_khub_ok(khub__race(&result, &a, NULL, &options, &err), &err);
    ck_assert_uint_eq(one.runs, 1 + KHUB__FEWEST_ROUNDS);
    ck_assert_double_eq_tol(result.a.best, 9, NEAR);
}
END_TEST

START_TEST(a_call_without_length_ends_too)
{
    new_world();
    runner one = {'a', 0, 0};
    khub__contender a = {take_time, &one};
    khub__race_options options = {.seconds = 0, .cold = 1, .now = fake_clock};
    khub__race_result result;
    khub_error err = {0};
    ck_khub_ok(khub__race(&result, &a, NULL, &options, &err), &err);
    ck_assert_uint_eq(one.most_calls, 1000000);
    ck_assert_double_eq(result.a.median, 0);
}
END_TEST

START_TEST(what_a_call_says_ends_the_race)
{
    for (size_t at = 1; at < 8; at += 3) { /* warming up, later */
        new_world();
        runner good = {'a', 1e-3, 0}, bad = {'b', 1e-3, 0, 0, at};
        khub__contender a = {take_time, &good}, b = {take_time, &bad};
        khub__race_options options = {.seconds = 0.1, .now = fake_clock};
        khub__race_result result;
        khub_error err = {0};
        ck_assert_int_eq(khub__race(&result, &a, &b, &options, &err), KHUB_E_KERNEL);
        ck_assert_uint_eq(bad.runs, at);
        ck_assert_uint_eq(result.a.samples, 0);
    }
}
END_TEST

START_TEST(the_machine_is_measured)
{
    khub_error err = {0};
    khub__threads *pool;
    khub__peaks *peaks;
    ck_khub_ok(khub__threads_new(&pool, 2, &err), &err);
    ck_khub_ok(khub__peaks_new(&peaks, pool, NULL, 20 << 20, &err), &err);
    ck_assert_uint_eq(khub__peaks_most(peaks), 64 << 20); /* twice 20 MiB, and a power of two */
    ck_assert_uint_eq(khub__peaks_size(peaks, 1), 32 << 10);
    ck_assert_uint_eq(khub__peaks_size(peaks, 65536), 65536);
    ck_assert_uint_eq(khub__peaks_size(peaks, 65537), 131072);
    ck_assert_uint_eq(khub__peaks_size(peaks, 1e15), 64 << 20);
    double copy = khub__peaks_copy(peaks, 65536), fma = khub__peaks_fma(peaks);
    ck_assert(isfinite(copy) && copy > 0);
    ck_assert(isfinite(fma) && fma > 0);
    ck_assert_double_eq(khub__peaks_copy(peaks, 65000), copy); /* remembered */
    ck_assert_double_eq(khub__peaks_fma(peaks), fma);
    khub__peaks_again(peaks);
    ck_assert_double_ge(khub__peaks_copy(peaks, 65000), copy); /* the better of both */
    ck_assert_double_ge(khub__peaks_fma(peaks), fma);
    ck_assert_ptr_nonnull(strstr("portable avx2 avx512 neon", khub__peaks_fma_isa(peaks)));
    khub__peaks_free(peaks);
    khub__threads_free(pool);
}
END_TEST

UNIT("sampling", quantiles_lie_between_numbers, outliers_are_above_the_outer_fence,
     a_sample_is_longer_than_the_clock_is_coarse, a_race_takes_turns,
     a_call_that_is_not_counted_comes_before_each_sample, a_device_has_its_own_clock,
     after_a_rest_calls_wake_the_threads, one_slow_moment_shows_as_an_outlier,
     a_call_longer_than_the_time_is_called_no_more_than_needed, a_call_without_length_ends_too,
     what_a_call_says_ends_the_race, the_machine_is_measured)
