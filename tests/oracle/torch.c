/* Calls functions of kernels: reads {"kernel", "function", "arguments"} from each line of stdin and writes a
 * line with what came back, or with the error, and what the tensors among the arguments hold after it. With
 * "repeat" the call is made that often, and the line says by how many bytes the heap grew. For tests that
 * compare with PyTorch; torch_peer.py reads and writes the same. */
#include <khub/khub.h>

#include <jansson.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>

/* A tensor from {"dtype", "data" (hex), "shape", "strides", "offset"}, of which the last two may be left out.
 */
typedef struct tensor {
    khub_tensor it;
    int64_t extents[2 * KHUB_MAX_NDIM];
    uint8_t memory[4096];
    size_t bytes;
} tensor;

/* What the arguments of one call borrow, until the next. */
static tensor tensors[32];
static size_t tensor_count;
static khub_value arrays[32];
static size_t array_count;

static void die(const char *why)
{
    fprintf(stderr, "torch.c: %s\n", why);
    exit(2);
}

static void must(int rc, const khub_error *err)
{
    if (rc != KHUB_OK) die(err->message);
}

static size_t read_extents(int64_t *out, const json_t *list)
{
    if (json_array_size(list) > KHUB_MAX_NDIM) die("too many dimensions");
    for (size_t i = 0; i < json_array_size(list); i++)
        out[i] = json_integer_value(json_array_get(list, i));
    return json_array_size(list);
}

static unsigned digit(char c)
{
    return (unsigned)(c <= '9' ? c - '0' : c - 'a' + 10);
}

static khub_value read_tensor(const json_t *from)
{
    if (tensor_count == sizeof(tensors) / sizeof(*tensors)) die("too many tensors");
    tensor *t = &tensors[tensor_count++];
    const char *hex = json_string_value(json_object_get(from, "data"));
    const json_t *strides = json_object_get(from, "strides");
    khub_error err = {0};
    khub_dtype dtype;
    t->bytes = strlen(hex) / 2;
    if (t->bytes > sizeof(t->memory)) die("too large a tensor");
    for (size_t i = 0; i < t->bytes; i++)
        t->memory[i] = (uint8_t)(digit(hex[2 * i]) << 4 | digit(hex[2 * i + 1]));
    must(khub_dtype_parse(&dtype, json_string_value(json_object_get(from, "dtype")), &err), &err);
    size_t ndim = read_extents(t->extents, json_object_get(from, "shape"));
    t->it = khub_tensor_over(t->memory, dtype, (int32_t)ndim, t->extents);
    if (strides) {
        read_extents(t->extents + KHUB_MAX_NDIM, strides);
        t->it.strides = t->extents + KHUB_MAX_NDIM;
    }
    t->it.byte_offset = (uint64_t)json_integer_value(json_object_get(from, "offset")) * dtype.bits / 8;
    t->it.device.type = json_object_get(from, "elsewhere") ? KHUB_DEVICE_CUDA : KHUB_DEVICE_CPU;
    return khub_arg_tensor(&t->it);
}

static khub_value read_value(const json_t *from);

static khub_value read_list(const json_t *from)
{
    khub_value items[32];
    khub_error err = {0};
    size_t count = json_array_size(from);
    if (count > sizeof(items) / sizeof(*items) || array_count == sizeof(arrays) / sizeof(*arrays))
        die("too long a list");
    for (size_t i = 0; i < count; i++)
        items[i] = read_value(json_array_get(from, i));
    must(khub_value_array(&arrays[array_count], items, count, &err), &err);
    return arrays[array_count++];
}

static khub_value read_value(const json_t *from)
{
    if (json_object_get(from, "data")) return read_tensor(from);
    if (json_is_array(from)) return read_list(from);
    if (json_is_integer(from)) return khub_arg_int(json_integer_value(from));
    if (json_is_real(from)) return khub_arg_float(json_real_value(from));
    if (json_is_boolean(from)) return khub_arg_bool(json_is_true(from));
    if (json_is_string(from)) return khub_arg_string(json_string_value(from));
    const char *dtype = json_string_value(json_object_get(from, "dtype"));
    const char *name = json_string_value(json_object_get(from, "name")); /* of a device, a layout, … */
    khub_error err = {0};
    khub_value value = khub_arg_none();
    if (name) return khub_arg_string(name);
    if (dtype) {
        value.type = KHUB_TYPE_DTYPE;
        must(khub_dtype_parse(&value.as.dtype, dtype, &err), &err);
    }
    return value;
}

static json_t *hex_of(const void *bytes, size_t count)
{
    static char text[2 * 4096 + 1];
    if (2 * count >= sizeof(text)) die("too large a result");
    for (size_t i = 0; i < count; i++)
        snprintf(text + 2 * i, 3, "%02x", ((const uint8_t *)bytes)[i]);
    text[2 * count] = 0;
    return json_string(text);
}

static json_t *write_extents(const int64_t *from, int32_t ndim)
{
    json_t *out = json_array();
    for (int32_t i = 0; i < ndim; i++)
        json_array_append_new(out, json_integer(from[i]));
    return out;
}

/* Elements in row-major order. */
static size_t gather(uint8_t *to, const khub_tensor *t, int32_t axis, int64_t at)
{
    size_t size = t->dtype.bits / 8u, done = 0;
    if (axis == t->ndim) {
        memcpy(to, (const char *)t->data + t->byte_offset + at * (int64_t)size, size);
        return size;
    }
    for (int64_t i = 0; i < t->shape[axis]; i++)
        done += gather(to + done, t, axis + 1, at + i * (t->strides ? t->strides[axis] : 0));
    return done;
}

