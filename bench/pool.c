/* What a job costs on the pool of threads: handed over while the other thread looks for work, after it went
 * to sleep, and in one piece. Goal: at most 1 µs, so that pieces of one microsecond are worth cutting
 * (src/model/cut.c). */
#include "timing.h"

#include "model/threads.h"

enum { JOBS = 3000, SLEEPERS = 200 };

static int nothing(void *user, size_t i, khub_error *err)
{
    (void)user, (void)i, (void)err;
    return KHUB_OK;
}

/* Looks at the clock as long as `user` says. */
static int work(void *user, size_t i, khub_error *err)
{
    (void)i, (void)err;
    for (double end = seconds() + *(const double *)user; seconds() < end;)
        ;
    return KHUB_OK;
}

static void rest(long ns)
{
    const struct timespec t = {0, ns};
    nanosleep(&t, NULL);
}

static void show(const char *what, double *taken, int count, double least)
{
    qsort(taken, (size_t)count, sizeof(*taken), by_size);
    printf("%-44s %9.2f %9.2f µs\n", what, 1e6 * (taken[0] - least), 1e6 * (taken[count / 2] - least));
}

static void measure_jobs(const char *what, khub__threads *pool, size_t pieces, khub__task task,
                         double *length, int jobs, long rest_ns)
{
    static double taken[JOBS];
    khub_error err = {0};
    for (int i = 0; i < jobs; i++) {
        if (rest_ns) rest(rest_ns);
        double start = seconds();
        khub__threads_run(pool, pieces, task, length, &err);
        taken[i] = seconds() - start;
    }
    show(what, taken, jobs, length ? *length * (double)((pieces + 1) / 2) : 0);
}

int main(void)
{
    khub_error err = {0};
    khub__threads *pool;
    double length = 5e-6;
    if (khub__threads_new(&pool, 2, &err) != KHUB_OK) return fprintf(stderr, "pool: %s\n", err.message), 1;
    printf("beyond the work itself, two threads %35s %9s\n", "best", "median");
    measure_jobs("1 piece of nothing", pool, 1, nothing, NULL, JOBS, 0);
    measure_jobs("2 pieces of nothing", pool, 2, nothing, NULL, JOBS, 0);
    measure_jobs("2 pieces of 5 µs", pool, 2, work, &length, JOBS, 0);
    measure_jobs("4 pieces of 5 µs", pool, 4, work, &length, JOBS, 0);
    measure_jobs("2 pieces of 5 µs, the other thread asleep", pool, 2, work, &length, SLEEPERS, 1000000);
    khub__threads_free(pool);
    return 0;
}
