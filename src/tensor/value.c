/* Values that functions take and give back, and the errors they leave. */
#include "tensor/value.h"

#include "base/error.h"
#include "tensor/object.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>

static _Atomic(const khub__value_runtime *) current_runtime;

/* What khub_raise said on this thread and nobody took yet. */
static _Thread_local struct {
    int set;
    char kind[64];
    char message[1000];
} raised;

void khub__value_set_runtime(const khub__value_runtime *runtime)
{
    atomic_store(&current_runtime, runtime);
}

const khub__value_runtime *khub__value_runtime_in_use(void)
{
    return atomic_load(&current_runtime);
}

static const void *cell_of(const khub_value *value)
{
    return (const char *)value->as.ptr + sizeof(khub__object);
}

const khub_tensor *khub_value_tensor(const khub_value *value)
{
    if (!value || !value->as.ptr) return NULL;
    if (value->type == KHUB_TYPE_TENSOR_VIEW) return value->as.tensor;
    return value->type == KHUB_TYPE_TENSOR ? cell_of(value) : NULL;
}

static const char *text_of(const khub_value *value, size_t *length)
{
    switch (value->type) {
    case KHUB_TYPE_SMALL_STR:
        *length = value->small_len;
        return *length < 8 ? value->as.bytes : NULL;
    case KHUB_TYPE_CSTRING:
        *length = value->as.str ? strlen(value->as.str) : 0;
        return value->as.str;
    case KHUB_TYPE_STR:
        break;
    default:
        return NULL;
    }
    if (!value->as.ptr) return NULL;
    const khub__byte_cell *text = cell_of(value);
    *length = text->size;
    return text->data;
}

const char *khub_value_text(const khub_value *value, size_t *length)
{
    size_t n = 0;
    const char *text = value ? text_of(value, &n) : NULL;
    if (length) *length = text ? n : 0;
    return text;
}

void khub_value_release(khub_value *value)
{
    if (!value) return;
    const khub__value_runtime *runtime = khub__value_runtime_in_use();
    if (value->type >= KHUB_TYPE_OBJECT && value->as.ptr) {
        if (runtime)
            runtime->release(value->as.ptr);
        else
            khub__object_release(value->as.ptr); /* one that we made: nobody else could have */
    }
    *value = khub_arg_none();
}

/* The error that tvm-ffi holds for this thread, now the caller's; NULL: none. */
static void *take_object(const khub__value_runtime *runtime)
{
    void *error = NULL;
    if (runtime) runtime->take_error(&error);
    return error;
}

int khub_raise(const char *kind, const char *format, ...)
{
    /* An older error of a kernel must not be taken for this one: what libtvm_ffi holds after this is newer.
     */
    const khub__value_runtime *runtime = khub__value_runtime_in_use();
    void *older = take_object(runtime);
    if (older) runtime->release(older);
    va_list args;
    va_start(args, format);
    vsnprintf(raised.message, sizeof(raised.message), format, args);
    va_end(args);
    snprintf(raised.kind, sizeof(raised.kind), "%s", kind ? kind : "");
    raised.set = 1;
    return -1;
}

static int piece(const khub__byte_cell *text, int max)
{
    return !text->data ? 0 : text->size < (size_t)max ? (int)text->size : max;
}

/* Words of an error object, which may come from a library built against another 0.1.x header. */
static int fail_with_object(khub_error *err, const khub__object *error)
{
    const khub__error_cell *cell = (const void *)(error + 1);
    int kind = piece(&cell->kind, 64), message = piece(&cell->message, (int)sizeof(err->message));
    if (error->type != KHUB_TYPE_ERROR || kind + message == 0)
        return khub__fail(err, KHUB_E_KERNEL, "the function failed without a message");
    return khub__fail(err, KHUB_E_KERNEL, "%.*s%s%.*s", kind, kind ? cell->kind.data : "",
                      kind && message ? ": " : "", message, message ? cell->message.data : "");
}

static int take_error(khub_error *err)
{
    const khub__value_runtime *runtime = khub__value_runtime_in_use();
    void *object = take_object(runtime);
    if (object) {
        fail_with_object(err, object);
        runtime->release(object);
    } else if (raised.set) {
        khub__fail(err, KHUB_E_KERNEL, "%s%s%s", raised.kind, raised.kind[0] ? ": " : "", raised.message);
    } else {
        khub__fail(err, KHUB_E_KERNEL, "the function failed without a message");
    }
    raised.set = 0;
    return KHUB_E_KERNEL;
}

int khub__function_settle(int rc, khub_value *result, int keep, khub_error *err)
{
    if (rc != 0 || !keep) khub_value_release(result);
    return rc == 0 ? KHUB_OK : take_error(err);
}

int khub_function_call_on(const khub_function *f, khub_device device, void *stream, const khub_value *args,
                          int32_t n, khub_value *result, khub_error *err)
{
    const khub__value_runtime *runtime = khub__value_runtime_in_use();
    void *before;
    if (result) *result = khub_arg_none();
    if (!runtime || !runtime->set_stream)
        return khub__fail(err, KHUB_E_UNSUPPORTED, "%s",
                          runtime ? "libtvm_ffi: has no TVMFFIEnvSetStream"
                                  : "setting a stream: no kernel was loaded that could ask for it");
    if (runtime->set_stream(device.type, device.id, stream, &before) != 0) return take_error(err);
    int rc = khub_function_call(f, args, n, result, err);
    int back = runtime->set_stream(device.type, device.id, before, NULL);
    if (back == 0 || rc != KHUB_OK) return rc;
    khub_value_release(result);
    return take_error(err);
}
