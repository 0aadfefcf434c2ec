/* The arguments of a standard function, checked: as docs/layers.md says for its layer. */
#ifndef OPS_ARGS_H
#define OPS_ARGS_H

#include "layer/names.h"

/* One call. Entries are by position in the layer's order; what an argument isn't stays NULL or 0. */
typedef struct khub__op {
    const khub__layer_def *layer;
    const khub_tensor *tensor[KHUB__MAX_ARGS];
    double number[KHUB__MAX_ARGS];
} khub__op;

/* Takes the arguments apart: number of them, kinds, CPU, float32 or bfloat16 and all the same, last axis
 * contiguous. 0, or -1 with the error raised. */
int khub__op_open(khub__op *op, const char *layer, const khub_value *args, int32_t n);

/* Raises "LAYER: ARG is (2, 3), (2, 4) is expected" unless argument `at` has this shape (-1: any extent). */
int khub__op_shape(const khub__op *op, int32_t at, int32_t ndim, const int64_t *shape);

/* The same with the shape of argument `as`. */
int khub__op_same_shape(const khub__op *op, int32_t at, int32_t as);

/* Raises a ValueError about argument `at`: "LAYER: ARG TEXT". Returns -1. */
int khub__op_wrong(const khub__op *op, int32_t at, const char *text);

/* Raises a MemoryError. Returns -1. */
int khub__op_memory(const khub__op *op);

/* Number of rows: the product of all extents but the last; 1 for one axis. The last extent. */
int64_t khub__op_rows(const khub_tensor *tensor);
int64_t khub__op_width(const khub_tensor *tensor);

/* Copies `count` elements as float32 from (to) row `row`, starting at element `from` of the last axis. */
void khub__op_load(float *to, const khub_tensor *tensor, int64_t row, int64_t from, int64_t count);
/* Rounds values as if they were stored in `like`'s dtype and loaded again. */
void khub__op_round(const khub_tensor *like, float *values, int64_t count);
void khub__op_store(const khub_tensor *tensor, int64_t row, int64_t from, const float *values, int64_t count);

/* Attention's arguments, checked; 0, or -1 with the error raised. */
int khub__attention_check(const khub__op *op);

/* The keys that query i of batch row b sees, from … until - 1; both the same when there are none. */
typedef struct khub__keys {
    int64_t from, until;
} khub__keys;
khub__keys khub__attention_keys(const khub__op *op, int64_t b, int64_t i);

#endif
