#include "model/weights.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"
#include "tensor/array.h"

enum { MAX_CONVERTED = 1 << 20 };

/* IEEE 754 half to single: exact. */
static float from_half(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, exponent = h >> 10 & 31, fraction = h & 0x3ff, bits;
    float value;
    if (exponent == 0) { /* zero or subnormal: fraction * 2^-24 */
        value = (float)fraction * 0x1p-24f;
        memcpy(&bits, &value, 4);
        bits |= sign;
    } else {
        bits = sign | (exponent == 31 ? 255u : exponent + 112) << 23 | fraction << 13;
    }
    memcpy(&value, &bits, 4);
    return value;
}

static void floats_of_f32(float *out, const char *in, int64_t count)
{
    memcpy(out, in, (size_t)count * sizeof(float));
}

static void floats_of_f16(float *out, const char *in, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        uint16_t h;
        memcpy(&h, in + 2 * i, 2);
        out[i] = from_half(h);
    }
}

static void floats_of_bf16(float *out, const char *in, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        uint16_t h;
        memcpy(&h, in + 2 * i, 2);
        uint32_t bits = (uint32_t)h << 16;
        memcpy(&out[i], &bits, 4);
    }
}

/* The types that weights may have. */
static const struct reader {
    const char *type;
    size_t item;
    void (*floats)(float *out, const char *in, int64_t count);
} readers[] = {{"F32", 4, floats_of_f32}, {"F16", 2, floats_of_f16}, {"BF16", 2, floats_of_bf16}};

static const struct reader *reader_of(const khub__stored *stored)
{
    for (size_t i = 0; i < sizeof(readers) / sizeof(*readers); i++)
        if (!strcmp(readers[i].type, stored->type)) return &readers[i];
    return NULL;
}

void khub__stored_floats(float *out, const khub__stored *stored, int64_t from, int64_t count)
{
    const struct reader *reader = reader_of(stored);
    reader->floats(out, (const char *)stored->data + (size_t)from * reader->item, count);
}

int khub__stored_are_floats(const khub__stored *stored)
{
    return !strcmp(stored->type, "F32") && (uintptr_t)stored->data % sizeof(float) == 0;
}

const char *khub__weights_path(const khub__weights *weights, const khub__stored *stored)
{
    const char *path;
    khub__checkpoint_find(&weights->checkpoint, stored->name, &path);
    return path;
}

/* The name in the file, into `text`. */
static const char *full_name(khub__text *text, const khub__weights *weights, const char *name)
{
    khub__text_addf(text, "%s%s", weights->prefix, name);
    return text->failed ? NULL : text->data;
}

int khub__weights_find(const khub__stored **out, const khub__weights *weights, const char *name, int32_t ndim,
                       const int64_t *shape, khub_error *err)
{
    char wanted[128], found[128];
    const char *path;
    khub__text text = {0};
    const char *full = full_name(&text, weights, name);
    if (!full) return khub__fail_memory(err, "reading a model");
    const khub__stored *t = khub__checkpoint_find(&weights->checkpoint, full, &path);
    khub__text_free(&text);
    khub__shape_text(wanted, ndim, shape);
    if (!t)
        return khub__fail(err, KHUB_E_FORMAT, "%s: the tensor \"%s%s\" %s is missing", path, weights->prefix,
                          name, wanted);
    if (t->ndim != ndim || (ndim && memcmp(t->shape, shape, (size_t)ndim * sizeof(*shape)) != 0))
        return khub__fail(err, KHUB_E_FORMAT, "%s: the tensor \"%s\" has shape %s, config.json asks for %s",
                          path, t->name, khub__shape_text(found, t->ndim, t->shape), wanted);
    if (!reader_of(t))
        return khub__fail(err, KHUB_E_UNSUPPORTED,
                          "%s: the tensor \"%s\" is %s; F32, F16 and BF16 weights are supported", path,
                          t->name, t->type);
    *out = t;
    return KHUB_OK;
}

/* Floats of the model's own, for what can't be used as it lies in the file. */
static float *convert(khub__weights *weights, const khub__stored *stored, int64_t count)
{
    if (khub__grow((void **)&weights->converted, &weights->capacity, weights->count + 1, sizeof(float *),
                   MAX_CONVERTED) != 0)
        return NULL;
    float *floats = khub__malloc((size_t)count * sizeof(float));
    if (!floats) return NULL;
    weights->converted[weights->count++] = floats;
    khub__stored_floats(floats, stored, 0, count);
    return floats;
}

int khub__weights_get(khub_tensor *out, khub__weights *weights, const char *name, int32_t ndim,
                      const int64_t *shape, khub_error *err)
{
    const khub__stored *stored;
    int rc = khub__weights_find(&stored, weights, name, ndim, shape, err);
    if (rc != KHUB_OK) return rc;
    float *floats = (float *)(uintptr_t)stored->data;
    *out = khub_tensor_f32(floats, ndim, stored->shape);
    if (!khub__stored_are_floats(stored)) out->data = convert(weights, stored, khub_tensor_count(out));
    return out->data ? KHUB_OK : khub__fail_memory(err, "reading a model's weights");
}

/* "bert." when that is what stands in front of `known`. */
static int find_prefix(khub__weights *out, const char *known, khub_error *err)
{
    if (khub__checkpoint_find(&out->checkpoint, known, NULL)) return KHUB_OK;
    khub__text text = {0};
    out->prefix = "bert.";
    const char *full = full_name(&text, out, known);
    if (!full) return khub__fail_memory(err, "reading a model");
    if (!khub__checkpoint_find(&out->checkpoint, full, NULL)) out->prefix = "";
    khub__text_free(&text);
    return KHUB_OK;
}

int khub__weights_open(khub__weights *out, const char *directory, const char *known, khub_error *err)
{
    memset(out, 0, sizeof(*out));
    out->prefix = "";
    int rc = khub__checkpoint_open(&out->checkpoint, directory, err);
    return rc == KHUB_OK ? find_prefix(out, known, err) : rc;
}

void khub__weights_close(khub__weights *weights)
{
    for (size_t i = 0; i < weights->count; i++)
        khub__free(weights->converted[i]);
    khub__free(weights->converted);
    khub__checkpoint_close(&weights->checkpoint);
    memset(weights, 0, sizeof(*weights));
}
