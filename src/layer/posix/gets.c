#include "layer/gets.h"

#include "base/error.h"
#include "base/memory.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

enum { MOST_THREADS = 8, TICK_MS = 30 };

/* What one thread said last of how far it is. */
typedef struct told {
    struct job *job;
    pthread_t thread;
    khub_progress at;
    char what[512];
    int is_getting;
} told;

typedef struct job {
    khub__gets *with;
    khub__get *const *list;
    size_t count;
    pthread_mutex_t lock; /* guards what follows, and all `told` */
    pthread_cond_t ended;
    size_t next, running; /* of the list; threads */
    int offline, status;  /* the first KHUB_E_CANCELED or KHUB_E_NOMEM */
    khub_error why;
    told told[MOST_THREADS];
} job;

static int get_one(khub__get *get, const khub__gets *with, const khub_hub_options *hub)
{
    khub_get_options options;
    KHUB_INIT(&options);
    options.platform = with->platform;
    options.backend = get->backend;
    options.hub = hub;
    return khub_get(&get->kernel, get->name, &options, &get->why);
}

int khub__gets_here(khub__gets *with, khub__get *const *list, size_t count, khub_error *err)
{
    for (size_t i = 0; i < count; i++) {
        khub_hub_options hub = with->hub;
        hub.offline |= with->offline;
        int rc = get_one(list[i], with, &hub);
        if (rc == KHUB_E_NETWORK) with->offline = 1;
        if (rc == KHUB_E_CANCELED || rc == KHUB_E_NOMEM)
            return khub__fail(err, rc, "%s", list[i]->why.message);
    }
    return KHUB_OK;
}

/* Called in a thread of ours: the caller's function hears of it in the caller's thread. */
static int on_progress(void *user, const khub_progress *progress)
{
    told *t = user;
    job *j = t->job;
    pthread_mutex_lock(&j->lock);
    t->at = *progress;
    snprintf(t->what, sizeof(t->what), "%s", progress->what ? progress->what : "");
    t->is_getting = 1;
    int stop = j->status != KHUB_OK;
    pthread_mutex_unlock(&j->lock);
    return stop;
}

static khub__get *next_of(job *j, told *t, khub_hub_options *hub)
{
    pthread_mutex_lock(&j->lock);
    khub__get *get = j->status == KHUB_OK && j->next < j->count ? j->list[j->next++] : NULL;
    hub->offline = j->with->hub.offline | j->offline;
    t->is_getting = 0;
    pthread_mutex_unlock(&j->lock);
    return get;
}

static void note(job *j, int rc, const khub_error *why)
{
    pthread_mutex_lock(&j->lock);
    if (rc == KHUB_E_NETWORK) j->offline = 1;
    if ((rc == KHUB_E_CANCELED || rc == KHUB_E_NOMEM) && j->status == KHUB_OK) {
        j->status = rc;
        j->why = *why;
    }
    pthread_mutex_unlock(&j->lock);
}

static void *work(void *user)
{
    told *t = user;
    job *j = t->job;
    khub_hub_options hub = j->with->hub;
    hub.progress = hub.progress ? on_progress : NULL;
    hub.progress_user = t;
    khub__get *get;
    while ((get = next_of(j, t, &hub)) != NULL)
        note(j, get_one(get, j->with, &hub), &get->why);
    pthread_mutex_lock(&j->lock);
    j->running--;
    pthread_cond_signal(&j->ended);
    pthread_mutex_unlock(&j->lock);
    return NULL;
}

/* The sum of what the threads told, under the name of the first that is at it. 0: nobody is. */
static int sum_up(khub_progress *sum, char what[512], const job *j, size_t threads)
{
    int any = 0;
    *sum = (khub_progress){.what = what};
    for (size_t i = 0; i < threads; i++) {
        const told *t = &j->told[i];
        if (t->is_getting && !any) snprintf(what, 512, "%s", t->what);
        any |= t->is_getting;
        sum->bytes_done += t->at.bytes_done, sum->bytes_total += t->at.bytes_total;
        sum->files_done += t->at.files_done, sum->files_total += t->at.files_total;
    }
    return any;
}

/* Called with the lock, which is open while the caller's function runs. */
static void tell(job *j, size_t threads)
{
    khub_progress sum;
    char what[512] = "";
    const khub_hub_options *hub = &j->with->hub;
    if (!hub->progress || j->status != KHUB_OK || !sum_up(&sum, what, j, threads)) return;
    pthread_mutex_unlock(&j->lock);
    int stop = hub->progress(hub->progress_user, &sum);
    pthread_mutex_lock(&j->lock);
    if (!stop || j->status != KHUB_OK) return;
    j->status = KHUB_E_CANCELED;
    khub__fail(&j->why, KHUB_E_CANCELED, "%s: canceled", what);
}

static void wait_for_end(job *j, size_t threads)
{
    struct timespec until;
    pthread_mutex_lock(&j->lock);
    while (j->running) {
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_nsec += TICK_MS * 1000000L;
        if (until.tv_nsec >= 1000000000) until.tv_sec++, until.tv_nsec -= 1000000000;
        pthread_cond_timedwait(&j->ended, &j->lock, &until);
        if (j->running) tell(j, threads);
    }
    pthread_mutex_unlock(&j->lock);
}

/* Signals are the program's: its threads take them. */
static size_t start(job *j)
{
    sigset_t all, before;
    size_t threads = 0;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (threads < MOST_THREADS && threads < j->count) {
        told *t = &j->told[threads];
        t->job = j;
        j->running++; /* nobody else looks before the lock is open */
        if (pthread_create(&t->thread, NULL, work, t) != 0) {
            j->running--;
            break;
        }
        threads++;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return threads;
}

static int run(job *j, khub_error *err)
{
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&j->lock, NULL);
    pthread_cond_init(&j->ended, &monotonic);
    pthread_mutex_lock(&j->lock);
    size_t threads = start(j);
    pthread_mutex_unlock(&j->lock);
    if (threads) wait_for_end(j, threads);
    for (size_t i = 0; i < threads; i++)
        pthread_join(j->told[i].thread, NULL);
    pthread_cond_destroy(&j->ended);
    pthread_mutex_destroy(&j->lock);
    pthread_condattr_destroy(&monotonic);
    j->with->offline |= j->offline;
    if (!threads) return khub__gets_here(j->with, j->list, j->count, err);
    return j->status == KHUB_OK ? KHUB_OK : khub__fail(err, j->status, "%s", j->why.message);
}

int khub__gets_together(khub__gets *with, khub__get *const *list, size_t count, khub_error *err)
{
    if (count < 2) return khub__gets_here(with, list, count, err);
    job *j = khub__calloc(1, sizeof(*j));
    if (!j) return khub__fail_memory(err, "getting kernels");
    j->with = with;
    j->list = list;
    j->count = count;
    int rc = run(j, err);
    khub__free(j);
    return rc;
}
