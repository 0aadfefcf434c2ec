/* What a value may point at, as tvm-ffi's stable ABI lays it out, and how the runtime that owns it is
 * reached. */
#ifndef TENSOR_VALUE_H
#define TENSOR_VALUE_H

#include <khub/function.h>

/* TVMFFIObject: what every counted object starts with; its cell follows. */
typedef struct khub__object {
    uint64_t counts;
    int32_t type;
    uint32_t padding;
    void (*deleter)(void *self, int flags);
} khub__object;

/* TVMFFIByteArray: the cell of a string, and a piece of an error's. */
typedef struct khub__byte_cell {
    const char *data;
    size_t size;
} khub__byte_cell;

/* The start of TVMFFIErrorCell. What follows differs between 0.1.x releases (user reports, F7) and is
 * never touched: an error may be smaller than the header of today says. */
typedef struct khub__error_cell {
    khub__byte_cell kind;
    khub__byte_cell message;
} khub__error_cell;

/* The functions of libtvm_ffi that values need. */
typedef struct khub__value_runtime {
    void (*take_error)(void **error); /* TVMFFIErrorMoveFromRaised: *error is the caller's, or NULL */
    int (*release)(void *object);     /* TVMFFIObjectDecRef */
    /* TVMFFIEnvSetStream: of this thread; NULL: there is none */
    int (*set_stream)(int32_t device_type, int32_t device_id, void *stream, void **before);
} khub__value_runtime;

/* From now on errors are taken from this runtime and results released by it. Kept by pointer, for good.
 * Called by whoever opens libtvm_ffi; until then nobody can have made an object. Any thread. */
void khub__value_set_runtime(const khub__value_runtime *runtime);

#endif
