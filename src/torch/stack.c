#include "torch/stack.h"

#include "base/error.h"
#include "tensor/object.h"
#include "tensor/strided.h"
#include "torch/shim.h"
#include "torch/tensor.h"

#include <stdlib.h>

typedef khub__stack_slot slot;

/* What it is wrapped in; t->wraps isn't 0. */
static const khub__schema_wrap *outer(const slot *t)
{
    return &t->type->wraps[t->wraps - 1];
}

static slot slot_of(const khub__schema_type *type, int wraps, int shares);

static slot unwrap(const slot *t)
{
    return slot_of(t->type, t->wraps - 1, t->shares);
}

static const char *kind_of_value(const khub_value *v)
{
    static const struct {
        int32_t type;
        const char *words;
    } names[] = {
        {KHUB_TYPE_NONE, "None"},         {KHUB_TYPE_INT, "an int"},
        {KHUB_TYPE_BOOL, "a bool"},       {KHUB_TYPE_FLOAT, "a float"},
        {KHUB_TYPE_POINTER, "a pointer"}, {KHUB_TYPE_DTYPE, "a dtype"},
        {KHUB_TYPE_DEVICE, "a device"},   {KHUB_TYPE_TENSOR_VIEW, "a tensor"},
        {KHUB_TYPE_CSTRING, "a string"},  {KHUB_TYPE_SMALL_STR, "a string"},
        {KHUB_TYPE_STR, "a string"},      {KHUB_TYPE_FUNCTION, "a function"},
        {KHUB_TYPE_SHAPE, "a shape"},     {KHUB_TYPE_TENSOR, "a tensor"},
        {KHUB_TYPE_ARRAY, "an array"},    {KHUB_TYPE_MAP, "a map"},
    };
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        if (names[i].type == v->type) return names[i].words;
    return "an object";
}

static int fail_kind(const slot *t, const khub_value *v, khub_error *err)
{
    khub__schema_type shown = *t->type;
    khub__text text = {0};
    shown.wrap_count = t->wraps;
    khub__schema_write_type(&text, &shown);
    int rc = khub__fail(err, KHUB_E_INVAL, "is %s, %s is expected", kind_of_value(v),
                        text.failed ? "another" : text.data);
    khub__text_free(&text);
    return rc;
}

static int fail_shim(khub_error *err, const char *what)
{
    return khub__fail(err, KHUB_E_NOMEM, "can't be passed: libtorch makes no %s", what);
}

static int fail_old(khub_error *err, const char *what, const char *since)
{
    return khub__fail(err, KHUB_E_UNSUPPORTED, "%s can be passed from Torch %s on", what, since);
}

static int put_tensor(uint64_t *out, const slot *t, const khub_value *v, khub_error *err)
{
    const khub_tensor *tensor = khub_value_tensor(v);
    khub__aten_tensor *handle;
    if (!tensor) return fail_kind(t, v, err);
    int rc = khub__torch_tensor_wrap(&handle, tensor,
                                     t->shares && v->type == KHUB_TYPE_TENSOR ? v->as.ptr : NULL, err);
    if (rc == KHUB_OK) *out = (uint64_t)(uintptr_t)handle;
    return rc;
}

static int put_int(uint64_t *out, const slot *t, const khub_value *v, khub_error *err)
{
    if (v->type != KHUB_TYPE_INT && v->type != KHUB_TYPE_BOOL) return fail_kind(t, v, err);
    *out = v->as.bits;
    return KHUB_OK;
}

static int put_float(uint64_t *out, const slot *t, const khub_value *v, khub_error *err)
{
    double f = v->type == KHUB_TYPE_FLOAT ? v->as.f64 : (double)v->as.i64;
    if (v->type != KHUB_TYPE_FLOAT && v->type != KHUB_TYPE_INT && v->type != KHUB_TYPE_BOOL)
        return fail_kind(t, v, err);
    memcpy(out, &f, sizeof(f));
    return KHUB_OK;
}

static int put_bool(uint64_t *out, const slot *t, const khub_value *v, khub_error *err)
{
    if (v->type != KHUB_TYPE_BOOL) return fail_kind(t, v, err);
    *out = v->as.i64 != 0;
    return KHUB_OK;
}

