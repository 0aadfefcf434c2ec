#ifndef TENSOR_DTYPE_H
#define TENSOR_DTYPE_H

#include <khub/tensor.h>

/* Bytes of one element of a dtype that khub_dtype_parse knows (1, 2, 4, 8 or 16); 0 for any other. */
size_t khub__dtype_item(khub_dtype dtype);

#endif
