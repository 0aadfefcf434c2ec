#include "torch/shim.h"

#include "base/error.h"
#include "torch/library.h"

#include <stddef.h>

khub__shim_entries khub__shim;
uint64_t khub__torch_version;

enum need { OPTIONAL, NEEDED };

/* Where it goes, its name, whether nothing works without it. `since` is for the reader: what is looked at is
 * whether the symbol is there. */
#define ENTRY(field, since, need, name)                                                                      \
    {                                                                                                        \
        offsetof(khub__shim_entries, field), since, need, name                                               \
    }
static const struct entry {
    size_t offset;
    const char *since;
    enum need need;
    const char *name;
} entries[] = {
    ENTRY(call, "2.7", NEEDED, "aoti_torch_call_dispatcher"),
    ENTRY(call_versioned, "2.10", OPTIONAL, "torch_call_dispatcher"),
    ENTRY(abi_version, "2.9", OPTIONAL, "aoti_torch_abi_version"),
    ENTRY(what, "2.13", OPTIONAL, "torch_exception_get_what_without_backtrace"),
    ENTRY(grad_is_enabled, "2.2", NEEDED, "aoti_torch_grad_mode_is_enabled"),
    ENTRY(grad_set_enabled, "2.2", NEEDED, "aoti_torch_grad_mode_set_enabled"),
    ENTRY(from_blob, "2.11", OPTIONAL, "torch_from_blob"),
    ENTRY(from_blob_2, "2.4", NEEDED, "aoti_torch_create_tensor_from_blob_v2"),
    ENTRY(reinterpret, "2.1", NEEDED, "aoti_torch__reinterpret_tensor"),
    ENTRY(delete_tensor, "2.1", NEEDED, "aoti_torch_delete_tensor_object"),
    ENTRY(is_defined, "2.9", OPTIONAL, "aoti_torch_is_defined"),
    ENTRY(get_data, "2.1", NEEDED, "aoti_torch_get_data_ptr"),
    ENTRY(get_ndim, "2.2", NEEDED, "aoti_torch_get_dim"),
    ENTRY(get_sizes, "2.1", NEEDED, "aoti_torch_get_sizes"),
    ENTRY(get_strides, "2.1", NEEDED, "aoti_torch_get_strides"),
    ENTRY(get_dtype, "2.2", NEEDED, "aoti_torch_get_dtype"),
    ENTRY(get_device_type, "2.2", NEEDED, "aoti_torch_get_device_type"),
    ENTRY(get_device_index, "2.2", NEEDED, "aoti_torch_get_device_index"),
    ENTRY(get_layout, "2.4", OPTIONAL, "aoti_torch_get_layout"),
    ENTRY(new_list, "2.10", OPTIONAL, "torch_new_list_reserve_size"),
    ENTRY(list_size, "2.10", OPTIONAL, "torch_list_size"),
    ENTRY(list_get, "2.10", OPTIONAL, "torch_list_get_item"),
    ENTRY(list_push, "2.10", OPTIONAL, "torch_list_push_back"),
    ENTRY(delete_list, "2.10", OPTIONAL, "torch_delete_list"),
    ENTRY(new_string, "2.10", OPTIONAL, "torch_new_string_handle"),
    ENTRY(string_length, "2.10", OPTIONAL, "torch_string_length"),
    ENTRY(string_data, "2.10", OPTIONAL, "torch_string_c_str"),
    ENTRY(delete_string, "2.10", OPTIONAL, "torch_delete_string"),
    ENTRY(new_value, "2.13", OPTIONAL, "torch_new_stable_ivalue"),
    ENTRY(delete_value, "2.13", OPTIONAL, "torch_delete_stable_ivalue"),
    ENTRY(operator_new, "C++", NEEDED, "_Znwm"),
    ENTRY(operator_delete, "C++", NEEDED, "_ZdlPv"),
    ENTRY(set_num_threads, "C++", NEEDED, "_ZN2at15set_num_threadsEi"),
    ENTRY(dispatcher, "C++", NEEDED, "_ZN3c1010Dispatcher13realSingletonEv"),
    ENTRY(dispatcher_names, "C++", NEEDED, "_ZN3c1010Dispatcher13getAllOpNamesEv"),
    ENTRY(dispatcher_find, "C++", NEEDED, "_ZN3c1010Dispatcher6findOpERKNS_12OperatorNameE"),
    ENTRY(entry_state, "C++", NEEDED, "_ZNK3c104impl13OperatorEntry9dumpStateB5cxx11Ev"),
};

