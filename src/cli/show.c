/* Values of functions, for people and as JSON. */
#include "arguments.h"

#include <stdlib.h>

enum { SHOWN = 8 }; /* elements */

static float from_bits(uint32_t bits)
{
    float f;
    memcpy(&f, &bits, sizeof(f));
    return f;
}

/* IEEE 754 binary16: 1 sign, 5 exponent, 10 fraction bits. */
static float from_half(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, rest = h & 0x7FFF;
    if (rest >= 0x7C00) return from_bits(sign | 0x7F800000 | rest << 13); /* infinite, or no number */
    if (rest < 0x0400) return (sign ? -1.0f : 1.0f) * (float)rest * 0x1p-24f;
    return from_bits(sign | ((rest << 13) + ((127u - 15u) << 23)));
}

/* One element as text; 0 for a dtype that isn't shown. */
static int element_text(char text[32], khub_dtype dtype, const void *at)
{
    uint64_t u = 0;
    double d = 0;
    float f = 0;
    if (dtype.lanes != 1 || dtype.bits % 8 || dtype.bits > 64) return 0;
    memcpy(&u, at, dtype.bits / 8); /* little-endian */
    memcpy(&d, &u, sizeof(d));
    memcpy(&f, &u, sizeof(f));
    switch (dtype.code << 8 | dtype.bits) {
    case KHUB_DTYPE_FLOAT << 8 | 32:
        return snprintf(text, 32, "%g", (double)f);
    case KHUB_DTYPE_FLOAT << 8 | 64:
        return snprintf(text, 32, "%g", d);
    case KHUB_DTYPE_FLOAT << 8 | 16:
        return snprintf(text, 32, "%g", (double)from_half((uint16_t)u));
    case KHUB_DTYPE_BFLOAT << 8 | 16:
        return snprintf(text, 32, "%g", (double)from_bits((uint32_t)u << 16));
    case KHUB_DTYPE_BOOL << 8 | 8:
        return snprintf(text, 32, "%s", u ? "true" : "false");
    }
    if (dtype.code == KHUB_DTYPE_UINT) return snprintf(text, 32, "%llu", (unsigned long long)u);
    if (dtype.code != KHUB_DTYPE_INT) return 0;
    int unused = 64 - dtype.bits;
    return snprintf(text, 32, "%lld", (long long)((int64_t)(u << unused) >> unused));
}

/* Address of the i-th element in row-major order. */
static const char *element_at(const khub_tensor *t, int64_t i)
{
    int64_t offset = 0, compact = 1;
    for (int32_t d = t->ndim; d-- > 0; i /= t->shape[d], compact *= t->shape[d])
        offset += i % t->shape[d] * (t->strides ? t->strides[d] : compact);
    return (const char *)t->data + t->byte_offset + offset * (t->dtype.bits / 8);
}

static void show_elements(FILE *to, const khub_tensor *t)
{
    int64_t count = khub_tensor_count(t);
    char text[32];
    if (count <= 0 || !t->data || t->device.type != KHUB_DEVICE_CPU) return;
    for (int64_t i = 0; i < count && i < SHOWN; i++) {
        if (!element_text(text, t->dtype, element_at(t, i))) return;
        fprintf(to, "%s%s", i ? " " : ": ", text);
    }
    if (count > SHOWN) fputs(" ...", to);
}

void cli_show_tensor(FILE *to, const khub_tensor *tensor)
{
    char dtype[32];
    fputs(khub_dtype_name(tensor->dtype, dtype), to);
    fputc('[', to);
    for (int32_t i = 0; i < tensor->ndim; i++)
        fprintf(to, i ? ",%lld" : "%lld", (long long)tensor->shape[i]);
    fputc(']', to);
    show_elements(to, tensor);
}

void cli_show_tensor_json(FILE *to, const khub_tensor *tensor, const char *file)
{
    char dtype[32];
    fprintf(to, "{\"dtype\": \"%s\", \"shape\": [", khub_dtype_name(tensor->dtype, dtype));
    for (int32_t i = 0; i < tensor->ndim; i++)
        fprintf(to, i ? ", %lld" : "%lld", (long long)tensor->shape[i]);
    fputs("], \"file\": ", to);
    cli_json_text(to, file);
    fputc('}', to);
}

/* The shortest text that reads back to the same number. JSON has no nan and no inf: they are strings there.
 */
static void show_float(FILE *to, double number, int json)
{
    char text[32];
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, sizeof(text), "%.*g", digits, number);
        if (strtod(text, NULL) == number) break;
    }
    int quoted = json && strspn(text, "0123456789.e+-") != strlen(text);
    fprintf(to, quoted ? "\"%s\"" : "%s", text);
}

/* What has one form in both. 0: it isn't of this kind. */
static int show_scalar(FILE *to, const khub_value *value, int json)
{
    switch (value->type) {
    case KHUB_TYPE_INT:
        fprintf(to, "%lld", (long long)value->as.i64);
        return 1;
    case KHUB_TYPE_BOOL:
        fputs(value->as.i64 ? "true" : "false", to);
        return 1;
    case KHUB_TYPE_FLOAT:
        show_float(to, value->as.f64, json);
        return 1;
    default:
        return 0;
    }
}

/* What is neither text nor number nor tensor: its kind, by tvm-ffi's number. */
static void show_other(FILE *to, const khub_value *value)
{
    char dtype[32];
    size_t count;
    khub_value_items(value, &count);
    if (value->type == KHUB_TYPE_ARRAY)
        fprintf(to, "an array of %zu", count);
    else if (value->type == KHUB_TYPE_DTYPE)
        fputs(khub_dtype_name(value->as.dtype, dtype), to);
    else if (value->type == KHUB_TYPE_DEVICE)
        fprintf(to, "device %d:%d", (int)value->as.device.type, (int)value->as.device.id);
    else
        fprintf(to, "a value of type %d", (int)value->type);
}

/* For a program that reads it. */
static void as_it_is(FILE *to, const char *text, size_t length)
{
    fwrite(text, 1, length, to);
}

void cli_show_value(FILE *to, const khub_value *value, const char *file)
{
    size_t length;
    const char *text = khub_value_text(value, &length);
    const khub_tensor *tensor = khub_value_tensor(value);
    if (value->type == KHUB_TYPE_NONE) return;
    if (text)
        (cli_is_terminal(to) ? cli_text : as_it_is)(to, text, length);
    else if (tensor) {
        if (file) cli_print(to, "%s: ", file);
        cli_show_tensor(to, tensor);
    } else if (!show_scalar(to, value, 0))
        show_other(to, value);
    fputc('\n', to);
}

void cli_show_value_json(FILE *to, const khub_value *value, const char *file)
{
    size_t length;
    const char *text = khub_value_text(value, &length);
    const khub_tensor *tensor = khub_value_tensor(value);
    if (value->type == KHUB_TYPE_NONE)
        fputs("null", to);
    else if (text)
        cli_json_string(to, text, length);
    else if (tensor)
        cli_show_tensor_json(to, tensor, file);
    else if (!show_scalar(to, value, 1)) {
        fputc('"', to);
        show_other(to, value);
        fputc('"', to);
    }
}
