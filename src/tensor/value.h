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

/* DLManagedTensorVersioned: a tensor with what frees it. */
typedef struct khub__managed_tensor {
    uint32_t major, minor; /* of DLPack */
    void *owner;
    void (*deleter)(struct khub__managed_tensor *self);
    uint64_t flags;
    khub_tensor tensor;
} khub__managed_tensor;

/* DLPackManagedTensorAllocator: memory for a tensor like `prototype`; 0, or not 0 after set_error. */
typedef int (*khub__tensor_allocator)(khub_tensor *prototype, khub__managed_tensor **out, void *user,
                                      void (*set_error)(void *user, const char *kind, const char *message));

/* The functions of libtvm_ffi that values need. */
typedef struct khub__value_runtime {
    void (*take_error)(void **error); /* TVMFFIErrorMoveFromRaised: *error is the caller's, or NULL */
    int (*release)(void *object);     /* TVMFFIObjectDecRef */
    /* TVMFFIEnvSetStream: of this thread; NULL: there is none */
    int (*set_stream)(int32_t device_type, int32_t device_id, void *stream, void **before);
    /* TVMFFIEnvSetDLPackManagedTensorAllocator: of this thread; NULL: there is none */
    int (*set_allocator)(khub__tensor_allocator allocator, int for_all, khub__tensor_allocator *before);
} khub__value_runtime;

/* From now on errors are taken from this runtime and results released by it. Kept by pointer, for good.
 * Called by whoever opens libtvm_ffi; until then nobody can have made an object. Any thread. */
void khub__value_set_runtime(const khub__value_runtime *runtime);

/* The one that was set; NULL: none yet. Any thread. */
const khub__value_runtime *khub__value_runtime_in_use(void);

#endif
