#include "hub/kept.h"

#include "hub/flight.h"

#include <pthread.h>

enum { KEPT = 4 };

static struct {
    khub__engine *engines[KEPT]; /* newest last */
    size_t count;
    pthread_mutex_t lock; /* guards both */
} kept = {.lock = PTHREAD_MUTEX_INITIALIZER};

static int same(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

static int fits(const khub__engine *engine, const khub__hub_settings *settings)
{
    return khub__engine_is_own(engine) && same(engine->endpoint, settings->endpoint) &&
           same(engine->token, settings->token);
}

/* Takes the i-th out. */
static khub__engine *take(size_t i)
{
    khub__engine *engine = kept.engines[i];
    kept.count--;
    memmove(kept.engines + i, kept.engines + i + 1, (kept.count - i) * sizeof(engine));
    return engine;
}

khub__engine *khub__kept_take(const khub__hub_settings *settings)
{
    khub__engine *found = NULL;
    pthread_mutex_lock(&kept.lock);
    for (size_t i = kept.count; i-- > 0 && !found;)
        if (fits(kept.engines[i], settings)) found = take(i);
    pthread_mutex_unlock(&kept.lock);
    return found;
}

khub__engine *khub__kept_put(khub__engine *engine)
{
    pthread_mutex_lock(&kept.lock);
    khub__engine *oldest = kept.count == KEPT ? take(0) : NULL;
    kept.engines[kept.count++] = engine;
    pthread_mutex_unlock(&kept.lock);
    return oldest;
}
