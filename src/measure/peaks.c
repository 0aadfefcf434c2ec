#include "measure/peaks.h"

#include "base/error.h"
#include "base/memory.h"
#include "gpu/gpu.h"
#include "measure/fma.h"
#include "measure/sampling.h"
#include "measure/stopwatch.h"

/* For each figure: enough for the best of a few hundred samples. */
#define PEAK_SECONDS 0.03
enum { SMALLEST = 16 << 10, SIZES = 40 };
#define LEAST_MOST (UINT64_C(32) << 20)
#define MOST_MOST  (UINT64_C(256) << 20)

struct khub__peaks {
    khub__threads *pool;
    khub_gpu *gpu;        /* NULL: the host */
    khub_gpu_array there; /* as `memory`, on it */
    khub__stopwatch watch;
    uint64_t most;
    char *memory;       /* `most` bytes and a little more: source, then destination; NULL: not needed yet */
    double copy[SIZES]; /* by the power of two; 0: not measured yet */
    double fma;
};

/* The largest caches of GPUs have 50 MB, one has 126. */
static int take_gpu(khub__peaks *peaks, khub_gpu *gpu, khub_error *err)
{
    int64_t bytes = (int64_t)(peaks->most = MOST_MOST);
    const khub_tensor like = khub_tensor_over(NULL, khub_dtype_of(KHUB_DTYPE_UINT, 8), 1, &bytes);
    peaks->gpu = gpu;
    int rc = khub_gpu_array_new(&peaks->there, gpu, &like, err);
    if (rc == KHUB_OK) rc = khub__gpu_clear(gpu, &peaks->there, err);
    return rc == KHUB_OK ? khub__stopwatch_new(&peaks->watch, gpu, err) : rc;
}

int khub__peaks_new(khub__peaks **out, khub__threads *pool, khub_gpu *gpu, uint64_t last_cache,
                    khub_error *err)
{
    khub__peaks *peaks = *out = khub__calloc(1, sizeof(**out));
    if (!peaks) return khub__fail_memory(err, "measuring the machine");
    peaks->pool = pool;
    peaks->most = LEAST_MOST;
    while (peaks->most < MOST_MOST && peaks->most / 2 < last_cache)
        peaks->most *= 2;
    return gpu ? take_gpu(peaks, gpu, err) : KHUB_OK;
}

void khub__peaks_free(khub__peaks *peaks)
{
    if (!peaks) return;
    khub__stopwatch_free(&peaks->watch);
    khub_gpu_array_free(&peaks->there);
    khub__free(peaks->memory);
    khub__free(peaks);
}

uint64_t khub__peaks_most(const khub__peaks *peaks)
{
    return peaks->most;
}

uint64_t khub__peaks_size(const khub__peaks *peaks, double bytes)
{
    uint64_t size = SMALLEST;
    while (size < peaks->most &&
           ((double)size < bytes || size < (uint64_t)SMALLEST * khub__threads_count(peaks->pool)))
        size *= 2;
    return size;
}

/* The same piece of work for every thread, `calls` times. */
struct work {
    khub__peaks *peaks;
    uint64_t calls;
    size_t part; /* bytes that a thread copies */
    float factor, term, sink;
};

static int copy_part(void *user, size_t i, khub_error *err)
{
    struct work *w = user;
    char *from = w->peaks->memory + i * w->part, *to = w->peaks->memory + w->peaks->most / 2 + i * w->part;
    (void)err;
    for (uint64_t k = 0; k < w->calls; k++) {
        memcpy(to, from, w->part);
        to[k % w->part] ^= 1; /* each copy has something to do that the one before hadn't */
    }
    return KHUB_OK;
}

static int multiply(void *user, size_t i, khub_error *err)
{
    struct work *w = user;
    float sum = 0;
    (void)err;
    for (uint64_t k = 0; k < w->calls; k++)
        sum += khub__fma_best()->run(w->factor, w->term + (float)k);
    if (i == 0) w->sink = sum;
    return KHUB_OK;
}

