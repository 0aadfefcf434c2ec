/* A kernel as it should be: several functions, with schema and documentation. See README.md for what each
 * does. */
#include "fake.h"

/* args[i] as a compact float32 tensor on the CPU, or NULL after raising. */
static DLTensor *floats(const TVMFFIAny *args, int32_t n, int32_t i)
{
    static const char *const names[] = {"first", "second"};
    DLTensor *t = i < n && args[i].type_index == kTVMFFIDLTensorPtr ? args[i].v_ptr : NULL;
    if (t && t->dtype.code == kDLFloat && t->dtype.bits == 32 && t->device.device_type == kDLCPU) return t;
    const char *parts[] = {"the ", names[i], " argument must be a float32 tensor on the CPU"};
    TVMFFIErrorSetRaisedFromCStrParts("TypeError", parts, 3);
    return NULL;
}

static int64_t count(const DLTensor *t)
{
    int64_t elements = 1;
    for (int32_t i = 0; i < t->ndim; i++)
        elements *= t->shape[i];
    return elements;
}

static int map(const TVMFFIAny *args, int32_t n, float factor, float more)
{
    DLTensor *out = floats(args, n, 0), *x = out ? floats(args, n, 1) : NULL;
    if (!x) return -1;
    if (count(out) != count(x)) return raise_error("ValueError", "out and x differ in size");
    const float *from = (const float *)((const char *)x->data + x->byte_offset);
    float *to = (float *)((char *)out->data + out->byte_offset);
    for (int64_t i = 0; i < count(x); i++)
        to[i] = from[i] * factor + more;
    return 0;
}

/* add_one(out, x): out = x + 1 */
FAKE(add_one)
{
    UNUSED;
    if (n != 2) return raise_error("TypeError", "add_one takes 2 arguments");
    return map(args, n, 1, 1);
}
FAKE_SCHEMA(
    add_one,
    "{\\\"type\\\":\\\"ffi.Function\\\",\\\"named_args\\\":{\\\"return\\\":[{\\\"type\\\":\\\"None\\\"}],"
    "\\\"params\\\":[{\\\"type\\\":\\\"DLTensor*\\\"},{\\\"type\\\":\\\"DLTensor*\\\"}]}}")
FAKE_DOC(add_one, "Adds one to every element.\n\nout: the result, of x's shape")

/* scale(out, x, factor): out = x * factor */
FAKE(scale)
{
    UNUSED;
    if (n != 3 || (args[2].type_index != kTVMFFIFloat && args[2].type_index != kTVMFFIInt))
        return raise_error("TypeError", "scale takes out, x and a number");
    return map(args, n,
               (float)(args[2].type_index == kTVMFFIInt ? (double)args[2].v_int64 : args[2].v_float64), 0);
}
FAKE_SCHEMA(scale, "{\\\"type\\\":\\\"ffi.Function\\\",\\\"args\\\":[{\\\"type\\\":\\\"None\\\"},{"
                   "\\\"type\\\":\\\"DLTensor*\\\"},"
                   "{\\\"type\\\":\\\"DLTensor*\\\"},{\\\"type\\\":\\\"float\\\"}]}")

/* forty_two() -> 42 */
FAKE(forty_two)
{
    UNUSED;
    return give_int(result, 42);
}

/* half(x) -> x / 2 */
FAKE(half)
{
    UNUSED;
    if (n != 1 || args[0].type_index != kTVMFFIFloat) return raise_error("TypeError", "half takes a float");
    result->type_index = kTVMFFIFloat;
    result->v_float64 = args[0].v_float64 / 2;
    return 0;
}

/* negate(x) -> not x */
FAKE(negate)
{
    UNUSED;
    if (n != 1 || args[0].type_index != kTVMFFIBool) return raise_error("TypeError", "negate takes a bool");
    result->type_index = kTVMFFIBool;
    result->v_int64 = !args[0].v_int64;
    return 0;
}

