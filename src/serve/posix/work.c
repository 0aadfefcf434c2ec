#include "serve/work.h"

#include <pthread.h>
#include <stddef.h>

enum { THREADS = 4 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of what follows */
static pthread_cond_t some = PTHREAD_COND_INITIALIZER;
static serve_job *first, **last = &first;
static serve_job *again; /* these wait for the next moment */
static unsigned moment;
static int stopped = 1;

static pthread_t threads[THREADS];
static int thread_count;

/* NULL: there will be no more. */
static serve_job *take(void)
{
    pthread_mutex_lock(&lock);
    while (!first && !stopped)
        pthread_cond_wait(&some, &lock);
    serve_job *job = first;
    if (job) first = job->next;
    if (!first) last = &first;
    pthread_mutex_unlock(&lock);
    return job;
}

static void *work(void *unused)
{
    for (serve_job *job; (job = take());)
        job->run(job);
    return unused;
}

int serve_work_start(void)
{
    stopped = 0;
    for (thread_count = 0; thread_count < THREADS; thread_count++) {
        int rc = pthread_create(&threads[thread_count], NULL, work, NULL);
        if (rc != 0 && !thread_count) return rc;
        if (rc != 0) break;
    }
    return 0;
}

unsigned serve_work_moment(void)
{
    pthread_mutex_lock(&lock);
    unsigned now = moment;
    pthread_mutex_unlock(&lock);
    return now;
}

/* With the lock held. */
static void put(serve_job *job)
{
    job->next = NULL;
    *last = job;
    last = &job->next;
    pthread_cond_signal(&some);
}

void serve_work_add(serve_job *job)
{
    pthread_mutex_lock(&lock);
    int late = stopped;
    if (!late) put(job);
    pthread_mutex_unlock(&lock);
    if (late) job->run(job);
}

int serve_work_again(serve_job *job, unsigned since)
{
    pthread_mutex_lock(&lock);
    int late = stopped;
    if (!late && since != moment) {
        put(job);
    } else if (!late) {
        job->next = again;
        again = job;
    }
    pthread_mutex_unlock(&lock);
    return !late;
}

/* With the lock held. */
static void wake(void)
{
    moment++;
    while (again) {
        serve_job *job = again;
        again = job->next;
        put(job);
    }
}

void serve_work_wake(void)
{
    pthread_mutex_lock(&lock);
    wake();
    pthread_mutex_unlock(&lock);
}

void serve_work_stop(void)
{
    pthread_mutex_lock(&lock);
    wake();
    stopped = 1;
    pthread_cond_broadcast(&some);
    pthread_mutex_unlock(&lock);
    while (thread_count)
        pthread_join(threads[--thread_count], NULL);
}
