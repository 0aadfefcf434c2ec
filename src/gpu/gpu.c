/* Work on a device, and what its driver's codes mean. */
#include "gpu/gpu.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"

#include <stdio.h>

int khub__gpu_enter(khub_gpu *gpu, void **before, khub_error *err)
{
    *before = NULL;
    if (gpu->lost[0]) return khub__fail(err, KHUB_E_KERNEL, "%s", gpu->lost);
    int code = gpu->driver->enter(gpu->context, before);
    return code ? khub__gpu_fail(gpu, code, "making it the current one", err) : KHUB_OK;
}

void khub__gpu_leave(khub_gpu *gpu, void *before)
{
    if (before != gpu->context) gpu->driver->leave(before);
}

/* Whether a code speaks of the call that returned it, and not of what was on the device before. */
static int is_own(int code)
{
    static const int own[] = {GPU_INVALID_VALUE,  GPU_OUT_OF_MEMORY,   GPU_NO_DEVICE,
                              GPU_INVALID_DEVICE, GPU_INVALID_CONTEXT, GPU_INVALID_HANDLE};
    for (size_t i = 0; i < sizeof(own) / sizeof(*own); i++)
        if (own[i] == code) return 1;
    return 0;
}

/* The first call whose work isn't known to be done; NULL: there is none. */
static const khub__gpu_pending *first_undone(const khub_gpu *gpu)
{
    if (!gpu->board) return NULL;
    unsigned done = *(const volatile unsigned *)gpu->board;
    for (int i = 0; i < gpu->pending_count; i++)
        if ((int)(gpu->pending[i].number - done) > 0) return &gpu->pending[i];
    return NULL;
}

/* "CUDA_ERROR_ILLEGAL_ADDRESS (700): an illegal memory access was encountered" */
static void put_words(char text[400], const khub_gpu *gpu, int code)
{
    const char *name = gpu->driver->code_name(code), *words = gpu->driver->code_words(code);
    snprintf(text, 400, "%.99s (%d): %.250s", name ? name : "an unknown error", code,
             words ? words : "the driver has no words for it");
}

int khub__gpu_fail(khub_gpu *gpu, int code, const char *doing, khub_error *err)
{
    char words[400];
    put_words(words, gpu, code);
    const khub__gpu_pending *call = is_own(code) ? NULL : first_undone(gpu);
    if (!call)
        return khub__fail(err, code == GPU_OUT_OF_MEMORY ? KHUB_E_NOMEM : KHUB_E_KERNEL, "%s: %s: %s",
                          gpu->name, doing, words);
    snprintf(gpu->lost, sizeof(gpu->lost),
             "%s: failed on %s after the call had returned: %s; this process can't use the device any more",
             call->what, gpu->name, words);
    return khub__fail(err, KHUB_E_KERNEL, "%s", gpu->lost);
}

/* Puts what `use` does between entering and leaving; the driver's code, or a failure to enter. */
#define ON_DEVICE(gpu, doing, err, use)                                                                      \
    do {                                                                                                     \
        void *before_;                                                                                       \
        int rc_ = khub__gpu_enter((gpu), &before_, (err));                                                   \
        if (rc_ != KHUB_OK) return rc_;                                                                      \
        int code_ = (use);                                                                                   \
        khub__gpu_leave((gpu), before_);                                                                     \
        return code_ ? khub__gpu_fail((gpu), code_, (doing), (err)) : KHUB_OK;                               \
    } while (0)

/* What khub__gpu_clear goes over. */
static size_t whole_words(int64_t bytes)
{
    return ((size_t)bytes + 3) / 4 * 4;
}

static int allocate(khub_gpu *gpu, void **out, size_t bytes, khub_error *err)
{
    char doing[64];
    snprintf(doing, sizeof(doing), "allocating %zu bytes", bytes);
    ON_DEVICE(gpu, doing, err, gpu->driver->calls->alloc(out, bytes));
}

int khub_gpu_array_new(khub_gpu_array *out, khub_gpu *gpu, const khub_tensor *like, khub_error *err)
{
    int rc = khub__given("khub_gpu_array_new", out && gpu && like, err);
    if (rc != KHUB_OK) return rc;
    memset(out, 0, sizeof(*out));
    int64_t bytes = khub_tensor_bytes(like);
    if (bytes < 0 || like->ndim > KHUB_MAX_NDIM)
        return khub__fail(err, KHUB_E_INVAL, "%s: a tensor of no size, or of more than %d dimensions",
                          gpu->name, KHUB_MAX_NDIM);
    void *data = NULL;
    rc = bytes ? allocate(gpu, &data, whole_words(bytes), err) : KHUB_OK;
    if (rc != KHUB_OK) return rc;
    if (like->ndim > 0) memcpy(out->shape, like->shape, (size_t)like->ndim * sizeof(*out->shape));
    out->tensor = khub_tensor_over(data, like->dtype, like->ndim, out->shape);
    out->tensor.device = khub_gpu_device(gpu);
    out->gpu = gpu;
    return KHUB_OK;
}