enum { UNKNOWN = -1 };

/* libtorch's numbers, as its functions say them, of things that DLPack numbers otherwise or that have names.
 */
static struct number {
    const char *symbol;
    const char *name; /* NULL: goes by `dtype` or `device` */
    khub_dtype dtype; /* DLPack's */
    int32_t device;   /* DLPack's */
    int32_t number;   /* UNKNOWN: this libtorch hasn't it */
} dtypes[] =
    {
        {"aoti_torch_dtype_float32", .dtype = {KHUB_DTYPE_FLOAT, 32, 1}},
        {"aoti_torch_dtype_bfloat16", .dtype = {KHUB_DTYPE_BFLOAT, 16, 1}},
        {"aoti_torch_dtype_float16", .dtype = {KHUB_DTYPE_FLOAT, 16, 1}},
        {"aoti_torch_dtype_int64", .dtype = {KHUB_DTYPE_INT, 64, 1}},
        {"aoti_torch_dtype_int32", .dtype = {KHUB_DTYPE_INT, 32, 1}},
        {"aoti_torch_dtype_float64", .dtype = {KHUB_DTYPE_FLOAT, 64, 1}},
        {"aoti_torch_dtype_bool", .dtype = {KHUB_DTYPE_BOOL, 8, 1}},
        {"aoti_torch_dtype_uint8", .dtype = {KHUB_DTYPE_UINT, 8, 1}},
        {"aoti_torch_dtype_int8", .dtype = {KHUB_DTYPE_INT, 8, 1}},
        {"aoti_torch_dtype_int16", .dtype = {KHUB_DTYPE_INT, 16, 1}},
        {"aoti_torch_dtype_uint16", .dtype = {KHUB_DTYPE_UINT, 16, 1}},
        {"aoti_torch_dtype_uint32", .dtype = {KHUB_DTYPE_UINT, 32, 1}},
        {"aoti_torch_dtype_uint64", .dtype = {KHUB_DTYPE_UINT, 64, 1}},
        {"aoti_torch_dtype_complex32", .dtype = {KHUB_DTYPE_COMPLEX, 32, 1}},
        {"aoti_torch_dtype_complex64", .dtype = {KHUB_DTYPE_COMPLEX, 64, 1}},
        {"aoti_torch_dtype_complex128", .dtype = {KHUB_DTYPE_COMPLEX, 128, 1}},
        {"aoti_torch_dtype_float8_e4m3fn", .dtype = {KHUB_DTYPE_FLOAT8_E4M3FN, 8, 1}},
        {"aoti_torch_dtype_float8_e5m2", .dtype = {KHUB_DTYPE_FLOAT8_E5M2, 8, 1}},
        {"aoti_torch_dtype_float8_e4m3fnuz", .dtype = {11 /* kDLFloat8_e4m3fnuz */, 8, 1}},
        {"aoti_torch_dtype_float8_e5m2fnuz", .dtype = {13 /* kDLFloat8_e5m2fnuz */, 8, 1}},
        {"torch_dtype_float8_e8m0fnu", .dtype = {14 /* kDLFloat8_e8m0fnu */, 8, 1}},
        {"torch_dtype_float4_e2m1fn_x2", .dtype = {17 /* kDLFloat4_e2m1fn */, 4, 2}},
        {NULL},
},
  devices[] =
      {
          {"aoti_torch_device_type_cpu", .device = KHUB_DEVICE_CPU},
          {"aoti_torch_device_type_cuda", .device = KHUB_DEVICE_CUDA},
          {"aoti_torch_device_type_cpu", .device = KHUB_DEVICE_CUDA_HOST},
          {"aoti_torch_device_type_cuda", .device = KHUB_DEVICE_ROCM}, /* a libtorch for ROCm calls it so */
          {"aoti_torch_device_type_cpu", .device = KHUB_DEVICE_ROCM_HOST},
          {"aoti_torch_device_type_mps", .device = KHUB_DEVICE_METAL},
          {"aoti_torch_device_type_xpu", .device = KHUB_DEVICE_ONEAPI},
          {NULL},
},
  layouts[] =
      {
          {"aoti_torch_layout_strided", "strided"},
          {"aoti_torch_layout_sparse_coo", "sparse_coo"},
          {"aoti_torch_layout_sparse_csr", "sparse_csr"},
          {"aoti_torch_layout_sparse_csc", "sparse_csc"},
          {"aoti_torch_layout_sparse_bsr", "sparse_bsr"},
          {"aoti_torch_layout_sparse_bsc", "sparse_bsc"},
          {"aoti_torch_layout__mkldnn", "mkldnn"},
          {"aoti_torch_layout_jagged", "jagged"},
          {NULL},
},
  memory_formats[] = {
      {"aoti_torch_memory_format_contiguous_format", "contiguous_format"},
      {"aoti_torch_memory_format_preserve_format", "preserve_format"},
      {"aoti_torch_memory_format_channels_last", "channels_last"},
      {"aoti_torch_memory_format_channels_last_3d", "channels_last_3d"},
      {NULL},
};