static int put_text(uint64_t *out, const char *text, size_t length, khub_error *err)
{
    khub__aten_string *string;
    if (!khub__shim.new_string) return fail_old(err, "a str", "2.10");
    if (khub__shim.new_string(text, length, &string) != 0) return fail_shim(err, "string");
    *out = (uint64_t)(uintptr_t)string;
    return KHUB_OK;
}

static int put_str(uint64_t *out, const slot *t, const khub_value *v, khub_error *err)
{
    size_t length;
    const char *text = khub_value_text(v, &length);
    return text ? put_text(out, text, length, err) : fail_kind(t, v, err);
}

static int put_number(uint64_t *out, int32_t number, const char *kind, const char *name, khub_error *err)
{
    *out = (uint32_t)number;
    return number >= 0
               ? KHUB_OK
               : khub__fail(err, KHUB_E_INVAL, "is \"%.60s\", which is no %s of this libtorch", name, kind);
}

static int put_dtype(uint64_t *out, const slot *t, const khub_value *v, khub_error *err)
{
    khub_dtype dtype = v->as.dtype;
    const char *text = khub_value_text(v, NULL);
    char name[32];
    if (text && khub_dtype_parse(&dtype, text, err) != KHUB_OK) return KHUB_E_INVAL;
    if (!text && v->type != KHUB_TYPE_DTYPE) return fail_kind(t, v, err);
    return put_number(out, khub__torch_dtype(dtype), "dtype", khub_dtype_name(dtype, name), err);
}

/* "cpu", "cuda", "cuda:1". 0: it isn't one. */
static int parse_device(khub_device *out, const char *text, size_t length)
{
    static const struct {
        const char *name;
        int32_t type;
    } names[] = {{"cpu", KHUB_DEVICE_CPU},
                 {"cuda", KHUB_DEVICE_CUDA},
                 {"mps", KHUB_DEVICE_METAL},
                 {"xpu", KHUB_DEVICE_ONEAPI}};
    size_t n = 0;
    while (n < length && text[n] != ':')
        n++;
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        if (strlen(names[i].name) != n || memcmp(names[i].name, text, n) != 0) continue;
        out->type = names[i].type;
        out->id = -1;
        if (n == length) return 1;
        if (length - n < 2 || length - n > 4) return 0;
        for (out->id = 0, n++; n < length && text[n] >= '0' && text[n] <= '9'; n++)
            out->id = out->id * 10 + text[n] - '0';
        return n == length;
    }
    return 0;
}

static int put_device(uint64_t *out, const slot *t, const khub_value *v, khub_error *err)
{
    khub_device device = v->as.device;
    size_t length;
    const char *text = khub_value_text(v, &length);
    if (text && !parse_device(&device, text, length)) return put_number(out, -1, "device", text, err);
    if (!text && v->type != KHUB_TYPE_DEVICE) return fail_kind(t, v, err);
    int32_t number = khub__torch_device(device.type);
    *out = khub__torch_pack_device(number, device.type == KHUB_DEVICE_CPU ? -1 : device.id);
    return number >= 0 ? KHUB_OK
                       : khub__fail(err, KHUB_E_INVAL,
                                    "is a device of DLPack's type %d, which this libtorch doesn't know",
                                    (int)device.type);
}

static int put_layout(uint64_t *out, const slot *t, const khub_value *v, khub_error *err)
{
    size_t length;
    const char *text = khub_value_text(v, &length);
    return text ? put_number(out, khub__torch_layout(text, length), "layout", text, err)
                : fail_kind(t, v, err);
}

static int put_memory_format(uint64_t *out, const slot *t, const khub_value *v, khub_error *err)
{
    size_t length;
    const char *text = khub_value_text(v, &length);
    return text ? put_number(out, khub__torch_memory_format(text, length), "memory format", text, err)
                : fail_kind(t, v, err);
}

static int put_other(uint64_t *out, const slot *t, const khub_value *v, khub_error *err)
{
    (void)out;
    return fail_kind(t, v, err); /* of these only None can be passed, where it is allowed */
}