void khub__gpu_free(khub_gpu *gpu, void *memory)
{
    void *before;
    if (!memory || gpu->driver->enter(gpu->context, &before)) return;
    gpu->driver->calls->free(memory);
    khub__gpu_leave(gpu, before);
}

void khub_gpu_array_free(khub_gpu_array *array)
{
    if (!array) return;
    if (array->gpu) khub__gpu_free(array->gpu, array->tensor.data);
    memset(array, 0, sizeof(*array));
}

static char *first_byte(const khub_tensor *t)
{
    return (char *)t->data + t->byte_offset;
}

/* The bytes that both have; below 0: they can't be copied, and that is said. */
static int64_t bytes_of(khub_gpu *gpu, const char *function, const khub_tensor *to, const khub_tensor *from,
                        khub_error *err)
{
    int64_t bytes = gpu && to && from ? khub_tensor_bytes(from) : -1;
    if (bytes >= 0 && khub_tensor_bytes(to) == bytes && khub_tensor_is_compact(to) &&
        khub_tensor_is_compact(from))
        return bytes;
    khub__fail(err, KHUB_E_INVAL, "%s: two compact tensors of one size are copied, no others", function);
    return -1;
}

int khub_gpu_put(khub_gpu *gpu, const khub_tensor *to, const khub_tensor *from, khub_error *err)
{
    int64_t n = bytes_of(gpu, "khub_gpu_put", to, from, err);
    if (n <= 0) return n < 0 ? KHUB_E_INVAL : KHUB_OK;
    ON_DEVICE(gpu, "copying to it", err,
              gpu->driver->calls->put(first_byte(to), first_byte(from), (size_t)n, gpu->stream));
}

int khub__gpu_clear(khub_gpu *gpu, const khub_gpu_array *array, khub_error *err)
{
    size_t words = whole_words(khub_tensor_bytes(&array->tensor)) / 4;
    if (!words) return KHUB_OK;
    ON_DEVICE(gpu, "clearing its memory", err,
              gpu->driver->calls->set(array->tensor.data, 0, words, gpu->stream));
}

int khub_gpu_take(khub_gpu *gpu, const khub_tensor *to, const khub_tensor *from, khub_error *err)
{
    int64_t n = bytes_of(gpu, "khub_gpu_take", to, from, err);
    if (n <= 0) return n < 0 ? KHUB_E_INVAL : KHUB_OK;
    ON_DEVICE(gpu, "copying from it", err,
              gpu->driver->calls->take(first_byte(to), first_byte(from), (size_t)n, gpu->stream));
}

/* On the stream of `gpu`, within it or from another device's memory. */
static int copy(khub_gpu *gpu, void *to, const khub_gpu *from_gpu, void *from, size_t bytes, khub_error *err)
{
    const khub__gpu_driver *driver = gpu->driver;
    ON_DEVICE(gpu, from_gpu == gpu ? "copying within it" : "copying from another device to it", err,
              from_gpu == gpu
                  ? driver->calls->copy(to, from, bytes, gpu->stream)
                  : driver->copy_over(to, gpu->context, from, from_gpu->context, bytes, gpu->stream));
}

int khub_gpu_copy(khub_gpu *gpu, const khub_tensor *to, khub_gpu *from_gpu, const khub_tensor *from,
                  khub_error *err)
{
    int64_t n = bytes_of(gpu, "khub_gpu_copy", to, from, err);
    int rc = n < 0 ? KHUB_E_INVAL : khub__given("khub_gpu_copy", from_gpu != NULL, err);
    if (rc != KHUB_OK) return rc;
    if (gpu->driver != from_gpu->driver)
        return khub__fail(err, KHUB_E_INVAL, "khub_gpu_copy: from %s to %s, which have other drivers",
                          from_gpu->name, gpu->name);
    if (from_gpu != gpu) rc = khub_gpu_synchronize(from_gpu, err);
    if (rc == KHUB_OK && n) rc = copy(gpu, first_byte(to), from_gpu, first_byte(from), (size_t)n, err);
    return rc == KHUB_OK && from_gpu != gpu ? khub_gpu_synchronize(gpu, err) : rc;
}

double khub__gpu_flops(const khub_gpu *gpu)
{
    return gpu->driver->flops(gpu->index);
}

int khub_gpu_synchronize(khub_gpu *gpu, khub_error *err)
{
    void *before;
    int rc = khub__given("khub_gpu_synchronize", gpu != NULL, err);
    if (rc == KHUB_OK) rc = khub__gpu_enter(gpu, &before, err);
    if (rc != KHUB_OK) return rc;
    int code = gpu->driver->calls->synchronize(gpu->stream);
    khub__gpu_leave(gpu, before);
    if (code) return khub__gpu_fail(gpu, code, "waiting for it", err);
    gpu->pending_count = 0;
    return KHUB_OK;
}

