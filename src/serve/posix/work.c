#include "serve/work.h"

#include <pthread.h>
#include <stddef.h>

enum { THREADS = 4 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of what follows */
static pthread_cond_t some = PTHREAD_COND_INITIALIZER;
static serve_job *first, **last = &first;
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

void serve_work_add(serve_job *job)
{
    pthread_mutex_lock(&lock);
    int late = stopped;
    job->next = NULL;
    if (!late) {
        *last = job;
        last = &job->next;
        pthread_cond_signal(&some);
    }
    pthread_mutex_unlock(&lock);
    if (late) job->run(job);
}

void serve_work_stop(void)
{
    pthread_mutex_lock(&lock);
    stopped = 1;
    pthread_cond_broadcast(&some);
    pthread_mutex_unlock(&lock);
    while (thread_count)
        pthread_join(threads[--thread_count], NULL);
}
