/* The threads of a model: every piece once, failures by index, nothing left behind. */
#include "unit.h"

#include "base/error.h"
#include "model/threads.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

enum { MOST = 1000 };

struct work {
    atomic_int runs[MOST];
    atomic_int total;
    size_t fails_from; /* pieces from here on fail */
    khub__threads *inside;
};

static int count_piece(void *user, size_t i, khub_error *err)
{
    struct work *w = user;
    atomic_fetch_add(&w->runs[i], 1);
    atomic_fetch_add(&w->total, 1);
    if (i >= w->fails_from) return khub__fail(err, KHUB_E_KERNEL, "piece %zu", i);
    return KHUB_OK;
}

static void check_runs(khub__threads *threads, size_t count)
{
    struct work w = {.fails_from = MOST};
    khub_error err = {0};
    ck_khub_ok(khub__threads_run(threads, count, count_piece, &w, &err), &err);
    for (size_t i = 0; i < count; i++)
        ck_assert_int_eq(atomic_load(&w.runs[i]), 1);
    ck_assert_int_eq(atomic_load(&w.total), (int)count);
}

START_TEST(every_piece_runs_once)
{
    static const unsigned thread_counts[] = {1, 2, 3, 8};
    static const size_t piece_counts[] = {0, 1, 2, 3, 7, 64, MOST};
    khub_error err = {0};
    for (size_t t = 0; t < sizeof(thread_counts) / sizeof(*thread_counts); t++) {
        khub__threads *threads;
        ck_khub_ok(khub__threads_new(&threads, thread_counts[t], &err), &err);
        ck_assert_uint_eq(khub__threads_count(threads), thread_counts[t]);
        for (int round = 0; round < 20; round++)
            for (size_t p = 0; p < sizeof(piece_counts) / sizeof(*piece_counts); p++)
                check_runs(threads, piece_counts[p]);
        khub__threads_free(threads);
    }
}
END_TEST

/* Many short jobs with workers asleep, awake and late in turn: a late one must not touch the next job. */
START_TEST(jobs_dont_mix)
{
    khub_error err = {0};
    for (unsigned n = 2; n <= 4; n++) {
        khub__threads *threads;
        ck_khub_ok(khub__threads_new(&threads, n, &err), &err);
        for (int job = 0; job < 3000; job++) {
            check_runs(threads, 2 + (size_t)job % 7);
            if (job % 500 == 0) usleep(300); /* long enough for the workers to sleep */
        }
        khub__threads_free(threads);
    }
}
END_TEST

START_TEST(first_failure_by_index)
{
    khub_error err = {0};
    for (unsigned n = 1; n <= 4; n++) {
        khub__threads *threads;
        ck_khub_ok(khub__threads_new(&threads, n, &err), &err);
        for (size_t from = 0; from < 20; from++) {
            struct work w = {.fails_from = from};
            char words[32];
            snprintf(words, sizeof(words), "piece %zu", from);
            ck_khub_fails(khub__threads_run(threads, 20, count_piece, &w, &err), &err, KHUB_E_KERNEL, words);
            for (size_t i = 0; i <= from; i++)
                ck_assert_int_eq(atomic_load(&w.runs[i]), 1);
            ck_assert_int_eq(khub__threads_run(threads, 20, count_piece, &w, NULL), KHUB_E_KERNEL);
        }
        check_runs(threads, 20); /* a failure isn't remembered */
        khub__threads_free(threads);
    }
}
END_TEST

static int thread_lines(void)
{
    FILE *f = fopen("/proc/self/status", "r");
    char line[256];
    int n = -1;
    while (f && fgets(line, sizeof(line), f))
        if (sscanf(line, "Threads: %d", &n) == 1) break;
    if (f) fclose(f);
    return n;
}

/* Once it doesn't change any more: a thread that was joined is counted until the system has let it go. */
static int settled_thread_lines(void)
{
    int before, n = thread_lines();
    do {
        before = n;
        usleep(5000);
        n = thread_lines();
    } while (n != before);
    return n;
}

static void *nothing(void *user)
{
    return user;
}

