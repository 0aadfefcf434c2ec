#include "measure/stopwatch.h"

int khub__stopwatch_new(khub__stopwatch *out, khub_gpu *gpu, khub_error *err)
{
    memset(out, 0, sizeof(*out));
    int rc = khub_gpu_event_new(&out->start, gpu, err);
    return rc == KHUB_OK ? khub_gpu_event_new(&out->end, gpu, err) : rc;
}

void khub__stopwatch_free(khub__stopwatch *watch)
{
    khub_gpu_event_free(watch->start);
    khub_gpu_event_free(watch->end);
    memset(watch, 0, sizeof(*watch));
}

int khub__stopwatch_run(khub__stopwatch *watch, double *seconds,
                        int (*run)(void *user, uint64_t calls, khub_error *err), void *user, uint64_t calls,
                        khub_error *err)
{
    double ms = 0;
    int rc = khub_gpu_event_record(watch->start, err);
    if (rc == KHUB_OK) rc = run(user, calls, err);
    if (rc == KHUB_OK) rc = khub_gpu_event_record(watch->end, err);
    if (rc == KHUB_OK) rc = khub_gpu_event_elapsed(&ms, watch->start, watch->end, err);
    *seconds = 1e-3 * ms;
    return rc;
}
