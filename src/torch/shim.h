/* libtorch's entry points: its C shim, and the few C++ functions that list operators, which are called as C
 * functions (posix/library.c says how they are laid out). Bound once, before any operator is known; then only
 * read. */
#ifndef TORCH_SHIM_H
#define TORCH_SHIM_H

#include <khub/error.h>
#include <khub/tensor.h>

#include <stdbool.h>

/* Of a function that is kept out of line, so that a call that succeeds neither jumps around it nor saves
 * registers for it. */
#define KHUB__RARE __attribute__((cold))

typedef struct khub__aten_tensor khub__aten_tensor; /* AtenTensorHandle: an at::Tensor on the heap */
typedef struct khub__aten_list khub__aten_list;     /* StableListHandle */
typedef struct khub__aten_string khub__aten_string; /* StringHandle */

/* Those that say 0 or not 0 leave their reason with `what`. Pointers of an older libtorch may be NULL where
 * shim.c's table doesn't say "needed". */
typedef struct khub__shim_entries {
    /* the call: of 2.10 with the version of the schemas that the caller knows, else of 2.7 */
    int32_t (*call_versioned)(const char *name, const char *overload, uint64_t *stack, uint64_t version);
    int32_t (*call)(const char *name, const char *overload, uint64_t *stack);
    uint64_t (*abi_version)(void); /* major << 56 | minor << 48 */
    const char *(*what)(void);     /* of this thread's last failure, one or more lines */
    bool (*grad_is_enabled)(void);
    void (*grad_set_enabled)(bool enabled);
    /* tensors */
    int32_t (*from_blob)(void *data, int64_t ndim, const int64_t *sizes, const int64_t *strides,
                         int64_t offset, int32_t dtype, int32_t device_type, int32_t device_index,
                         khub__aten_tensor **out, int32_t layout, const uint8_t *metadata,
                         int64_t metadata_size, void (*deleter)(void *data, void *user), void *user);
    int32_t (*from_blob_2)(void *data, int64_t ndim, const int64_t *sizes, const int64_t *strides,
                           int64_t offset, int32_t dtype, int32_t device_type, int32_t device_index,
                           khub__aten_tensor **out, int32_t layout, const uint8_t *metadata,
                           int64_t metadata_size);
    int32_t (*reinterpret)(khub__aten_tensor *tensor, int64_t ndim, const int64_t *sizes,
                           const int64_t *strides, int64_t more_offset, khub__aten_tensor **out);
    int32_t (*delete_tensor)(khub__aten_tensor *tensor);
    int32_t (*is_defined)(khub__aten_tensor *tensor, bool *out);
    int32_t (*get_data)(khub__aten_tensor *tensor, void **out);
    int32_t (*get_ndim)(khub__aten_tensor *tensor, int64_t *out);
    int32_t (*get_sizes)(khub__aten_tensor *tensor, int64_t **out);
    int32_t (*get_strides)(khub__aten_tensor *tensor, int64_t **out);
    int32_t (*get_dtype)(khub__aten_tensor *tensor, int32_t *out);
    int32_t (*get_device_type)(khub__aten_tensor *tensor, int32_t *out);
    int32_t (*get_device_index)(khub__aten_tensor *tensor, int32_t *out);
    int32_t (*get_layout)(khub__aten_tensor *tensor, int32_t *out);
    /* what doesn't fit into 64 bits */
    int32_t (*new_list)(size_t size, khub__aten_list **out);
    int32_t (*list_size)(khub__aten_list *list, size_t *out);
    int32_t (*list_get)(khub__aten_list *list, size_t index, uint64_t *out);
    int32_t (*list_push)(khub__aten_list *list, uint64_t value);
    int32_t (*delete_list)(khub__aten_list *list);
    int32_t (*new_string)(const char *data, size_t length, khub__aten_string **out);
    int32_t (*string_length)(khub__aten_string *string, size_t *out);
    int32_t (*string_data)(khub__aten_string *string, const char **out);
    int32_t (*delete_string)(khub__aten_string *string);
    int32_t (*new_value)(uint64_t **out);
    int32_t (*delete_value)(uint64_t *value);
    void *(*operator_new)(size_t bytes); /* C++'s, which libtorch frees with */
    void (*operator_delete)(void *p);
    /* threads of at::parallel_for; also of the CPU's BLAS */
    void (*set_num_threads)(int threads);
    /* the dispatcher */
    void *(*dispatcher)(void);
    void (*dispatcher_names)(void);
    void (*dispatcher_find)(void);
    void (*entry_state)(void);
} khub__shim_entries;

extern khub__shim_entries khub__shim;
extern uint64_t khub__torch_version; /* as abi_version says it; 0: older than 2.9 */

/* The oldest that can be called. */
#define KHUB__TORCH_OLDEST "2.7"

/* Fills in khub__shim from an open library. `version` is for words ("2.15.0"); NULL: unknown.
 * KHUB_E_UNSUPPORTED names the first entry point that is missing. */
int khub__torch_bind(void *library, const char *version, khub_error *err);

/* libtorch's number for a dtype, -1: it has none (or this version hasn't); and back: 0 bits, unknown. */
int32_t khub__torch_dtype(khub_dtype dtype);
khub_dtype khub__torch_dtype_of(int32_t number);

/* libtorch's number for a device's type, -1: it has none; and back: 0, unknown. */
int32_t khub__torch_device(int32_t type);
int32_t khub__torch_device_of(int32_t number);

/* libtorch's number for a layout ("strided") or memory format ("channels_last") by name, -1: unknown; and
 * back: NULL, unknown. */
int32_t khub__torch_layout(const char *name, size_t length);
const char *khub__torch_layout_of(int32_t number);
int32_t khub__torch_strided(void); /* khub__torch_layout's number for "strided" */
int32_t khub__torch_memory_format(const char *name, size_t length);
const char *khub__torch_memory_format_of(int32_t number);

/* A device as the stack of a call has it: both halves of 64 bits since 2.10, two bytes before. */
uint64_t khub__torch_pack_device(int32_t number, int32_t index);
void khub__torch_unpack_device(int32_t *number, int32_t *index, uint64_t packed);

#endif
