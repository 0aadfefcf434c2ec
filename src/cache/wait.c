#include "cache/wait.h"

#include "base/error.h"
#include "base/log.h"
#include "cache/disk.h"

#include <stdatomic.h>
#include <stdlib.h>

enum { NOTICE_MS = 5000 };

static int64_t limit_ms(void)
{
    const char *text = getenv("KHUB_LOCK_SECONDS");
    char *end;
    double seconds = text ? strtod(text, &end) : 0;
    return text && end != text && !*end && seconds > 0 && seconds < 1e9 ? (int64_t)(seconds * 1000) : 0;
}

int khub__wait_busy(khub__wait *wait, const khub__lock *lock, khub_error *err)
{
    static _Atomic int64_t last_said; /* one notice for many files that the same process is bringing */
    int64_t now = khub__disk_now_ms(), limit = limit_ms();
    if (!wait->since_ms) wait->since_ms = now;
    int64_t waited = now - wait->since_ms;
    int late = limit > 0 && waited >= limit, notice = !wait->said && waited >= NOTICE_MS;
    if (!late && !notice) return KHUB__SINK_BUSY;
    char holder[80];
    if (khub__lock_holder(holder, lock) == khub__disk_own_pid()) return KHUB__SINK_BUSY;
    if (late)
        return khub__fail(err, KHUB_E_IO,
                          "%s: is held by %s for %lld s, and KHUB_LOCK_SECONDS allows no more", lock->path,
                          holder, (long long)(waited / 1000));
    wait->said = 1;
    if (now - atomic_load(&last_said) < NOTICE_MS && atomic_load(&last_said) > 0) return KHUB__SINK_BUSY;
    atomic_store(&last_said, now);
    khub__log(KHUB_LOG_NOTICE, "cache", lock->path, "waiting for %s, which is fetching the same file",
              holder);
    return KHUB__SINK_BUSY;
}