static int run_copy(void *user, uint64_t calls, khub_error *err)
{
    struct work *w = user;
    w->calls = calls;
    return khub__threads_run(w->peaks->pool, khub__threads_count(w->peaks->pool), copy_part, w, err);
}

static int run_multiply(void *user, uint64_t calls, khub_error *err)
{
    struct work *w = user;
    w->calls = calls;
    return khub__threads_run(w->peaks->pool, khub__threads_count(w->peaks->pool), multiply, w, err);
}

/* The first half to the second. */
static int copy_there(void *user, uint64_t calls, khub_error *err)
{
    const struct work *w = user;
    khub__peaks *peaks = w->peaks;
    int64_t bytes = (int64_t)w->part;
    khub_tensor from = peaks->there.tensor, to = from;
    int rc = KHUB_OK;
    from.shape = to.shape = &bytes;
    to.byte_offset = peaks->most / 2;
    for (uint64_t i = 0; i < calls && rc == KHUB_OK; i++)
        rc = khub_gpu_copy(peaks->gpu, &to, peaks->gpu, &from, err);
    return rc;
}

static int time_there(double *seconds, void *user, uint64_t calls, khub_error *err)
{
    const struct work *w = user;
    return khub__stopwatch_run(&w->peaks->watch, seconds, copy_there, user, calls, err);
}

/* Seconds of one call at best; 0: it couldn't be measured. */
static double best_of(int (*run)(void *, uint64_t, khub_error *), struct work *work)
{
    khub__contender contender = {run, work, run == copy_there ? time_there : NULL};
    khub__race_options options = {.seconds = PEAK_SECONDS, .cold = 1};
    khub__race_result result;
    khub_error err = {0};
    return khub__race(&result, &contender, NULL, &options, &err) == KHUB_OK ? result.a.best : 0;
}

static int has_memory(khub__peaks *peaks)
{
    if (peaks->memory || peaks->gpu) return 1;
    peaks->memory = khub__malloc(peaks->most);
    if (peaks->memory) memset(peaks->memory, 1, peaks->most); /* pages of zeros would be one page */
    return peaks->memory != NULL;
}

/* Copies 2^power bytes in all, and keeps the better. */
static void measure_copy(khub__peaks *peaks, int power)
{
    unsigned threads = peaks->gpu ? 1 : khub__threads_count(peaks->pool);
    struct work work = {.peaks = peaks, .part = ((size_t)1 << power) / 2 / threads / 64 * 64};
    double seconds = work.part && has_memory(peaks) ? best_of(peaks->gpu ? copy_there : run_copy, &work) : 0;
    double speed = seconds > 0 ? 2.0 * (double)work.part * threads / seconds : 0;
    if (speed > peaks->copy[power]) peaks->copy[power] = speed;
}

static void measure_fma(khub__peaks *peaks)
{
    struct work work = {.peaks = peaks, .factor = 0.999f, .term = 0.001f};
    if (peaks->gpu) peaks->fma = khub__gpu_flops(peaks->gpu);
    if (peaks->gpu) return;
    double seconds = best_of(run_multiply, &work);
    double speed = seconds > 0 ? khub__fma_best()->flops * khub__threads_count(peaks->pool) / seconds : 0;
    if (speed > peaks->fma) peaks->fma = speed;
}

double khub__peaks_copy(khub__peaks *peaks, double bytes)
{
    uint64_t size = khub__peaks_size(peaks, bytes);
    int power = 0;
    while (size >> power > 1)
        power++;
    if (!(peaks->copy[power] > 0)) measure_copy(peaks, power);
    return peaks->copy[power];
}

double khub__peaks_fma(khub__peaks *peaks)
{
    if (!(peaks->fma > 0)) measure_fma(peaks);
    return peaks->fma;
}

void khub__peaks_again(khub__peaks *peaks)
{
    if (peaks->fma > 0) measure_fma(peaks);
    for (int power = 0; power < SIZES; power++)
        if (peaks->copy[power] > 0) measure_copy(peaks, power);
}

const char *khub__peaks_fma_isa(const khub__peaks *peaks)
{
    return peaks->gpu ? "by its clock" : khub__fma_best()->isa;
}
