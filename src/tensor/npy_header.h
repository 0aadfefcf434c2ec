/* The header of a .npy file: a Python dictionary of three keys, as text. */
#ifndef TENSOR_NPY_HEADER_H
#define TENSOR_NPY_HEADER_H

#include <khub/npy.h>

/* What the header says about the bytes that follow it. */
typedef struct khub__npy_header {
    khub_dtype dtype;
    int32_t ndim;
    int64_t shape[KHUB_MAX_NDIM];
    int fortran_order;
    size_t swap; /* bytes to reverse at a time to make little-endian elements; 0: they are */
} khub__npy_header;

/* "\x93NUMPY", the version, and the length of the text after it: 10 bytes in version 1, 12 later. */
enum { KHUB__NPY_PREFIX_MAX = 12, KHUB__NPY_TEXT_MAX = 10000 };

/* Reads the first 12 bytes of a file (`have` of them are there): where the text starts, how long it is.
 * `file` is for messages. KHUB_E_FORMAT, KHUB_E_UNSUPPORTED (a later version). */
int khub__npy_prefix(size_t *start, size_t *length, const unsigned char *bytes, size_t have, const char *file,
                     khub_error *err);

/* Reads the text. KHUB_E_FORMAT, KHUB_E_UNSUPPORTED (objects, records, text, more than KHUB_MAX_NDIM
 * extents). */
int khub__npy_header_parse(khub__npy_header *out, const char *text, size_t length, const char *file,
                           khub_error *err);

/* The whole header, as NumPy writes it, of a compact array; its length is a multiple of 64 and at most
 * KHUB__NPY_WRITTEN_MAX. 0: NumPy has no word for the dtype. */
enum { KHUB__NPY_WRITTEN_MAX = 384 };
size_t khub__npy_header_write(char text[KHUB__NPY_WRITTEN_MAX], khub_dtype dtype, int32_t ndim,
                              const int64_t *shape);

#endif