static void drop(const slot *t, uint64_t from);

/* A list that grows. */
static int new_list(khub__aten_list **out, size_t count, khub_error *err)
{
    if (!khub__shim.new_list) return fail_old(err, "a list", "2.10");
    return khub__shim.new_list(count, out) == 0 ? KHUB_OK : fail_shim(err, "list");
}

/* `rc` of making the item; takes it. */
static int push(khub__aten_list *list, const slot *item, uint64_t value, int rc, khub_error *err)
{
    if (rc != KHUB_OK || khub__shim.list_push(list, value) == 0) return rc;
    drop(item, value);
    return fail_shim(err, "list");
}

static int end_list(uint64_t *out, const slot *t, khub__aten_list *list, int rc)
{
    *out = (uint64_t)(uintptr_t)list;
    if (rc != KHUB_OK) drop(t, *out);
    return rc;
}

/* An optional that holds `value`, which it takes. */
static int wrap_optional(uint64_t *out, const slot *item, uint64_t value, khub_error *err)
{
    uint64_t *box = NULL;
    if (khub__shim.new_value)
        khub__shim.new_value(&box);
    else
        box = khub__shim.operator_new(sizeof(*box));
    if (!box) {
        drop(item, value);
        return fail_shim(err, "optional");
    }
    *box = value;
    *out = (uint64_t)(uintptr_t)box;
    return KHUB_OK;
}

static int put_optional(uint64_t *out, const slot *t, const khub_value *v, khub_error *err)
{
    slot item = unwrap(t);
    uint64_t value = 0;
    *out = 0;
    if (v->type == KHUB_TYPE_NONE) return KHUB_OK;
    int rc = item.put(&value, &item, v, err);
    return rc == KHUB_OK ? wrap_optional(out, &item, value, err) : rc;
}

static int put_values(uint64_t *out, const slot *t, const khub_value *items, size_t count, size_t step,
                      khub_error *err)
{
    slot item = unwrap(t);
    khub__aten_list *list;
    int rc = new_list(&list, count, err);
    if (rc != KHUB_OK) return rc;
    for (size_t i = 0; rc == KHUB_OK && i < count; i++) {
        uint64_t value = 0;
        rc = item.put(&value, &item, &items[i * step], err);
        rc = push(list, &item, value, rc, err);
    }
    return end_list(out, t, list, rc);
}

static int put_ints(uint64_t *out, const slot *t, const int64_t *items, size_t count, size_t step,
                    khub_error *err)
{
    slot item = unwrap(t);
    khub__aten_list *list;
    int rc = new_list(&list, count, err);
    if (rc != KHUB_OK) return rc;
    for (size_t i = 0; rc == KHUB_OK && i < count; i++)
        rc = push(list, &item, (uint64_t)items[i * step], rc, err);
    return end_list(out, t, list, rc);
}

/* One dimension of int64 on the CPU is a list of ints. */
static int is_ints(const khub_tensor *t)
{
    return t && t->ndim == 1 && t->shape && t->shape[0] >= 0 && t->device.type == KHUB_DEVICE_CPU &&
           t->dtype.code == KHUB_DTYPE_INT && t->dtype.bits == 64 && t->dtype.lanes == 1 &&
           (t->data || t->shape[0] == 0) && (!t->strides || t->strides[0] >= 0);
}

static int put_list_of_ints(uint64_t *out, const slot *t, const khub_value *v, khub_error *err)
{
    const khub_tensor *tensor = khub_value_tensor(v);
    if (is_ints(tensor)) {
        const char *first = tensor->data ? (const char *)tensor->data + tensor->byte_offset : NULL;
        return put_ints(out, t, (const int64_t *)(const void *)first, (size_t)tensor->shape[0],
                        tensor->strides ? (size_t)tensor->strides[0] : 1, err);
    }
    if (v->type == KHUB_TYPE_SHAPE && v->as.ptr) {
        const khub__shape_cell *shape = (const void *)((const khub__object *)v->as.ptr + 1);
        return put_ints(out, t, shape->data, shape->size, 1, err);
    }
    int64_t size = outer(t)->size;
    if (v->type == KHUB_TYPE_INT && size > 0)
        return put_values(out, t, v, (size_t)size, 0, err); /* int[2]: 3 is [3, 3] */
    return fail_kind(t, v, err);
}