START_TEST(no_threads_before_there_is_work)
{
    khub_error err = {0};
    khub__threads *threads;
    pthread_t first; /* with it the thread sanitizer starts one of its own */
    ck_assert_int_eq(pthread_create(&first, NULL, nothing, NULL), 0);
    pthread_join(first, NULL);
    int before = settled_thread_lines();
    ck_khub_ok(khub__threads_new(&threads, 4, &err), &err);
    check_runs(threads, 1);
    ck_assert_int_eq(settled_thread_lines(), before);
    check_runs(threads, 2);
    ck_assert_int_eq(thread_lines(), before + 3);
    khub__threads_free(threads);
    ck_assert_int_eq(settled_thread_lines(), before);
    ck_khub_ok(khub__threads_new(&threads, 1, &err), &err);
    check_runs(threads, MOST);
    ck_assert_int_eq(settled_thread_lines(), before);
    khub__threads_free(threads);
    khub__threads_free(NULL);
}
END_TEST

static atomic_long worker; /* its number in /proc; 0: it took no piece yet */

static int note_worker(void *user, size_t i, khub_error *err)
{
    (void)user, (void)i, (void)err;
    if (gettid() != getpid()) atomic_store(&worker, gettid());
    usleep(100); /* the other piece is the other thread's */
    return KHUB_OK;
}

/* How often the worker went to sleep; -1: it is awake. */
static long sleeps_or_awake(void)
{
    char path[64], line[128], state = 0;
    long count = -1;
    snprintf(path, sizeof(path), "/proc/self/task/%ld/status", atomic_load(&worker));
    FILE *file = fopen(path, "r");
    ck_assert_ptr_nonnull(file);
    while (fgets(line, sizeof(line), file)) {
        sscanf(line, "State: %c", &state);
        sscanf(line, "voluntary_ctxt_switches: %ld", &count);
    }
    fclose(file);
    return state == 'S' ? count : -1;
}

static long sleeps(void)
{
    long count = -1;
    for (int tries = 0; count < 0 && tries < 10000; tries++) {
        usleep(1000);
        count = sleeps_or_awake();
    }
    ck_assert_int_ge(count, 0);
    return count;
}

/* A worker that sleeps is left alone by jobs that can't be shared: a row, a sentence. */
START_TEST(one_piece_wakes_nobody)
{
    khub_error err = {0};
    khub__threads *threads;
    ck_khub_ok(khub__threads_new(&threads, 2, &err), &err);
    for (int tries = 0; !atomic_load(&worker) && tries < 10000; tries++)
        ck_khub_ok(khub__threads_run(threads, 2, note_worker, NULL, &err), &err);
    long before = sleeps();
    for (int i = 0; i < 1000; i++)
        check_runs(threads, 1);
    ck_assert_int_eq(sleeps(), before);
    for (int tries = 0; sleeps() == before && tries < 1000; tries++)
        check_runs(threads, 2);
    ck_assert_int_gt(sleeps(), before);
    khub__threads_free(threads);
}
END_TEST

START_TEST(as_many_as_allowed)
{
    khub_error err = {0};
    khub__threads *threads;
    cpu_set_t all, one;
    ck_assert_int_eq(sched_getaffinity(0, sizeof(all), &all), 0);
    ck_khub_ok(khub__threads_new(&threads, 0, &err), &err);
    ck_assert_uint_le(khub__threads_count(threads), (unsigned)CPU_COUNT(&all)); /* a quota may allow fewer */
    khub__threads_free(threads);
    CPU_ZERO(&one);
    for (int cpu = 0; CPU_COUNT(&one) == 0; cpu++)
        if (CPU_ISSET(cpu, &all)) CPU_SET(cpu, &one);
    ck_assert_int_eq(sched_setaffinity(0, sizeof(one), &one), 0);
    ck_khub_ok(khub__threads_new(&threads, 0, &err), &err);
    ck_assert_uint_eq(khub__threads_count(threads), 1);
    khub__threads_free(threads);
    ck_khub_ok(khub__threads_new(&threads, 3, &err),
               &err); /* more than there are CPUs: slower, still right */
    check_runs(threads, 100);
    khub__threads_free(threads);
    ck_khub_fails(khub__threads_new(&threads, 5000, &err), &err, KHUB_E_INVAL, "5000 threads");
}
END_TEST

UNIT("threads", every_piece_runs_once, jobs_dont_mix, first_failure_by_index, no_threads_before_there_is_work,
     one_piece_wakes_nobody, as_many_as_allowed)
