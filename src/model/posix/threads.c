/* A pool whose hand-over costs about a microsecond while work keeps coming, and nothing when there is none.
 *
 * The caller publishes a job and takes pieces of it like everyone else, so that a worker which the system
 * doesn't run costs nothing but its help. `ticket` is the job's number (high half) and its next piece (low
 * half) in one atomic word: a piece is taken by compare-and-swap on both. A job that is over is closed (its
 * next piece is CLOSED) before the next one is written, so that a worker that comes late can't mix the two.
 */
#include "model/threads.h"

#include "base/error.h"
#include "base/memory.h"
#include "platform/threads.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

enum { MAX_THREADS = 1024, MAX_PIECES = 0x7fffffff, CACHE_LINE = 64 };
#define CLOSED 0xffffffffu /* no piece has this number */

/* How long a thread that has nothing to do looks for work before it sleeps: longer than what the caller does
 * between two layers (a few microseconds), short enough not to be seen on a meter. */
#define SPIN_NS 60000

struct khub__threads {
    _Atomic uint64_t ticket;
    char apart1[CACHE_LINE]; /* what all threads write doesn't share a line with anything */
    _Atomic uint32_t done;   /* pieces of the current job that have ended */
    char apart2[CACHE_LINE];
    /* The job; written before its ticket is published, atomic because a late worker may read while the next
     * is written. */
    _Atomic(khub__task) task;
    _Atomic(void *) user;
    _Atomic uint32_t count;
    atomic_int sleepers, caller_sleeps, stop;

    pthread_mutex_t lock;
    pthread_cond_t work, over; /* a job was published; the last piece ended */
    pthread_mutex_t failure;   /* guards failed_at and why */
    size_t failed_at;          /* index of the first failure; SIZE_MAX: none */
    int status;
    khub_error why;

    unsigned threads, started; /* the caller included; workers that run */
    int spins;                 /* there is a CPU for each thread */
    int tried;                 /* starting the workers was tried */
    pthread_t *workers;
};

unsigned khub__allowed_cpus(void)
{
    unsigned affinity = khub__affinity_count();
    uint64_t quota = (khub__cgroup_limit("") + 999) / 1000; /* 1.5 processors keep two threads busy */
    if (quota && quota < affinity) return (unsigned)quota;
    return affinity ? affinity : 1;
}