static int put_list(uint64_t *out, const slot *t, const khub_value *v, khub_error *err)
{
    size_t count;
    const khub_value *items = khub_value_items(v, &count);
    if (items) return put_values(out, t, items, count, 1, err);
    if (t->wraps == 1 && t->type->kind == KHUB__SCHEMA_INT) return put_list_of_ints(out, t, v, err);
    return fail_kind(t, v, err);
}

static int fail_default(khub_error *err)
{
    return khub__fail(err, KHUB_E_UNSUPPORTED, "has a default that khub can't read: it must be given");
}

/* 1: libtorch writes a default of this kind as its own number. */
static int has_number(khub__schema_kind kind)
{
    return kind == KHUB__SCHEMA_DTYPE || kind == KHUB__SCHEMA_LAYOUT || kind == KHUB__SCHEMA_MEMORY_FORMAT;
}

/* A default that isn't wrapped. Its texts have a NUL behind them; a name is also written without quotes. */
static int put_default_base(uint64_t *out, const slot *t, const khub__schema_value *d, khub_error *err)
{
    khub__schema_kind kind = t->type->kind;
    char name[32] = "";
    khub_value v = khub_arg_int(d->i);
    if (d->kind == KHUB__SCHEMA_VALUE_INT && has_number(kind)) {
        *out = (uint32_t)d->i;
        return KHUB_OK;
    }
    if (kind == KHUB__SCHEMA_STR)
        return d->kind == KHUB__SCHEMA_VALUE_TEXT ? put_text(out, d->text.at, d->text.length, err)
                                                  : fail_default(err);
    if (d->kind == KHUB__SCHEMA_VALUE_TEXT || d->kind == KHUB__SCHEMA_VALUE_OTHER) {
        if (d->text.length >= sizeof(name)) return fail_default(err);
        memcpy(name, d->text.at, d->text.length);
        v = khub_arg_string(name);
    } else if (d->kind == KHUB__SCHEMA_VALUE_FLOAT) {
        v = khub_arg_float(d->f);
    } else if (d->kind == KHUB__SCHEMA_VALUE_BOOL) {
        v = khub_arg_bool(d->i != 0);
    } else if (d->kind != KHUB__SCHEMA_VALUE_INT) {
        return fail_default(err);
    }
    return t->put(out, t, &v, err);
}

static int put_default(uint64_t *out, const slot *t, const khub__schema *schema, const khub__schema_value *d,
                       khub_error *err);

static int put_default_list(uint64_t *out, const slot *t, const khub__schema *schema,
                            const khub__schema_value *d, khub_error *err)
{
    int is_list = d->kind == KHUB__SCHEMA_VALUE_LIST; /* else one for each: int[2] x=0 */
    int64_t count = is_list ? (int64_t)d->count : outer(t)->size;
    slot item = unwrap(t);
    khub__aten_list *list;
    if (count < 0) return fail_default(err);
    int rc = new_list(&list, (size_t)count, err);
    if (rc != KHUB_OK) return rc;
    for (int64_t i = 0; rc == KHUB_OK && i < count; i++) {
        uint64_t value = 0;
        rc = put_default(&value, &item, schema, is_list ? &schema->items[d->i + i] : d, err);
        rc = push(list, &item, value, rc, err);
    }
    return end_list(out, t, list, rc);
}

static int put_default(uint64_t *out, const slot *t, const khub__schema *schema, const khub__schema_value *d,
                       khub_error *err)
{
    if (t->wraps == 0) return put_default_base(out, t, d, err);
    if (outer(t)->is_list) return put_default_list(out, t, schema, d, err);
    slot item = unwrap(t);
    uint64_t value = 0;
    *out = 0;
    if (d->kind == KHUB__SCHEMA_NONE) return KHUB_OK;
    int rc = put_default(&value, &item, schema, d, err);
    return rc == KHUB_OK ? wrap_optional(out, &item, value, err) : rc;
}

