/* A GPU under the tests of kernels for CUDA (./dev test --gpu): for one call, what tensors lie on is copied
 * to its memory and back. By the driver's own interface, found at run time. KHUB_GPU=host has memory of this
 * process in the GPU's place, to try this without one. */
#ifndef UNIT_GPU_H
#define UNIT_GPU_H

#include "unit.h"

#include <khub/function.h>

#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>

enum { MOST_PLACES = 16, APART = 256 /* as far as the driver aligns memory */ };

/* Memory that tensors of a call share, and its copy. */
typedef struct gpu_place {
    uintptr_t from, until; /* multiples of APART are as far from `from` here as there */
    uintptr_t copy;        /* where `from` is there */
    uint64_t memory;       /* what was allocated for it */
} gpu_place;

typedef struct gpu_call {
    gpu_place place[MOST_PLACES];
    int count;
} gpu_call;

static inline const char *gpu_asked(void)
{
    const char *gpu = getenv("KHUB_GPU");
    return gpu && *gpu ? gpu : NULL;
}
static inline int gpu_is_host(void)
{
    return strcmp(gpu_asked(), "host") == 0;
}

/* ---- the driver: cuda.h's functions; CUresult is an int, CUdeviceptr an uint64_t, since 4.0 ---- */

static inline void *gpu_symbol(const char *name)
{
    static void *driver;
    if (!driver) driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    ck_assert_msg(driver != NULL, "no CUDA driver: %s", dlerror());
    void *symbol = dlsym(driver, name);
    ck_assert_msg(symbol != NULL, "the CUDA driver has no %s", name);
    return symbol;
}

#define GPU_CALL(name, types, ...)                                                                           \
    do {                                                                                                     \
        int(*gpu_f) types;                                                                                   \
        *(void **)&gpu_f = gpu_symbol(name);                                                                 \
        int gpu_rc = gpu_f(__VA_ARGS__);                                                                     \
        ck_assert_msg(gpu_rc == 0, "%s: CUDA's error %d", name, gpu_rc);                                     \
    } while (0)

/* The first device's primary context, which kernels use, too. Once in a process. */
static inline void gpu_start(void)
{
    static void *context;
    int device;
    if (context) return;
    GPU_CALL("cuInit", (unsigned), 0);
    GPU_CALL("cuDeviceGet", (int *, int), &device, 0);
    GPU_CALL("cuDevicePrimaryCtxRetain", (void **, int), &context, device);
    GPU_CALL("cuCtxSetCurrent", (void *), context);
}

static inline uint64_t gpu_alloc(size_t bytes)
{
    uint64_t memory = 0;
    void *host = NULL;
    if (gpu_is_host()) {
        ck_assert_int_eq(posix_memalign(&host, APART, bytes), 0);
        return (uint64_t)(uintptr_t)host;
    }
    gpu_start();
    GPU_CALL("cuMemAlloc_v2", (uint64_t *, size_t), &memory, bytes);
    return memory;
}
static inline void gpu_free(uint64_t memory)
{
    if (gpu_is_host())
        free((void *)(uintptr_t)memory);
    else
        GPU_CALL("cuMemFree_v2", (uint64_t), memory);
}
static inline void gpu_copy_to(uintptr_t to, uintptr_t from, size_t bytes)
{
    if (gpu_is_host())
        memcpy((void *)to, (const void *)from, bytes);
    else
        GPU_CALL("cuMemcpyHtoD_v2", (uint64_t, const void *, size_t), to, (const void *)from, bytes);
}
/* After all that was launched: an error that a kernel ended with is told here. */
static inline void gpu_copy_from(uintptr_t to, uintptr_t from, size_t bytes)
{
    if (gpu_is_host())
        memcpy((void *)to, (const void *)from, bytes);
    else
        GPU_CALL("cuMemcpyDtoH_v2", (void *, uint64_t, size_t), (void *)to, from, bytes);
}

/* ---- tensors ---- */

/* From the first element's first byte to behind the last one's; 0: it has none, or its shape is nonsense that
 * a kernel refuses. */
static inline int gpu_extent(const khub_tensor *t, uintptr_t *from, uintptr_t *until)
{
    int64_t low = 0, high = 0, step = 1, bytes = (t->dtype.bits + 7) / 8;
    if (!t->data || t->ndim < 0 || t->ndim > 8) return 0;
    for (int32_t i = t->ndim - 1; i >= 0; i--) {
        int64_t stride = t->strides ? t->strides[i] : step, last = (t->shape[i] - 1) * stride;
        if (t->shape[i] <= 0) return 0;
        *(last < 0 ? &low : &high) += last;
        step *= t->shape[i];
    }
    uintptr_t first = (uintptr_t)t->data + t->byte_offset;
    *from = first + (uintptr_t)(low * bytes);
    *until = first + (uintptr_t)((high + 1) * bytes);
    return 1;
}

/* Adds memory to the call's; what overlaps becomes one. */
static inline void gpu_add(gpu_call *call, uintptr_t from, uintptr_t until)
{
    for (int i = 0; i < call->count;) {
        gpu_place *p = &call->place[i];
        if (until <= p->from || p->until <= from) {
            i++;
            continue;
        }
        from = from < p->from ? from : p->from;
        until = until > p->until ? until : p->until;
        *p = call->place[--call->count];
        i = 0;
    }
    ck_assert_int_lt(call->count, MOST_PLACES);
    call->place[call->count++] = (gpu_place){.from = from, .until = until};
}

/* Makes `there` tensors, and what holds them, of the tensors of `args` that are on the CPU. */
static inline void gpu_begin(gpu_call *call, khub_value *moved, khub_tensor *there, const khub_value *args,
                             int32_t n)
{
    uintptr_t from, until;
    call->count = 0;
    for (int32_t i = 0; i < n; i++)
        if (args[i].type == KHUB_TYPE_TENSOR_VIEW && gpu_extent(args[i].as.tensor, &from, &until))
            gpu_add(call, from, until);
    for (int i = 0; i < call->count; i++) {
        gpu_place *p = &call->place[i];
        p->memory = gpu_alloc(p->until - p->from + APART);
        p->copy = p->memory + p->from % APART;
        gpu_copy_to(p->copy, p->from, p->until - p->from);
    }
    for (int32_t i = 0; i < n; i++) {
        moved[i] = args[i];
        if (args[i].type != KHUB_TYPE_TENSOR_VIEW) continue;
        there[i] = *args[i].as.tensor;
        moved[i].as.tensor = &there[i];
        if (!gpu_extent(&there[i], &from, &until)) continue;
        for (int k = 0; k < call->count; k++)
            if (call->place[k].from <= from && until <= call->place[k].until)
                there[i].data =
                    (void *)((uintptr_t)there[i].data - call->place[k].from + call->place[k].copy);
    }
}

static inline void gpu_end(gpu_call *call)
{
    for (int i = 0; i < call->count; i++) {
        const gpu_place *p = &call->place[i];
        gpu_copy_from(p->from, p->copy, p->until - p->from);
        gpu_free(p->memory);
    }
}

#endif
