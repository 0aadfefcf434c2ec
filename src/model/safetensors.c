#include "model/safetensors.h"

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/pages.h"
#include "tensor/array.h"

#include <inttypes.h>
#include <stdlib.h>

/* The format's own limit on the header. */
#define MAX_HEADER 100000000u
enum { PREFIX = 8 /* bytes of the header's length */ };

struct khub__safetensors {
    khub__bytes map; /* empty for a file over borrowed memory */
    char *path;
    json_t *header;
    khub__stored *tensors; /* by name */
    size_t count;
};

/* Every type the format has, with its width in bits; code -1: DLPack has a number for it that khub doesn't
 * use yet. */
static const struct type {
    const char *name;
    int bits, code;
} types[] = {
    {"BOOL", 8, KHUB_DTYPE_BOOL},
    {"U8", 8, KHUB_DTYPE_UINT},
    {"I8", 8, KHUB_DTYPE_INT},
    {"U16", 16, KHUB_DTYPE_UINT},
    {"I16", 16, KHUB_DTYPE_INT},
    {"U32", 32, KHUB_DTYPE_UINT},
    {"I32", 32, KHUB_DTYPE_INT},
    {"U64", 64, KHUB_DTYPE_UINT},
    {"I64", 64, KHUB_DTYPE_INT},
    {"F16", 16, KHUB_DTYPE_FLOAT},
    {"BF16", 16, KHUB_DTYPE_BFLOAT},
    {"F32", 32, KHUB_DTYPE_FLOAT},
    {"F64", 64, KHUB_DTYPE_FLOAT},
    {"C64", 64, KHUB_DTYPE_COMPLEX},
    {"F8_E4M3", 8, KHUB_DTYPE_FLOAT8_E4M3FN},
    {"F8_E5M2", 8, KHUB_DTYPE_FLOAT8_E5M2},
    {"F8_E8M0", 8, -1},
    {"F8_E4M3FNUZ", 8, -1},
    {"F8_E5M2FNUZ", 8, -1},
    {"F6_E2M3", 6, -1},
    {"F6_E3M2", 6, -1},
    {"F4", 4, -1},
};

static const struct type *find_type(const char *name)
{
    for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++)
        if (!strcmp(types[i].name, name)) return &types[i];
    return NULL;
}

/* What all messages about one tensor start with. */
struct place {
    const char *file, *tensor;
    khub_error *err;
};

static int wrong(const struct place *at, const char *fact)
{
    return khub__fail(at->err, KHUB_E_FORMAT, "%s: tensor \"%s\": %s", at->file, at->tensor, fact);
}

static int read_type(khub__stored *t, int *bits, const json_t *entry, const struct place *at)
{
    const json_t *name = json_object_get(entry, "dtype");
    if (!json_is_string(name)) return wrong(at, "\"dtype\" isn't a string");
    const struct type *type = find_type(json_string_value(name));
    if (!type)
        return khub__fail(at->err, KHUB_E_UNSUPPORTED, "%s: tensor \"%s\": unknown dtype \"%s\"", at->file,
                          at->tensor, json_string_value(name));
    t->type = type->name;
    *bits = type->bits;
    if (type->code >= 0) t->dtype = khub_dtype_of((uint8_t)type->code, (uint8_t)type->bits);
    return KHUB_OK;
}

static int read_shape(khub__stored *t, const json_t *entry, const struct place *at)
{
    const json_t *shape = json_object_get(entry, "shape");
    if (!json_is_array(shape)) return wrong(at, "\"shape\" isn't an array");
    size_t ndim = json_array_size(shape);
    if (ndim > KHUB_MAX_NDIM)
        return khub__fail(at->err, KHUB_E_UNSUPPORTED, "%s: tensor \"%s\": has %zu axes, at most %d are read",
                          at->file, at->tensor, ndim, KHUB_MAX_NDIM);
    t->ndim = (int32_t)ndim;
    for (size_t i = 0; i < ndim; i++) {
        const json_t *extent = json_array_get(shape, i);
        if (!json_is_integer(extent) || json_integer_value(extent) < 0)
            return wrong(at, "\"shape\" holds something that isn't a whole number from 0 on");
        t->shape[i] = json_integer_value(extent);
    }
    return KHUB_OK;
}