int khub__stack_put_default(uint64_t *out, const slot *t, const khub__schema *schema,
                            const khub__schema_value *value, khub_error *err)
{
    if (value->kind == KHUB__SCHEMA_NO_VALUE) return khub__fail(err, KHUB_E_INVAL, "is missing");
    return put_default(out, t, schema, value, err);
}

/* The value that an optional holds, which is now the caller's. */
static uint64_t open_optional(uint64_t from)
{
    uint64_t *box = (uint64_t *)(uintptr_t)from, value = *box;
    if (khub__shim.delete_value)
        khub__shim.delete_value(box);
    else
        khub__shim.operator_delete(box);
    return value;
}

static size_t list_size(khub__aten_list *list)
{
    size_t count = 0;
    return khub__shim.list_size(list, &count) == 0 ? count : 0;
}

static uint64_t list_at(khub__aten_list *list, size_t i)
{
    uint64_t value = 0;
    khub__shim.list_get(list, i, &value);
    return value;
}

static void drop_list(const slot *t, khub__aten_list *list)
{
    slot item = unwrap(t);
    size_t count = list_size(list);
    for (size_t i = 0; i < count; i++)
        drop(&item, list_at(list, i));
    khub__shim.delete_list(list);
}

static void drop(const slot *t, uint64_t from)
{
    if (t->wraps && outer(t)->is_list) {
        drop_list(t, (khub__aten_list *)(uintptr_t)from);
    } else if (t->wraps) {
        slot item = unwrap(t);
        if (from) drop(&item, open_optional(from));
    } else if (t->type->kind == KHUB__SCHEMA_TENSOR) {
        khub__shim.delete_tensor((khub__aten_tensor *)(uintptr_t)from);
    } else if (t->type->kind == KHUB__SCHEMA_STR) {
        khub__shim.delete_string((khub__aten_string *)(uintptr_t)from);
    }
}

void khub__stack_drop(const slot *t, uint64_t from)
{
    drop(t, from);
}

static int take_tensor(khub_value *out, const slot *t, uint64_t from, khub_error *err)
{
    int is_view = t->type->alias.at && !t->type->writes;
    return khub__torch_tensor_give(out, (khub__aten_tensor *)(uintptr_t)from, is_view, err);
}

static int take_int(khub_value *out, const slot *t, uint64_t from, khub_error *err)
{
    (void)t, (void)err;
    *out = khub_value_of(KHUB_TYPE_INT, from);
    return KHUB_OK;
}

static int take_float(khub_value *out, const slot *t, uint64_t from, khub_error *err)
{
    (void)t, (void)err;
    *out = khub_value_of(KHUB_TYPE_FLOAT, from);
    return KHUB_OK;
}

static int take_bool(khub_value *out, const slot *t, uint64_t from, khub_error *err)
{
    (void)t, (void)err;
    *out = khub_arg_bool((uint8_t)from != 0);
    return KHUB_OK;
}

static int take_str(khub_value *out, const slot *t, uint64_t from, khub_error *err)
{
    khub__aten_string *string = (khub__aten_string *)(uintptr_t)from;
    size_t length = 0;
    const char *data = "";
    (void)t;
    khub__shim.string_length(string, &length);
    khub__shim.string_data(string, &data);
    int rc = khub__value_of_text(out, data, length);
    khub__shim.delete_string(string);
    return rc == 0 ? KHUB_OK : khub__fail_memory(err, "taking a string from libtorch");
}

static int take_name(khub_value *out, const char *name, uint64_t from, khub_error *err)
{
    if (!name)
        return khub__fail(err, KHUB_E_UNSUPPORTED, "is libtorch's number %d, which khub doesn't know",
                          (int)(uint32_t)from);
    *out = khub_arg_string(name); /* static */
    return KHUB_OK;
}

static int take_dtype(khub_value *out, const slot *t, uint64_t from, khub_error *err)
{
    khub_dtype dtype = khub__torch_dtype_of((int32_t)(uint32_t)from);
    (void)t;
    if (!dtype.bits) return take_name(out, NULL, from, err);
    out->type = KHUB_TYPE_DTYPE;
    out->as.dtype = dtype;
    return KHUB_OK;
}

