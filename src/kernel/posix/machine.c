#include "kernel/machine.h"

#include <pthread.h>

int khub__this_machine(const khub_platform **out, khub_error *err)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards `found` */
    static khub_platform *found;
    pthread_mutex_lock(&lock);
    int rc = found ? KHUB_OK : khub_platform_detect(&found, NULL, err);
    *out = found;
    pthread_mutex_unlock(&lock);
    return rc;
}