/* Bits of the tensor; -1: more than any file has. */
static int64_t count_bits(const khub__stored *t, int bits)
{
    int64_t total = bits;
    for (int32_t i = 0; i < t->ndim; i++)
        if (__builtin_mul_overflow(total, t->shape[i], &total)) {
            /* a later 0 would make it empty after all */
            for (int32_t k = i + 1; k < t->ndim; k++)
                if (t->shape[k] == 0) return 0;
            return -1;
        }
    return total;
}

static int read_offsets(khub__stored *t, int bits, const json_t *entry, const char *data, size_t length,
                        const struct place *at)
{
    const json_t *offsets = json_object_get(entry, "data_offsets");
    if (!json_is_array(offsets) || json_array_size(offsets) != 2 ||
        !json_is_integer(json_array_get(offsets, 0)) || !json_is_integer(json_array_get(offsets, 1)))
        return wrong(at, "\"data_offsets\" isn't a pair of whole numbers");
    int64_t begin = json_integer_value(json_array_get(offsets, 0));
    int64_t end = json_integer_value(json_array_get(offsets, 1));
    if (begin < 0 || end < begin || (uint64_t)end > length)
        return khub__fail(at->err, KHUB_E_FORMAT,
                          "%s: tensor \"%s\": data_offsets are [%" PRId64 ", %" PRId64
                          "], the file holds %zu bytes of data (cut off?)",
                          at->file, at->tensor, begin, end, length);
    int64_t need = count_bits(t, bits);
    if (need < 0 || need % 8 != 0 || need / 8 != end - begin) {
        char shape[128];
        return khub__fail(at->err, KHUB_E_FORMAT,
                          "%s: tensor \"%s\": data_offsets [%" PRId64 ", %" PRId64 "] hold %" PRId64
                          " bytes, %s of shape %s doesn't fill that",
                          at->file, at->tensor, begin, end, end - begin, t->type,
                          khub__shape_text(shape, t->ndim, t->shape));
    }
    t->begin = (size_t)begin;
    t->bytes = (size_t)(end - begin);
    t->data = data + begin;
    return KHUB_OK;
}

static int check_metadata(const json_t *metadata, const char *file, khub_error *err)
{
    if (!metadata) return KHUB_OK;
    if (!json_is_object(metadata))
        return khub__fail(err, KHUB_E_FORMAT, "%s: \"__metadata__\" is %s, an object is expected", file,
                          khub__json_type_name(metadata));
    const char *key;
    const json_t *value;
    json_object_foreach ((json_t *)(uintptr_t)metadata, key, value) {
        if (!json_is_string(value))
            return khub__fail(err, KHUB_E_FORMAT, "%s: \"__metadata__\": \"%s\" is %s, a string is expected",
                              file, key, khub__json_type_name(value));
    }
    return KHUB_OK;
}

static int read_tensors(khub__safetensors *file, const char *data, size_t length, khub_error *err)
{
    const char *key;
    json_t *entry;
    json_object_foreach (file->header, key, entry) {
        if (!strcmp(key, "__metadata__")) continue;
        struct place at = {file->path, key, err};
        khub__stored *t = &file->tensors[file->count++];
        t->name = key;
        int bits = 0;
        if (!json_is_object(entry)) return wrong(&at, "isn't an object");
        int rc = read_type(t, &bits, entry, &at);
        if (rc == KHUB_OK) rc = read_shape(t, entry, &at);
        if (rc == KHUB_OK) rc = read_offsets(t, bits, entry, data, length, &at);
        if (rc != KHUB_OK) return rc;
    }
    return KHUB_OK;
}

static int by_offset(const void *a, const void *b)
{
    const khub__stored *x = a, *y = b;
    if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
    return (x->bytes > y->bytes) - (x->bytes < y->bytes); /* empty ones first */
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const khub__stored *)a)->name, ((const khub__stored *)b)->name);
}

