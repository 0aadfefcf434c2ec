/* Waiting for a lock: when to say so, and when to give up. */
#ifndef CACHE_WAIT_H
#define CACHE_WAIT_H

#include "cache/lock.h"

typedef struct khub__wait {
    int64_t since_ms; /* 0: nobody was in the way yet */
    int said;
} khub__wait;

/* Another holds the lock: KHUB__SINK_BUSY; after KHUB_LOCK_SECONDS KHUB_E_IO that names lock and holder. A
 * notice after 5 s. Waiting for ourselves (another file with this content, another thread) is neither said
 * nor limited. */
int khub__wait_busy(khub__wait *wait, const khub__lock *lock, khub_error *err);

#endif