static json_t *write_tensor(const khub_tensor *t)
{
    static uint8_t elements[4096];
    char name[32];
    if (khub_tensor_bytes(t) < 0 || khub_tensor_bytes(t) > (int64_t)sizeof(elements) ||
        (t->ndim && !t->strides))
        die("a result that isn't expected");
    return json_pack("{s:s, s:o, s:o, s:o}", "dtype", khub_dtype_name(t->dtype, name), "shape",
                     write_extents(t->shape, t->ndim), "strides", write_extents(t->strides, t->ndim), "data",
                     hex_of(elements, gather(elements, t, 0, 0)));
}

static json_t *write_value(const khub_value *value)
{
    size_t count;
    const char *text = khub_value_text(value, &count);
    const khub_value *items = text ? NULL : khub_value_items(value, &count);
    const khub_tensor *t = khub_value_tensor(value);
    char name[32];
    if (t) return write_tensor(t);
    if (text) return json_stringn(text, count);
    if (value->type == KHUB_TYPE_INT) return json_integer(value->as.i64);
    if (value->type == KHUB_TYPE_BOOL) return json_boolean(value->as.i64);
    if (value->type == KHUB_TYPE_FLOAT) return json_real(value->as.f64);
    if (value->type == KHUB_TYPE_DTYPE)
        return json_pack("{s:s}", "dtype", khub_dtype_name(value->as.dtype, name));
    if (value->type == KHUB_TYPE_DEVICE)
        return json_pack("{s:[i,i]}", "device", value->as.device.type, value->as.device.id);
    if (value->type == KHUB_TYPE_NONE) return json_null();
    if (value->type != KHUB_TYPE_ARRAY) die("a result of an unexpected type");
    json_t *out = json_array();
    for (size_t i = 0; i < count; i++)
        json_array_append_new(out, write_value(&items[i]));
    return out;
}

static int get(khub_function *f, const char *repository, const char *function, khub_error *err)
{
    static struct {
        char name[1000];
        khub_kernel *kernel;
    } known[32];
    size_t i = 0;
    while (known[i].kernel && strcmp(known[i].name, repository) != 0)
        i++;
    if (i == sizeof(known) / sizeof(*known) - 1) die("too many kernels");
    khub_get_options options;
    KHUB_INIT(&options);
    options.rehearse = 1;
    int rc = known[i].kernel ? KHUB_OK : khub_get(&known[i].kernel, repository, &options, err);
    if (rc != KHUB_OK) return rc;
    snprintf(known[i].name, sizeof(known[i].name), "%s", repository);
    return khub_kernel_function(f, known[i].kernel, function, err);
}

static int64_t held(void)
{
    struct mallinfo2 now = mallinfo2();
    return (int64_t)(now.uordblks + now.hblkhd);
}

/* By how many bytes the heap grew while the same call was made that often, whatever comes of it. */
static json_t *repeat(const khub_function *f, const khub_value *arguments, size_t count, int64_t times)
{
    int64_t before = 0;
    for (int64_t i = -times / 4; i < times; i++) { /* what is kept for good is there after the first ones */
        khub_value result;
        khub_error err = {0};
        if (i == 0) before = held();
        khub_function_call(f, arguments, (int32_t)count, &result, &err);
        khub_value_release(&result);
    }
    return json_pack("{s:I}", "grew", (json_int_t)(held() - before));
}

/* `rc`: whether there is the function. */
static json_t *once(int rc, const khub_function *f, const khub_value *arguments, size_t count,
                    khub_error *err)
{
    khub_value result = khub_arg_none();
    if (rc == KHUB_OK) rc = khub_function_call(f, arguments, (int32_t)count, &result, err);
    json_t *after = json_array();
    for (size_t i = 0; i < tensor_count; i++)
        json_array_append_new(after, hex_of(tensors[i].memory, tensors[i].bytes));
    json_t *answer =
        json_pack("{s:o, s:o}", rc == KHUB_OK ? "result" : "error",
                  rc == KHUB_OK ? write_value(&result) : json_string(err->message), "after", after);
    khub_value_release(&result);
    return answer;
}

static json_t *call(const json_t *job)
{
    const json_t *list = json_object_get(job, "arguments");
    khub_value arguments[32];
    khub_function f;
    khub_error err = {0};
    tensor_count = array_count = 0;
    size_t count = json_array_size(list);
    if (count > sizeof(arguments) / sizeof(*arguments)) die("too many arguments");
    for (size_t i = 0; i < count; i++)
        arguments[i] = read_value(json_array_get(list, i));
    int rc = get(&f, json_string_value(json_object_get(job, "kernel")),
                 json_string_value(json_object_get(job, "function")), &err);
    int64_t times = json_integer_value(json_object_get(job, "repeat"));
    json_t *answer =
        rc == KHUB_OK && times ? repeat(&f, arguments, count, times) : once(rc, &f, arguments, count, &err);
    for (size_t i = 0; i < array_count; i++)
        khub_value_release(&arrays[i]);
    return answer;
}

int main(void)
{
    static char line[100000];
    while (fgets(line, sizeof(line), stdin)) {
        json_t *job = json_loads(line, 0, NULL);
        if (!job) die("a line isn't JSON");
        json_t *answer = call(job);
        json_dumpf(answer, stdout, JSON_COMPACT | JSON_REAL_PRECISION(17));
        putchar('\n');
        json_decref(answer);
        json_decref(job);
    }
    return 0;
}