/* The tensors must cover the data section, each byte once. */
static int check_cover(khub__safetensors *file, size_t length, khub_error *err)
{
    if (file->count) qsort(file->tensors, file->count, sizeof(*file->tensors), by_offset);
    size_t at = 0;
    for (size_t i = 0; i < file->count; i++) {
        const khub__stored *t = &file->tensors[i];
        if (t->begin != at)
            return khub__fail(
                err, KHUB_E_FORMAT,
                "%s: tensor \"%s\": starts at byte %zu of the data, the one before ends at %zu (%s)",
                file->path, t->name, t->begin, at, t->begin < at ? "they overlap" : "a hole");
        at += t->bytes;
    }
    if (at != length)
        return khub__fail(err, KHUB_E_FORMAT,
                          "%s: the tensors end at byte %zu of the data, the file holds %zu", file->path, at,
                          length);
    if (file->count) qsort(file->tensors, file->count, sizeof(*file->tensors), by_name);
    return KHUB_OK;
}

static int read_header(khub__safetensors *file, const char *bytes, size_t length, khub_error *err)
{
    uint64_t header = 0;
    if (length < PREFIX)
        return khub__fail(err, KHUB_E_FORMAT, "%s: is %zu bytes long, too short for a safetensors file",
                          file->path, length);
    for (int i = 0; i < PREFIX; i++)
        header |= (uint64_t)(unsigned char)bytes[i] << (8 * i);
    if (header > MAX_HEADER || header > length - PREFIX)
        return khub__fail(err, KHUB_E_FORMAT, "%s: says that its header is %" PRIu64 " bytes long, %s",
                          file->path, header,
                          header > MAX_HEADER ? "at most 100,000,000 are allowed (not a safetensors file?)"
                                              : "the file is shorter (cut off?)");
    int rc = khub__json_parse(&file->header, bytes + PREFIX, (size_t)header, file->path, err);
    if (rc == KHUB_OK) rc = check_metadata(json_object_get(file->header, "__metadata__"), file->path, err);
    if (rc != KHUB_OK) return rc;
    file->tensors = khub__calloc(json_object_size(file->header) + 1, sizeof(*file->tensors));
    if (!file->tensors) return khub__fail_memory(err, "reading a safetensors header");
    size_t data = length - PREFIX - (size_t)header;
    rc = read_tensors(file, bytes + PREFIX + header, data, err);
    return rc == KHUB_OK ? check_cover(file, data, err) : rc;
}

static khub__safetensors *new_file(const char *path)
{
    khub__safetensors *file = khub__calloc(1, sizeof(*file));
    if (!file) return NULL;
    file->path = khub__strdup(path);
    if (file->path) return file;
    khub__free(file);
    return NULL;
}

int khub__safetensors_over(khub__safetensors **out, const void *data, size_t length, const char *name,
                           khub_error *err)
{
    *out = NULL;
    khub__safetensors *file = new_file(name);
    if (!file) return khub__fail_memory(err, "reading a safetensors file");
    int rc = read_header(file, data, length, err);
    if (rc == KHUB_OK)
        *out = file;
    else
        khub__safetensors_close(file);
    return rc;
}

int khub__safetensors_open(khub__safetensors **out, const char *path, khub_error *err)
{
    *out = NULL;
    khub__bytes map;
    int rc = khub__file_map(&map, path, err);
    if (rc != KHUB_OK) return rc;
    rc = khub__safetensors_over(out, map.data, map.length, path, err);
    if (rc == KHUB_OK)
        (*out)->map = map;
    else
        khub__bytes_free(&map);
    return rc;
}

void khub__safetensors_close(khub__safetensors *file)
{
    if (!file) return;
    json_decref(file->header);
    khub__bytes_free(&file->map);
    khub__free(file->tensors);
    khub__free(file->path);
    khub__free(file);
}

const khub__stored *khub__safetensors_find(const khub__safetensors *file, const char *name)
{
    const khub__stored key = {.name = name};
    return file->count ? bsearch(&key, file->tensors, file->count, sizeof(key), by_name) : NULL;
}

size_t khub__safetensors_count(const khub__safetensors *file)
{
    return file->count;
}

const khub__stored *khub__safetensors_at(const khub__safetensors *file, size_t i)
{
    return i < file->count ? &file->tensors[i] : NULL;
}

const char *khub__safetensors_path(const khub__safetensors *file)
{
    return file->path;
}

void khub__safetensors_relax(const khub__safetensors *file)
{
    if (file->map.mapped) khub__pages_drop(file->map.data, file->map.length);
}
