#include "base/both.h"

#include <pthread.h>
#include <signal.h>
#include <stddef.h>

typedef struct work {
    void (*run)(void *);
    void *user;
} work;

static void *run(void *user)
{
    const work *w = user;
    w->run(w->user);
    return NULL;
}

void khub__both(void (*other)(void *), void *its, void (*mine)(void *), void *own)
{
    work w = {other, its};
    sigset_t all, before;
    pthread_t thread;
    sigfillset(&all);
    int blocked = pthread_sigmask(SIG_SETMASK, &all, &before) == 0;
    int started = pthread_create(&thread, NULL, run, &w) == 0;
    if (blocked) pthread_sigmask(SIG_SETMASK, &before, NULL);
    mine(own);
    if (started)
        pthread_join(thread, NULL);
    else
        other(its);
}
