#include "kernel/machine.h"

#include "platform/platform.h"

#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards `found` */
static khub_platform *found;

int khub__this_machine(const khub_platform **out, khub_error *err)
{
    pthread_mutex_lock(&lock);
    int rc = found ? KHUB_OK : khub__platform_look(&found, KHUB__WHAT_DECIDES, NULL, err);
    *out = found;
    pthread_mutex_unlock(&lock);
    return rc;
}

const khub_platform *khub__known_machine(void)
{
    if (pthread_mutex_trylock(&lock) != 0) return NULL; /* someone is looking */
    const khub_platform *known = found;
    pthread_mutex_unlock(&lock);
    return known;
}
