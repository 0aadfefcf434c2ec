/* NumPy's file format for one array (.npy, versions 1.0 to 3.0), little-endian, C order. */
#ifndef KHUB_NPY_H
#define KHUB_NPY_H

#include <khub/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* An array that owns its memory. `tensor` is compact, on the CPU, 64-byte aligned. */
typedef struct khub_array {
    khub_tensor tensor;
    int64_t shape[KHUB_MAX_NDIM];
    void *memory; /* freed by khub_array_free */
} khub_array;

/* An array of `ndim` (at most KHUB_MAX_NDIM) extents, zeroed. *out is the caller's, to be given to
 * khub_array_free; do not copy the struct: `tensor.shape` points into it. KHUB_E_INVAL, KHUB_E_NOMEM. */
KHUB_API int khub_array_new(khub_array *out, khub_dtype dtype, int32_t ndim, const int64_t *shape,
                            khub_error *err);

/* Frees what khub_array_new or khub_npy_read filled in, and zeroes it. NULL and zeroed are no-ops. */
KHUB_API void khub_array_free(khub_array *array);

/* Reads the array in `path`. Fortran order is transposed into C order, big-endian data is swapped; the
 * header is checked against the file's size before memory is taken. bfloat16 and float8 are read from the
 * void types that NumPy writes for them ("|V2" as bfloat16) and from ml_dtypes' names.
 * KHUB_E_NOTFOUND, KHUB_E_IO, KHUB_E_FORMAT (the file and the fact), KHUB_E_UNSUPPORTED (objects,
 * records, text), KHUB_E_NOMEM. */
KHUB_API int khub_npy_read(khub_array *out, const char *path, khub_error *err);

/* Writes a CPU tensor of any strides as a version 1.0 file, complete or not at all (a temporary file is
 * renamed). KHUB_E_IO, KHUB_E_NOSPACE, KHUB_E_UNSUPPORTED (a dtype NumPy has no word for), KHUB_E_NOMEM. */
KHUB_API int khub_npy_write(const char *path, const khub_tensor *tensor, khub_error *err);

/* Writes tensors[i] to paths[i], all of them or none: a file is put in place once every one is written. */
KHUB_API int khub_npy_write_all(const char *const *paths, const khub_tensor *const *tensors, size_t count,
                                khub_error *err);

#ifdef __cplusplus
}
#endif

#endif
