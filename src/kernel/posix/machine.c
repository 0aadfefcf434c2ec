#include "kernel/machine.h"

#include "platform/platform.h"

#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards both */
static khub_platform *found, *with_torch;

static int look_for_torch(khub_error *err)
{
    khub_platform *own;
    int rc = khub__machine_copy(&own, found, err);
    if (rc == KHUB_OK) rc = khub__platform_find_torch(own, err);
    if (rc == KHUB_OK)
        with_torch = own;
    else
        khub_platform_free(own);
    return rc;
}

int khub__this_machine(const khub_platform **out, int torch, khub_error *err)
{
    pthread_mutex_lock(&lock);
    int rc = found ? KHUB_OK : khub__platform_look(&found, KHUB__WHAT_DECIDES, NULL, err);
    if (rc == KHUB_OK && torch && !with_torch) rc = look_for_torch(err);
    *out = torch ? with_torch : found;
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
