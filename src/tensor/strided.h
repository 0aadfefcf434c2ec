/* Moving elements between compact memory and a tensor whose elements lie anywhere. */
#ifndef TENSOR_STRIDED_H
#define TENSOR_STRIDED_H

#include <khub/tensor.h>

/* A place in a tensor, going through its elements in row-major order. */
typedef struct khub__strided {
    char *at;    /* the next element */
    size_t item; /* bytes of one: 1, 2, 4, 8 or 16 */
    int32_t ndim;
    int64_t shape[KHUB_MAX_NDIM], index[KHUB_MAX_NDIM];
    uint64_t step[KHUB_MAX_NDIM]; /* bytes, modulo 2^64: a negative stride is a large step */
} khub__strided;

/* At the first element of `tensor`: any strides, at most KHUB_MAX_NDIM dimensions, elements of `item` bytes.
 */
void khub__strided_start(khub__strided *s, const khub_tensor *tensor, size_t item);

/* The same for the tensor's transpose: its elements in column-major order. */
void khub__strided_start_transposed(khub__strided *s, const khub_tensor *tensor, size_t item);

/* Copies the next `count` elements out of the tensor, or into it. No more than there are. */
void khub__strided_gather(khub__strided *s, void *compact, size_t count);
void khub__strided_scatter(khub__strided *s, const void *compact, size_t count);

#endif
