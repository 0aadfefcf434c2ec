/* The elements of one tensor written over another's. */
#ifndef TENSOR_COPY_H
#define TENSOR_COPY_H

#include <khub/tensor.h>

/* Why `from` can't be copied to `to`, as words that follow a name ("is float64, float32 is expected"); NULL:
 * it can. Same shape and dtype, elements of 1, 2, 4, 8 or 16 bytes, both on the CPU. `buffer` (at least 200
 * bytes) is for the words.
 */
const char *khub__copy_refusal(char *buffer, size_t bytes, const khub_tensor *to, const khub_tensor *from);

/* Writes the elements of `from` over those of `to`. Any strides; the two don't overlap. */
void khub__tensor_write(const khub_tensor *to, const khub_tensor *from);

#endif