int khub_gpu_use_stream(khub_gpu *gpu, void *stream, khub_error *err)
{
    int rc = khub__given("khub_gpu_use_stream", gpu != NULL, err);
    if (rc == KHUB_OK) rc = khub_gpu_synchronize(gpu, err);
    if (rc == KHUB_OK) gpu->stream = stream ? stream : gpu->own_stream;
    return rc;
}

/* What another function follows is done once the board has its number. */
static int write_board(khub_gpu *gpu, khub_error *err)
{
    ON_DEVICE(gpu, "calling a function", err,
              gpu->driver->calls->set(gpu->board_address, gpu->last, 1, gpu->stream));
}

int khub__gpu_note(khub_gpu *gpu, const char *what, khub_error *err)
{
    khub__gpu_pending *last = gpu->pending_count ? &gpu->pending[gpu->pending_count - 1] : NULL;
    if (last && !strncmp(last->what, what, sizeof(last->what) - 1)) return KHUB_OK;
    int rc = last ? write_board(gpu, err) : KHUB_OK;
    if (rc == KHUB_OK && gpu->pending_count == GPU_PENDING) rc = khub_gpu_synchronize(gpu, err);
    if (rc != KHUB_OK) return rc;
    khub__gpu_pending *next = &gpu->pending[gpu->pending_count++];
    next->number = ++gpu->last;
    khub__copy(next->what, sizeof(next->what), what);
    return KHUB_OK;
}

int khub_gpu_call(khub_gpu *gpu, const char *what, const khub_function *f, const khub_value *args, int32_t n,
                  khub_value *result, khub_error *err)
{
    void *before;
    khub__tensor_allocator allocator = NULL;
    if (result) *result = khub_arg_none();
    int rc = khub__given("khub_gpu_call", gpu && what && f, err);
    if (rc == KHUB_OK) rc = khub__gpu_note(gpu, what, err);
    if (rc == KHUB_OK) rc = khub__gpu_enter(gpu, &before, err);
    if (rc != KHUB_OK) return rc;
    const khub__value_runtime *runtime = khub__value_runtime_in_use();
    khub_gpu *outer = khub__gpu_calling;
    int allocates =
        runtime && runtime->set_allocator && runtime->set_allocator(khub__gpu_allocate, 0, &allocator) == 0;
    khub__gpu_calling = gpu;
    rc = khub_function_call_on(f, khub_gpu_device(gpu), gpu->stream, args, n, result, err);
    khub__gpu_calling = outer;
    if (allocates) runtime->set_allocator(allocator, 0, NULL);
    khub__gpu_leave(gpu, before);
    return rc;
}

struct khub_gpu_event {
    khub_gpu *gpu;
    void *event;
};

static int make_event(khub_gpu_event *event, khub_error *err)
{
    ON_DEVICE(event->gpu, "making an event", err,
              event->gpu->driver->calls->event_new(&event->event, GPU_EVENT_DEFAULT));
}

int khub_gpu_event_new(khub_gpu_event **out, khub_gpu *gpu, khub_error *err)
{
    int rc = khub__given("khub_gpu_event_new", out && gpu, err);
    if (rc != KHUB_OK) return rc;
    *out = khub__calloc(1, sizeof(**out));
    if (!*out) return khub__fail_memory(err, "making an event");
    (*out)->gpu = gpu;
    rc = make_event(*out, err);
    if (rc == KHUB_OK) return KHUB_OK;
    khub__free(*out);
    *out = NULL;
    return rc;
}

void khub_gpu_event_free(khub_gpu_event *event)
{
    void *before;
    if (!event) return;
    if (event->gpu->driver->enter(event->gpu->context, &before) == 0) {
        event->gpu->driver->calls->event_free(event->event);
        khub__gpu_leave(event->gpu, before);
    }
    khub__free(event);
}

int khub_gpu_event_record(khub_gpu_event *event, khub_error *err)
{
    ON_DEVICE(event->gpu, "recording an event", err,
              event->gpu->driver->calls->event_record(event->event, event->gpu->stream));
}

static int wait_and_measure(float *ms, const khub_gpu_event *start, const khub_gpu_event *end)
{
    const khub__gpu_calls *calls = end->gpu->driver->calls;
    int code = calls->event_wait(end->event);
    return code ? code : calls->event_elapsed(ms, start->event, end->event);
}

static int measure(float *ms, khub_gpu_event *start, khub_gpu_event *end, khub_error *err)
{
    ON_DEVICE(end->gpu, "measuring time", err, wait_and_measure(ms, start, end));
}

int khub_gpu_event_elapsed(double *ms, khub_gpu_event *start, khub_gpu_event *end, khub_error *err)
{
    float value = 0;
    int rc = khub__given("khub_gpu_event_elapsed", ms && start && end && start->gpu == end->gpu, err);
    if (rc == KHUB_OK) rc = measure(&value, start, end, err);
    if (ms) *ms = rc == KHUB_OK ? (double)value : 0;
    return rc;
}
