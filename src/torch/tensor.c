#include "torch/tensor.h"

#include "base/error.h"
#include "tensor/array.h"
#include "tensor/object.h"
#include "torch/torch.h"

enum { MAX_NDIM = 64 }; /* libtorch's own limit for most operators */

KHUB__RARE static int fail_shape(const khub_tensor *t, khub_error *err)
{
    if (t->ndim > MAX_NDIM)
        return khub__fail(err, KHUB_E_INVAL, "has %d dimensions, at most %d can be passed", (int)t->ndim,
                          MAX_NDIM);
    if (t->ndim < 0 || (t->ndim > 0 && !t->shape)) return khub__fail(err, KHUB_E_INVAL, "has no shape");
    char text[128];
    return khub__fail(err, KHUB_E_INVAL, "has the shape %s%s", khub__shape_text(text, t->ndim, t->shape),
                      t->data ? ", which is none" : " and no data");
}

KHUB__RARE static int fail_device(const khub_tensor *t, khub_error *err)
{
    return khub__fail(err, KHUB_E_UNSUPPORTED, "is on a device of DLPack's type %d, %s", (int)t->device.type,
                      khub__torch_device(t->device.type) < 0 ? "which libtorch doesn't know"
                                                             : "and libtorch was opened for the CPU alone");
}

KHUB__RARE static int fail_stride(int64_t stride, int32_t i, khub_error *err)
{
    return khub__fail(err, KHUB_E_INVAL, "has a negative stride (%lld, of dimension %d)", (long long)stride,
                      (int)i);
}

KHUB__RARE static int fail_dtype(const khub_tensor *t, khub_error *err)
{
    char text[32];
    return khub__fail(err, KHUB_E_UNSUPPORTED, "is of %s, which libtorch hasn't",
                      khub_dtype_name(t->dtype, text));
}

KHUB__RARE static int fail_wrap(khub_error *err)
{
    return khub__fail(err, KHUB_E_UNSUPPORTED, "can't be passed: %s",
                      khub__shim.what ? khub__shim.what() : "libtorch says why on stderr");
}

/* Its strides, of at least 0 since libtorch has no others, or row-major ones; and whether it has data where
 * there are elements. */
static int read_strides(int64_t *strides, const khub_tensor *t, khub_error *err)
{
    int64_t step = 1;
    int is_empty = 0, is_huge = 0;
    if (t->ndim < 0 || t->ndim > MAX_NDIM || (t->ndim > 0 && !t->shape)) return fail_shape(t, err);
    for (int32_t i = t->ndim; i-- > 0;) {
        int64_t size = t->shape[i];
        strides[i] = t->strides ? t->strides[i] : step;
        if (size < 0) return fail_shape(t, err);
        if (strides[i] < 0) return fail_stride(strides[i], i, err);
        is_empty |= size == 0;
        if (size > 1) is_huge |= __builtin_mul_overflow(step, size, &step);
    }
    return (is_huge && !t->strides) || (!t->data && !is_empty) ? fail_shape(t, err) : KHUB_OK;
}

/* A tensor that came back: laid out as tvm-ffi's, with what it owns behind. */
typedef struct tensor_object {
    khub__object header;
    khub_tensor cell;
    khub__aten_tensor *own;
    int64_t extents[]; /* shape, then strides: libtorch's own may change under a later call */
} tensor_object;

static void destroy_tensor(void *object)
{
    khub__shim.delete_tensor(((tensor_object *)object)->own);
}

static void give_up_owner(void *data, void *owner)
{
    (void)data;
    khub__object_release(owner);
}

/* Since 2.11 libtorch can be told whom the memory belongs to; before, what came from it shares its storage.
 */