static void pause_cpu(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void remember_failure(khub__threads *pool, size_t i, int status, const khub_error *why)
{
    pthread_mutex_lock(&pool->failure);
    if (i < pool->failed_at) {
        pool->failed_at = i;
        pool->status = status;
        pool->why = *why;
    }
    pthread_mutex_unlock(&pool->failure);
}

static void end_piece(khub__threads *pool, uint32_t count)
{
    if (atomic_fetch_add(&pool->done, 1) + 1 != count) return;
    if (!atomic_load(&pool->caller_sleeps)) return;
    pthread_mutex_lock(&pool->lock);
    pthread_cond_signal(&pool->over);
    pthread_mutex_unlock(&pool->lock);
}

/* Takes pieces of job `job` until none is left. */
static void work_on(khub__threads *pool, uint32_t job)
{
    khub_error why; /* 1 KiB: emptied only by its first bytes, which is all that is read */
    for (;;) {
        uint64_t ticket = atomic_load(&pool->ticket);
        uint32_t i = (uint32_t)ticket, count = atomic_load(&pool->count);
        khub__task task = atomic_load(&pool->task);
        void *user = atomic_load(&pool->user);
        if ((uint32_t)(ticket >> 32) != job || i >= count) return;
        if (!atomic_compare_exchange_weak(&pool->ticket, &ticket, ticket + 1)) continue;
        why.code = 0;
        why.message[0] = 0;
        int status = task(user, i, &why);
        if (status != KHUB_OK) remember_failure(pool, i, status, &why);
        end_piece(pool, count);
    }
}

/* Waits until *word's high half isn't `job` any more. */
static void wait_for_job(khub__threads *pool, uint32_t job)
{
    int64_t until = pool->spins ? now_ns() + SPIN_NS : 0;
    while (pool->spins) {
        for (int i = 0; i < 64; i++) {
            if ((uint32_t)(atomic_load_explicit(&pool->ticket, memory_order_acquire) >> 32) != job) return;
            if (atomic_load_explicit(&pool->stop, memory_order_relaxed)) return;
            pause_cpu();
        }
        if (now_ns() > until) break;
    }
    pthread_mutex_lock(&pool->lock);
    atomic_fetch_add(&pool->sleepers, 1);
    while ((uint32_t)(atomic_load(&pool->ticket) >> 32) == job && !atomic_load(&pool->stop))
        pthread_cond_wait(&pool->work, &pool->lock);
    atomic_fetch_sub(&pool->sleepers, 1);
    pthread_mutex_unlock(&pool->lock);
}

static void *worker(void *self)
{
    khub__threads *pool = self;
    uint32_t job = 0;
    for (;;) {
        wait_for_job(pool, job);
        if (atomic_load(&pool->stop)) return NULL;
        job = (uint32_t)(atomic_load(&pool->ticket) >> 32);
        work_on(pool, job);
    }
}

static void wait_for_end(khub__threads *pool, uint32_t count)
{
    int64_t until = pool->spins ? now_ns() + SPIN_NS : 0;
    while (pool->spins) {
        for (int i = 0; i < 64; i++) {
            if (atomic_load_explicit(&pool->done, memory_order_acquire) == count) return;
            pause_cpu();
        }
        if (now_ns() > until) break;
    }
    pthread_mutex_lock(&pool->lock);
    atomic_store(&pool->caller_sleeps, 1);
    while (atomic_load(&pool->done) != count)
        pthread_cond_wait(&pool->over, &pool->lock);
    atomic_store(&pool->caller_sleeps, 0);
    pthread_mutex_unlock(&pool->lock);
}

/* A worker that can't be started isn't missed: the others do its work. */
static void start_workers(khub__threads *pool)
{
    if (pool->tried) return;
    pool->tried = 1;
    while (pool->started + 1 < pool->threads &&
           pthread_create(&pool->workers[pool->started], NULL, worker, pool) == 0)
        pool->started++;
}

static int run_alone(size_t count, khub__task task, void *user, khub_error *err)
{
    for (size_t i = 0; i < count; i++) {
        int rc = task(user, i, err);
        if (rc != KHUB_OK) return rc;
    }
    return KHUB_OK;
}

int khub__threads_run(khub__threads *pool, size_t count, khub__task task, void *user, khub_error *err)
{
    if (count > 1 && pool->threads > 1) start_workers(pool);
    if (count <= 1 || pool->started == 0) return run_alone(count, task, user, err);
    if (count > MAX_PIECES) return khub__fail(err, KHUB_E_INVAL, "a job of %zu pieces is too large", count);
    pool->failed_at = SIZE_MAX;
    atomic_store(&pool->task, task);
    atomic_store(&pool->user, user);
    atomic_store(&pool->count, (uint32_t)count);
    atomic_store(&pool->done, 0);
    uint32_t job = (uint32_t)(atomic_load(&pool->ticket) >> 32) + 1;
    atomic_store(&pool->ticket, (uint64_t)job << 32);
    if (atomic_load(&pool->sleepers) > 0) {
        pthread_mutex_lock(&pool->lock);
        pthread_cond_broadcast(&pool->work);
        pthread_mutex_unlock(&pool->lock);
    }
    work_on(pool, job);
    wait_for_end(pool, (uint32_t)count);
    atomic_store(&pool->ticket, (uint64_t)job << 32 | CLOSED);
    if (pool->failed_at == SIZE_MAX) return KHUB_OK;
    return khub__fail(err, pool->status, "%s", pool->why.message);
}

unsigned khub__threads_count(const khub__threads *pool)
{
    return pool->threads;
}

int khub__threads_new(khub__threads **out, unsigned threads, khub_error *err)
{
    *out = NULL;
    unsigned cpus = khub__allowed_cpus();
    if (threads == 0) threads = cpus;
    if (threads > MAX_THREADS)
        return khub__fail(err, KHUB_E_INVAL, "%u threads are asked for, at most %d are started", threads,
                          MAX_THREADS);
    khub__threads *pool = khub__calloc(1, sizeof(*pool));
    if (!pool) return khub__fail_memory(err, "starting threads");
    pool->workers = khub__calloc(threads, sizeof(*pool->workers));
    if (!pool->workers) {
        khub__free(pool);
        return khub__fail_memory(err, "starting threads");
    }
    pool->threads = threads;
    pool->spins = threads <= cpus;
    pthread_mutex_init(&pool->lock, NULL);
    pthread_mutex_init(&pool->failure, NULL);
    pthread_cond_init(&pool->work, NULL);
    pthread_cond_init(&pool->over, NULL);
    *out = pool;
    return KHUB_OK;
}

void khub__threads_free(khub__threads *pool)
{
    if (!pool) return;
    pthread_mutex_lock(&pool->lock);
    atomic_store(&pool->stop, 1);
    pthread_cond_broadcast(&pool->work);
    pthread_mutex_unlock(&pool->lock);
    for (unsigned i = 0; i < pool->started; i++)
        pthread_join(pool->workers[i], NULL);
    pthread_cond_destroy(&pool->over);
    pthread_cond_destroy(&pool->work);
    pthread_mutex_destroy(&pool->failure);
    pthread_mutex_destroy(&pool->lock);
    khub__free(pool->workers);
    khub__free(pool);
}
