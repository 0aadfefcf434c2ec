/* Tensors that a function on a device allocates for its results. */
#include "gpu/gpu.h"

#include "base/memory.h"

enum { ALIGNMENT = 64 };

_Thread_local khub_gpu *khub__gpu_calling;

/* A tensor, and where its memory is from. */
typedef struct made {
    khub__managed_tensor managed; /* first: what the reader of the tensor has a pointer to */
    khub_gpu *gpu;                /* NULL: the host's memory */
    void *memory;
    int64_t extents[]; /* shape and strides */
} made;

static void free_made(khub__managed_tensor *managed)
{
    made *m = (void *)managed;
    if (m->gpu) {
        khub__gpu_free(m->gpu, m->memory);
        khub__gpu_drop(m->gpu);
    } else {
        khub__free(m->memory);
    }
    khub__free(m);
}

static made *make(const khub_tensor *like)
{
    size_t n = like->ndim > 0 ? (size_t)like->ndim : 0;
    made *m = khub__calloc(1, sizeof(*m) + 2 * n * sizeof(int64_t));
    if (!m) return NULL;
    if (n) memcpy(m->extents, like->shape, n * sizeof(int64_t));
    int64_t stride = 1;
    for (size_t i = n; i-- > 0; stride *= like->shape[i])
        m->extents[n + i] = stride;
    m->managed.major = 1;
    m->managed.deleter = free_made;
    m->managed.tensor = khub_tensor_over(NULL, like->dtype, like->ndim, m->extents);
    m->managed.tensor.strides = m->extents + n;
    m->managed.tensor.device = like->device;
    return m;
}

static int take_host(made *m, size_t bytes)
{
    m->memory = khub__malloc(bytes + ALIGNMENT - 1);
    if (!m->memory) return -1;
    m->managed.tensor.data = (char *)m->memory + (ALIGNMENT - (uintptr_t)m->memory % ALIGNMENT) % ALIGNMENT;
    return 0;
}

static int take_device(made *m, khub_gpu *gpu, size_t bytes, khub_error *err)
{
    khub_gpu_array array;
    int64_t extent = (int64_t)bytes;
    khub_tensor flat = khub_tensor_over(NULL, khub_dtype_of(KHUB_DTYPE_UINT, 8), 1, &extent);
    int rc = khub_gpu_array_new(&array, gpu, &flat, err);
    if (rc != KHUB_OK) return -1;
    m->memory = m->managed.tensor.data = array.tensor.data;
    m->gpu = gpu;
    khub__gpu_keep(gpu);
    return 0;
}

int khub__gpu_allocate(khub_tensor *prototype, khub__managed_tensor **out, void *user,
                       void (*set_error)(void *user, const char *kind, const char *message))
{
    khub_error err = {0};
    khub_gpu *gpu = khub__gpu_calling;
    khub_device want = prototype->device, here = khub_gpu_device(gpu);
    int64_t bytes = khub_tensor_bytes(prototype);
    made *m = bytes >= 0 ? make(prototype) : NULL;
    const char *wrong = "no memory, or a tensor of no size";
    int rc = -1;
    if (m && want.type == KHUB_DEVICE_CPU)
        rc = bytes ? take_host(m, (size_t)bytes) : 0;
    else if (m && want.type == here.type && want.id == here.id)
        rc = take_device(m, gpu, (size_t)bytes, &err);
    else if (m)
        wrong = "a tensor was asked for on another device than the call's";
    if (rc == 0) {
        *out = &m->managed;
        return 0;
    }
    if (m) free_made(&m->managed);
    set_error(user, "RuntimeError", err.message[0] ? err.message : wrong);
    return -1;
}