static int take_device(khub_value *out, const slot *t, uint64_t from, khub_error *err)
{
    int32_t number, index;
    (void)t;
    khub__torch_unpack_device(&number, &index, from);
    khub_device device = {khub__torch_device_of(number), index < 0 ? 0 : index};
    if (!device.type) return take_name(out, NULL, (uint32_t)number, err);
    out->type = KHUB_TYPE_DEVICE;
    out->as.device = device;
    return KHUB_OK;
}

static int take_layout(khub_value *out, const slot *t, uint64_t from, khub_error *err)
{
    (void)t;
    return take_name(out, khub__torch_layout_of((int32_t)(uint32_t)from), from, err);
}

static int take_memory_format(khub_value *out, const slot *t, uint64_t from, khub_error *err)
{
    (void)t;
    return take_name(out, khub__torch_memory_format_of((int32_t)(uint32_t)from), from, err);
}

static int take_other(khub_value *out, const slot *t, uint64_t from, khub_error *err)
{
    (void)out, (void)t, (void)from;
    return khub__fail(err, KHUB_E_UNSUPPORTED, "is of a type that khub can't take");
}

static int take_list(khub_value *out, const slot *t, uint64_t from, khub_error *err)
{
    khub__aten_list *list = (khub__aten_list *)(uintptr_t)from;
    slot item = unwrap(t);
    size_t count = list_size(list);
    khub_value *items;
    void *array = khub__array_object(count, &items);
    if (!array) {
        drop_list(t, list);
        return khub__fail_memory(err, "taking a list from libtorch");
    }
    int rc = KHUB_OK;
    for (size_t i = 0; i < count; i++) {
        if (rc == KHUB_OK)
            rc = item.take(&items[i], &item, list_at(list, i), err);
        else
            drop(&item, list_at(list, i));
    }
    khub__shim.delete_list(list);
    out->type = KHUB_TYPE_ARRAY;
    out->as.ptr = array;
    if (rc != KHUB_OK) khub_value_release(out);
    return rc;
}

static int take_optional(khub_value *out, const slot *t, uint64_t from, khub_error *err)
{
    if (!from) return KHUB_OK;
    slot item = unwrap(t);
    return item.take(out, &item, open_optional(from), err);
}

/* A type that is wrapped in nothing. */
static const struct {
    int (*put)(uint64_t *out, const slot *t, const khub_value *v, khub_error *err);
    int (*take)(khub_value *out, const slot *t, uint64_t from, khub_error *err);
} kinds[] = {
    [KHUB__SCHEMA_OTHER] = {put_other, take_other},
    [KHUB__SCHEMA_TENSOR] = {put_tensor, take_tensor},
    [KHUB__SCHEMA_INT] = {put_int, take_int},
    [KHUB__SCHEMA_FLOAT] = {put_float, take_float},
    [KHUB__SCHEMA_BOOL] = {put_bool, take_bool},
    [KHUB__SCHEMA_STR] = {put_str, take_str},
    [KHUB__SCHEMA_DTYPE] = {put_dtype, take_dtype},
    [KHUB__SCHEMA_DEVICE] = {put_device, take_device},
    [KHUB__SCHEMA_LAYOUT] = {put_layout, take_layout},
    [KHUB__SCHEMA_MEMORY_FORMAT] = {put_memory_format, take_memory_format},
    [KHUB__SCHEMA_GENERATOR] = {put_other, take_other},
};

static slot slot_of(const khub__schema_type *type, int wraps, int shares)
{
    slot t = {kinds[type->kind].put, kinds[type->kind].take, type, wraps, shares, 0};
    if (wraps) {
        int is_list = type->wraps[wraps - 1].is_list;
        t.put = is_list ? put_list : put_optional;
        t.take = is_list ? take_list : take_optional;
    }
    return t;
}

khub__stack_slot khub__stack_slot_of(const khub__schema_type *type, int shares)
{
    return slot_of(type, type->wrap_count, shares);
}
