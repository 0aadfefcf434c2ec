#include "torch/torch.h"

#include "base/error.h"
#include "base/text.h"
#include "torch/library.h"
#include "torch/shim.h"

#include <stdatomic.h>
#include <threads.h>

static mtx_t lock; /* guards opening; libtorch's constructors don't call us */
static once_flag once = ONCE_FLAG_INIT;
static atomic_int is_open[2]; /* for the CPU, for CUDA */
static atomic_int is_shared;
static atomic_int wanted_threads;
static char opened[4096]; /* path of the one that is open; written before is_open is */

static void make_lock(void)
{
    mtx_init(&lock, mtx_plain);
}

static int open_locked(const khub_library_info *from, int for_cuda, khub_error *err)
{
    void *library;
    if (!from || from->presence != KHUB_FOUND || !from->path)
        return khub__fail(err, KHUB_E_LOAD, "libtorch: %s",
                          from && from->reason ? from->reason : "none is in reach");
    int was_there, rc = khub__torch_library_open(&library, &was_there, from, for_cuda, err);
    if (rc == KHUB_OK && !is_open[0]) rc = khub__torch_bind(library, from->version, err);
    if (rc != KHUB_OK) return rc;
    int threads = is_open[0] ? 0 : atomic_load(&wanted_threads);
    if (threads > 0) khub__shim.set_num_threads(threads);
    if (!is_open[0]) khub__copy(opened, sizeof(opened), from->path);
    if (!is_open[0]) atomic_store(&is_shared, was_there);
    atomic_store(&is_open[0], 1);
    if (for_cuda) atomic_store(&is_open[1], 1);
    return KHUB_OK;
}

static int is_this_open(const khub_library_info *from, int for_cuda)
{
    return khub__torch_is_open(for_cuda) && from && from->path && strcmp(from->path, opened) == 0;
}

int khub__torch_open(const khub_library_info *from, int for_cuda, khub_error *err)
{
    if (is_this_open(from, for_cuda)) return KHUB_OK;
    call_once(&once, make_lock);
    mtx_lock(&lock);
    int rc = is_this_open(from, for_cuda) ? KHUB_OK : open_locked(from, for_cuda, err);
    mtx_unlock(&lock);
    return rc;
}

int khub__torch_is_open(int for_cuda)
{
    return atomic_load(&is_open[for_cuda != 0]);
}

int khub__torch_is_shared(void)
{
    return atomic_load_explicit(&is_shared, memory_order_relaxed);
}

void khub__torch_set_threads(int threads)
{
    atomic_store(&wanted_threads, threads);
    if (threads > 0 && khub__torch_is_open(0)) khub__shim.set_num_threads(threads);
}