static int packs_in_halves; /* 1: a device is in the stack as since 2.10 */

static void read_numbers(struct number *list, void *library)
{
    for (; list->symbol; list++) {
        void *symbol = khub__torch_library_symbol(library, list->symbol);
        int32_t (*get)(void);
        memcpy(&get, &symbol, sizeof(get));
        list->number = get ? get() : UNKNOWN;
    }
}

int khub__torch_bind(void *library, const char *version, khub_error *err)
{
    for (size_t i = 0; i < sizeof(entries) / sizeof(*entries); i++) {
        void *symbol = khub__torch_library_symbol(library, entries[i].name);
        if (!symbol && entries[i].need == NEEDED)
            return khub__fail(err, KHUB_E_UNSUPPORTED,
                              "libtorch%s%s: has no %s; Torch " KHUB__TORCH_OLDEST " or newer is needed",
                              version ? " " : "", version ? version : "", entries[i].name);
        memcpy((char *)&khub__shim + entries[i].offset, &symbol, sizeof(symbol));
    }
    read_numbers(dtypes, library);
    read_numbers(devices, library);
    read_numbers(layouts, library);
    read_numbers(memory_formats, library);
    packs_in_halves = khub__shim.call_versioned != NULL;
    khub__torch_version = khub__shim.abi_version ? khub__shim.abi_version() : 0;
    return KHUB_OK;
}

static int same_dtype(khub_dtype a, khub_dtype b)
{
    return a.code == b.code && a.bits == b.bits && a.lanes == b.lanes;
}

int32_t khub__torch_dtype(khub_dtype dtype)
{
    for (const struct number *n = dtypes; n->symbol; n++)
        if (same_dtype(n->dtype, dtype)) return n->number;
    return UNKNOWN;
}

static const struct number *by_number(const struct number *list, int32_t number)
{
    for (; list->symbol; list++)
        if (list->number == number && number != UNKNOWN) return list;
    return NULL;
}

khub_dtype khub__torch_dtype_of(int32_t number)
{
    const struct number *found = by_number(dtypes, number);
    return found ? found->dtype : khub_dtype_of(0, 0);
}

int32_t khub__torch_device(int32_t type)
{
    for (const struct number *n = devices; n->symbol; n++)
        if (n->device == type) return n->number;
    return UNKNOWN;
}

int32_t khub__torch_device_of(int32_t number)
{
    const struct number *found = by_number(devices, number);
    return found ? found->device : 0;
}

static int32_t by_name(const struct number *list, const char *name, size_t length)
{
    for (; list->symbol; list++)
        if (strlen(list->name) == length && memcmp(list->name, name, length) == 0) return list->number;
    return UNKNOWN;
}

static const char *name_of(const struct number *list, int32_t number)
{
    const struct number *found = by_number(list, number);
    return found ? found->name : NULL;
}

int32_t khub__torch_layout(const char *name, size_t length)
{
    return by_name(layouts, name, length);
}

int32_t khub__torch_strided(void)
{
    return layouts[0].number;
}

const char *khub__torch_layout_of(int32_t number)
{
    return name_of(layouts, number);
}

int32_t khub__torch_memory_format(const char *name, size_t length)
{
    return by_name(memory_formats, name, length);
}

const char *khub__torch_memory_format_of(int32_t number)
{
    return name_of(memory_formats, number);
}

uint64_t khub__torch_pack_device(int32_t number, int32_t index)
{
    if (packs_in_halves) return (uint64_t)(uint32_t)number << 32 | (uint32_t)index;
    return (uint64_t)(uint8_t)index << 8 | (uint8_t)number;
}

void khub__torch_unpack_device(int32_t *number, int32_t *index, uint64_t packed)
{
    *number = packs_in_halves ? (int32_t)(uint32_t)(packed >> 32) : (int8_t)(uint8_t)packed;
    *index = packs_in_halves ? (int32_t)(uint32_t)packed : (int8_t)(uint8_t)(packed >> 8);
}