static int wrap(khub__aten_tensor **out, const khub_tensor *t, const int64_t *strides, int32_t dtype,
                int32_t device, int32_t index, void *owner)
{
    void *data = t->data ? (char *)t->data + t->byte_offset : NULL;
    int32_t strided = 0; /* at::Layout's first */
    if (khub__shim.from_blob) {
        int keeps = owner && data;
        if (keeps) khub__object_retain(owner);
        return khub__shim.from_blob(data, t->ndim, t->shape, strides, 0, dtype, device, index, out, strided,
                                    NULL, 0, keeps ? give_up_owner : NULL, owner);
    }
    if (owner && khub__object_is(owner, destroy_tensor))
        return khub__shim.reinterpret(((tensor_object *)owner)->own, t->ndim, t->shape, strides, 0, out);
    return khub__shim.from_blob_2(data, t->ndim, t->shape, strides, 0, dtype, device, index, out, strided,
                                  NULL, 0);
}

int khub__torch_tensor_wrap(khub__aten_tensor **out, const khub_tensor *t, void *owner, khub_error *err)
{
    int64_t strides[MAX_NDIM];
    int rc = read_strides(strides, t, err);
    if (rc != KHUB_OK) return rc;
    int32_t dtype = khub__torch_dtype(t->dtype), device = khub__torch_device(t->device.type);
    int is_cpu = device == khub__torch_device(KHUB_DEVICE_CPU);
    if (dtype < 0) return fail_dtype(t, err);
    if (device < 0 || (!is_cpu && !khub__torch_is_open(1))) return fail_device(t, err);
    int32_t index = is_cpu ? -1 : t->device.id; /* as ATen's own have it */
    return wrap(out, t, strides, dtype, device, index, owner) == 0 ? KHUB_OK : fail_wrap(err);
}

/* .type 0: on one that khub doesn't know. */
static khub_device device_of(khub__aten_tensor *tensor)
{
    int32_t number = -1, index = 0;
    khub__shim.get_device_type(tensor, &number);
    int32_t type = khub__torch_device_of(number);
    if (type != KHUB_DEVICE_CPU) khub__shim.get_device_index(tensor, &index);
    return (khub_device){type, index < 0 ? 0 : index};
}

static int32_t ndim_of(khub__aten_tensor *tensor)
{
    int64_t ndim = 0;
    bool defined = true;
    if (khub__shim.is_defined) khub__shim.is_defined(tensor, &defined);
    if (!defined || khub__shim.get_ndim(tensor, &ndim) != 0) return -1;
    return (int32_t)ndim;
}

static int is_strided(khub__aten_tensor *tensor)
{
    int32_t layout = 0;
    if (khub__shim.get_layout) khub__shim.get_layout(tensor, &layout);
    return layout == khub__torch_strided();
}

/* The object that it becomes: `where` it is, with libtorch's shape and strides, which are copied. After a
 * failure the tensor is still the caller's, here and in give. */
static int own(khub_value *out, khub__aten_tensor *tensor, const khub_tensor *where, khub_error *err)
{
    size_t bytes = (size_t)where->ndim * sizeof(int64_t);
    tensor_object *object = khub__object_make(KHUB_TYPE_TENSOR, sizeof(*object) + 2 * bytes, destroy_tensor);
    if (!object) return khub__fail_memory(err, "taking a tensor from libtorch");
    object->own = tensor;
    object->cell = *where;
    object->cell.shape = object->extents;
    object->cell.strides = object->extents + where->ndim;
    if (bytes) {
        memcpy(object->cell.shape, where->shape, bytes);
        memcpy(object->cell.strides, where->strides, bytes);
    }
    out->type = KHUB_TYPE_TENSOR;
    out->as.ptr = object;
    return KHUB_OK;
}

KHUB__RARE static int fail_give(const char *what, khub_error *err)
{
    return khub__fail(err, KHUB_E_UNSUPPORTED, "is a tensor %s", what);
}

