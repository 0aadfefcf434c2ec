/* Counted objects that khub makes itself, laid out and counted as tvm-ffi's, so that everybody who has one
 * can keep it and give it up. */
#ifndef TENSOR_OBJECT_H
#define TENSOR_OBJECT_H

#include "tensor/value.h"

/* TVMFFISeqCell: the cell of an array. */
typedef struct khub__items_cell {
    khub_value *items;
    int64_t count, capacity;
    void (*delete_items)(void *items); /* NULL: they lie in the object */
} khub__items_cell;

/* TVMFFIShapeCell. */
typedef struct khub__shape_cell {
    const int64_t *data;
    size_t size;
} khub__shape_cell;

/* An object of `bytes` bytes, header included, zeroed behind the header, with a count of 1. `destroy` is
 * given it when nobody has it any more, before its memory goes; NULL: nothing is to be done. NULL: no memory.
 */
void *khub__object_make(int32_t type, size_t bytes, void (*destroy)(void *object));

/* 1: it is one of ours that `destroy` belongs to. */
int khub__object_is(const void *object, void (*destroy)(void *object));

/* One more has it, one less. Any object of tvm-ffi's counting; any thread. */
void khub__object_retain(void *object);
void khub__object_release(void *object);

/* An array of `count` values, all None for now; its items are the object's. *items is where they go. NULL: no
 * memory. */
void *khub__array_object(size_t count, khub_value **items);

/* Copies a text into a value: inside of it up to 7 bytes, else into an object. 0, or -1: no memory. */
int khub__value_of_text(khub_value *out, const char *text, size_t length);

#endif
