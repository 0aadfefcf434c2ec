#include "tensor/object.h"

#include "base/error.h"
#include "base/memory.h"

/* Strong count in the lower half, weak count in the upper one; all strong ones together are one weak. */
static const uint64_t STRONG = 1, WEAK = (uint64_t)1 << 32, STRONG_MASK = 0xffffffffu;
enum { DELETE_CONTENT = 1, DELETE_MEMORY = 2 };

/* What stands before an object of ours. */
typedef struct hidden {
    void (*destroy)(void *object);
    uint64_t padding; /* so that the object is aligned as memory is */
} hidden;

static void delete_ours(void *object, int flags)
{
    hidden *h = (hidden *)object - 1;
    if ((flags & DELETE_CONTENT) && h->destroy) h->destroy(object);
    if (flags & DELETE_MEMORY) khub__free(h);
}

void *khub__object_make(int32_t type, size_t bytes, void (*destroy)(void *object))
{
    hidden *h = khub__calloc(1, sizeof(*h) + bytes);
    if (!h) return NULL;
    h->destroy = destroy;
    khub__object *object = (void *)(h + 1);
    object->counts = STRONG + WEAK;
    object->type = type;
    object->deleter = delete_ours;
    return object;
}

int khub__object_is(const void *object, void (*destroy)(void *object))
{
    const khub__object *o = object;
    return o->deleter == delete_ours && ((const hidden *)object - 1)->destroy == destroy;
}

void khub__object_retain(void *object)
{
    khub__object *o = object;
    __atomic_fetch_add(&o->counts, STRONG, __ATOMIC_RELAXED);
}

void khub__object_release(void *object)
{
    khub__object *o = object;
    if (__atomic_load_n(&o->counts, __ATOMIC_ACQUIRE) == STRONG + WEAK && o->deleter) {
        o->deleter(o, DELETE_CONTENT | DELETE_MEMORY); /* nobody else has it, so nobody else can count */
        return;
    }
    uint64_t before = __atomic_fetch_sub(&o->counts, STRONG, __ATOMIC_ACQ_REL);
    if ((before & STRONG_MASK) != STRONG || !o->deleter) return;
    if (before == STRONG + WEAK) {
        o->deleter(o, DELETE_CONTENT | DELETE_MEMORY);
        return;
    }
    o->deleter(o, DELETE_CONTENT);
    if (__atomic_fetch_sub(&o->counts, WEAK, __ATOMIC_ACQ_REL) == WEAK) o->deleter(o, DELETE_MEMORY);
}

typedef struct array_object {
    khub__object header;
    khub__items_cell cell;
    khub_value items[];
} array_object;

static void destroy_array(void *object)
{
    array_object *array = object;
    for (int64_t i = 0; i < array->cell.count; i++)
        khub_value_release(&array->cell.items[i]);
}

void *khub__array_object(size_t count, khub_value **items)
{
    if (count > SIZE_MAX / 2 / sizeof(khub_value)) return NULL;
    array_object *array =
        khub__object_make(KHUB_TYPE_ARRAY, sizeof(*array) + count * sizeof(khub_value), destroy_array);
    if (!array) return NULL;
    array->cell.items = array->items;
    array->cell.count = array->cell.capacity = (int64_t)count;
    *items = array->items;
    return array;
}

int khub_value_array(khub_value *out, const khub_value *items, size_t count, khub_error *err)
{
    khub_value *own;
    int rc = khub__given("khub_value_array", out && (items || count == 0), err);
    if (rc != KHUB_OK) return rc;
    *out = khub_arg_none();
    void *array = khub__array_object(count, &own);
    if (!array) return khub__fail_memory(err, "making an array");
    for (size_t i = 0; i < count; i++) {
        own[i] = items[i];
        if (items[i].type >= KHUB_TYPE_OBJECT && items[i].as.ptr) khub__object_retain(items[i].as.ptr);
    }
    out->type = KHUB_TYPE_ARRAY;
    out->as.ptr = array;
    return KHUB_OK;
}

const khub_value *khub_value_items(const khub_value *value, size_t *count)
{
    const array_object *array = value && value->type == KHUB_TYPE_ARRAY ? value->as.ptr : NULL;
    if (count) *count = array && array->cell.count > 0 ? (size_t)array->cell.count : 0;
    return array ? array->cell.items : NULL;
}

typedef struct text_object {
    khub__object header;
    khub__byte_cell cell;
    char text[];
} text_object;

int khub__value_of_text(khub_value *out, const char *text, size_t length)
{
    *out = khub_arg_none();
    if (length < sizeof(out->as.bytes)) {
        out->type = KHUB_TYPE_SMALL_STR;
        out->small_len = (uint32_t)length;
        memcpy(out->as.bytes, text, length);
        return 0;
    }
    text_object *object =
        length < SIZE_MAX / 2 ? khub__object_make(KHUB_TYPE_STR, sizeof(*object) + length + 1, NULL) : NULL;
    if (!object) return -1;
    memcpy(object->text, text, length);
    object->cell.data = object->text;
    object->cell.size = length;
    out->type = KHUB_TYPE_STR;
    out->as.ptr = object;
    return 0;
}