static int give(khub_value *out, khub__aten_tensor *tensor, int32_t ndim, khub_dtype dtype, khub_error *err)
{
    khub_tensor where = {.ndim = ndim, .dtype = dtype};
    if (!is_strided(tensor) || khub__shim.get_sizes(tensor, &where.shape) != 0 ||
        khub__shim.get_strides(tensor, &where.strides) != 0)
        return fail_give("without strides (sparse, nested, …)", err);
    where.device = device_of(tensor);
    if (!dtype.bits) return fail_give("of a dtype that khub doesn't know", err);
    if (!where.device.type) return fail_give("on a device that khub doesn't know", err);
    if (khub__shim.get_data(tensor, &where.data) != 0) return fail_give("without memory", err);
    return own(out, tensor, &where, err);
}

/* One of aten::resolve_conj and resolve_neg, which give the tensor itself when there is nothing to do. */
static khub__aten_tensor *resolve(khub__aten_tensor *tensor, const char *name)
{
    uint64_t stack[1] = {(uint64_t)(uintptr_t)tensor};
    return khub__shim.call(name, "", stack) == 0 ? (khub__aten_tensor *)(uintptr_t)stack[0] : NULL;
}

/* Complex numbers may be marked as conjugated and views as negated, with memory as it was before: what the
 * memory says isn't what the tensor is. Takes the tensor; NULL: libtorch failed. */
static khub__aten_tensor *settle(khub__aten_tensor *tensor, khub_dtype dtype, int is_view)
{
    int is_complex = dtype.code == KHUB_DTYPE_COMPLEX;
    if (is_complex) tensor = resolve(tensor, "aten::resolve_conj");
    return tensor && (is_complex || is_view) ? resolve(tensor, "aten::resolve_neg") : tensor;
}

int khub__torch_tensor_give(khub_value *out, khub__aten_tensor *tensor, int is_view, khub_error *err)
{
    int32_t number = -1, ndim = tensor ? ndim_of(tensor) : -1;
    int rc = KHUB_OK;
    *out = khub_arg_none();
    if (ndim >= 0) {
        khub__shim.get_dtype(tensor, &number);
        khub_dtype dtype = khub__torch_dtype_of(number);
        tensor = settle(tensor, dtype, is_view);
        rc = tensor ? give(out, tensor, ndim, dtype, err)
                    : khub__fail(err, KHUB_E_UNSUPPORTED, "can't be brought into memory");
    }
    if (tensor && out->type == KHUB_TYPE_NONE) khub__shim.delete_tensor(tensor);
    return rc;
}

/* 1: it lies where the argument does and has its dtype, of which no bit of libtorch's changes the meaning.
 * Then it is on the argument's device, and has strides: *where says all. */
static int is_back(khub_tensor *where, khub__aten_tensor *tensor, const khub_tensor *argument)
{
    int64_t ndim;
    int32_t dtype;
    *where = *argument;
    where->data = NULL;
    where->byte_offset = 0;
    if (!tensor || !argument->data || argument->dtype.code == KHUB_DTYPE_COMPLEX ||
        khub__shim.get_data(tensor, &where->data) != 0 ||
        where->data != (char *)argument->data + argument->byte_offset ||
        khub__shim.get_dtype(tensor, &dtype) != 0 || dtype != khub__torch_dtype(argument->dtype) ||
        khub__shim.get_ndim(tensor, &ndim) != 0)
        return 0;
    where->ndim = (int32_t)ndim;
    return khub__shim.get_sizes(tensor, &where->shape) == 0 &&
           khub__shim.get_strides(tensor, &where->strides) == 0;
}

int khub__torch_tensor_give_back(khub_value *out, khub__aten_tensor *tensor, const khub_tensor *argument,
                                 khub_error *err)
{
    khub_tensor where;
    if (!is_back(&where, tensor, argument)) return khub__torch_tensor_give(out, tensor, 0, err);
    *out = khub_arg_none();
    int rc = own(out, tensor, &where, err);
    if (rc != KHUB_OK) khub__shim.delete_tensor(tensor);
    return rc;
}
