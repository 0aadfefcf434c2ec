#include "layer/prepare.h"

#include "base/error.h"
#include "gpu/gpu.h"
#include "tensor/array.h"

/* A prepared weight is the weight in another order, padded, perhaps in a wider type. What asks for much more
 * is broken, and must not take the memory of the machine. */
enum { MOST_TIMES = 64, MOST_MORE = 1 << 20 };

static int call(const khub_function *function, const char *name, const khub_tensor *prepared,
                const khub_tensor *original, khub_error *err)
{
    const khub_value args[] = {khub_arg_tensor(prepared), khub_arg_tensor(original)};
    khub_error why = {0};
    int rc = khub_function_call(function, args, 2, NULL, &why);
    return rc == KHUB_OK ? rc : khub__fail(err, rc, "%s: %s", name, why.message);
}

static int check_wanted(const khub_tensor *wanted, const int64_t *shape, const char *name,
                        const khub_tensor *original, khub_error *err)
{
    if (wanted->shape != shape)
        return khub__fail(err, KHUB_E_KERNEL, "%s: replaced the shape that it was to fill in", name);
    if (wanted->ndim < 0 || wanted->ndim > KHUB_MAX_NDIM)
        return khub__fail(err, KHUB_E_KERNEL, "%s: asks for a tensor of %d dimensions: 0 to %d are possible",
                          name, (int)wanted->ndim, KHUB_MAX_NDIM);
    int64_t bytes = khub_tensor_bytes(wanted), given = khub_tensor_bytes(original);
    if (bytes >= 0 && given >= 0 && (bytes - MOST_MORE + MOST_TIMES - 1) / MOST_TIMES <= given)
        return KHUB_OK;
    char dtype[32], extents[128];
    return khub__fail(err, KHUB_E_KERNEL, "%s: asks for %s%s in place of %lld bytes, which makes no sense",
                      name, khub_dtype_name(wanted->dtype, dtype),
                      khub__shape_text(extents, wanted->ndim, shape), (long long)given);
}

/* The function gets a copy of the tensor, so that nothing it does to it changes ours. */
static int fill(khub_array *out, const khub_function *function, const char *name, const khub_tensor *original,
                khub_error *err)
{
    khub_tensor copy = out->tensor;
    int64_t shape[KHUB_MAX_NDIM];
    memcpy(shape, out->shape, sizeof(shape));
    copy.shape = shape;
    return call(function, name, &copy, original, err);
}

/* Memory of zeros on the host. */
static int make_here(khub__prepared *out, khub__shelf **last, const khub_tensor *wanted, const char *name,
                     khub_error *err)
{
    khub_array *array = &out->array;
    int64_t bytes;
    int rc = khub__array_describe(array, &bytes, wanted->dtype, wanted->ndim, wanted->shape, name, err);
    if (rc != KHUB_OK) return rc;
    if (bytes >= KHUB__SHELF_LEAST) array->tensor.data = khub__shelf_take(&out->on, last, (size_t)bytes);
    int has_memory = bytes < KHUB__SHELF_LEAST ? khub__array_take(array, bytes) : array->tensor.data != NULL;
    if (!has_memory) return khub__array_no_memory(array, name, err);
    if (array->tensor.data) memset(array->tensor.data, 0, (size_t)bytes);
    return KHUB_OK;
}

/* Memory of zeros on the device. */
static int make_there(khub__prepared *out, khub_gpu *gpu, const khub_tensor *wanted, khub_error *err)
{
    int rc = khub_gpu_array_new(&out->there, gpu, wanted, err);
    if (rc == KHUB_OK) rc = khub__gpu_clear(gpu, &out->there, err);
    memcpy(out->array.shape, out->there.shape, sizeof(out->array.shape));
    out->array.tensor = out->there.tensor;
    out->array.tensor.shape = out->array.shape;
    return rc;
}

void khub__prepared_free(khub__prepared *prepared)
{
    if (!prepared->there.gpu) khub_array_free(&prepared->array);
    khub_gpu_array_free(&prepared->there);
    khub__shelf_give_up(prepared->on);
    prepared->on = NULL;
}

int khub__prepare(khub__prepared *out, khub__shelf **last, khub_gpu *gpu, const khub_function *function,
                  const char *name, const khub_tensor *original, khub_error *err)
{
    int64_t shape[KHUB_MAX_NDIM] = {0};
    khub_tensor wanted = khub_tensor_over(NULL, original->dtype, 0, shape);
    memset(out, 0, sizeof(*out));
    int rc = call(function, name, &wanted, original, err);
    if (rc == KHUB_OK) rc = check_wanted(&wanted, shape, name, original, err);
    if (rc == KHUB_OK)
        rc = gpu ? make_there(out, gpu, &wanted, err) : make_here(out, last, &wanted, name, err);
    if (rc == KHUB_OK) rc = fill(&out->array, function, name, original, err);
    if (rc == KHUB_OK && gpu) rc = khub_gpu_synchronize(gpu, err);
    if (rc != KHUB_OK) khub__prepared_free(out);
    return rc;
}