/* nothing(...) -> None */
FAKE(nothing)
{
    UNUSED;
    return 0;
}

/* short_text() -> "seven b", which fits into the value itself */
FAKE(short_text)
{
    UNUSED;
    return give_text(result, "seven b");
}

/* repeat(text) -> the text twice, an object when it is longer than 7 bytes */
FAKE(repeat)
{
    UNUSED;
    if (n != 1 || args[0].type_index != kTVMFFIRawStr)
        return raise_error("TypeError", "repeat takes a string");
    size_t length = strlen(args[0].v_c_str);
    char *twice = malloc(2 * length + 1);
    if (!twice) return raise_error("MemoryError", "repeat");
    memcpy(twice, args[0].v_c_str, length);
    memcpy(twice + length, args[0].v_c_str, length + 1);
    int rc = give_text(result, twice);
    free(twice);
    return rc;
}

/* first_argument_kind(x) -> the type index of the argument */
FAKE(first_argument_kind)
{
    UNUSED;
    return give_int(result, n > 0 ? args[0].type_index : -1);
}

/* A tensor whose memory this library owns and whose deleter lives in it. */
static int64_t alive;

static void delete_ones(DLManagedTensor *self)
{
    alive--;
    free(self->dl_tensor.data);
    free(self->dl_tensor.shape);
    free(self);
}

/* ones(n) -> a float32 tensor of n ones */
FAKE(ones)
{
    UNUSED;
    if (n != 1 || args[0].type_index != kTVMFFIInt || args[0].v_int64 < 0)
        return raise_error("TypeError", "ones takes a size");
    DLManagedTensor *managed = calloc(1, sizeof(*managed));
    int64_t extent = args[0].v_int64;
    float *data = calloc((size_t)extent + 1, sizeof(float));
    int64_t *shape = malloc(sizeof(*shape));
    for (int64_t i = 0; i < extent; i++)
        data[i] = 1;
    shape[0] = extent;
    managed->dl_tensor = (DLTensor){data, {kDLCPU, 0}, 1, {kDLFloat, 32, 1}, shape, NULL, 0};
    managed->deleter = delete_ones;
    TVMFFIObjectHandle tensor;
    if (TVMFFITensorFromDLPack(managed, 0, 0, &tensor) != 0) return -1;
    alive++;
    result->type_index = kTVMFFITensor;
    result->v_obj = tensor;
    return 0;
}

/* ones_alive() -> how many results of ones() nobody has released */
FAKE(ones_alive)
{
    UNUSED;
    return give_int(result, alive);
}

/* fail(kind, message): raises that */
FAKE(fail)
{
    UNUSED;
    if (n != 2) return raise_error("TypeError", "fail takes a kind and a message");
    return raise_error(args[0].v_c_str, args[1].v_c_str);
}

/* fail_silently(): fails without an error */
FAKE(fail_silently)
{
    UNUSED;
    return -1;
}

/* succeed_after_error() -> 1, and leaves an error raised that nobody wants */
FAKE(succeed_after_error)
{
    UNUSED;
    raise_error("ValueError", "a stale error");
    return give_int(result, 1);
}

/* fail_with_result(): fails, and leaves a tensor of ones in the result all the same */
FAKE(fail_with_result)
{
    UNUSED;
    TVMFFIAny size = {kTVMFFIInt, {0}, {3}};
    if (__tvm_ffi_ones(NULL, &size, 1, result) != 0) return -1;
    return raise_error("RuntimeError", "failed, with a result");
}

/* stream(device_type, device_id) -> the stream of the environment, as an int */
FAKE(stream)
{
    UNUSED;
    if (n != 2) return raise_error("TypeError", "stream takes a device type and an id");
    return give_int(
        result, (int64_t)(uintptr_t)TVMFFIEnvGetStream((int32_t)args[0].v_int64, (int32_t)args[1].v_int64));
}
