/* Tensors with the same leading axes, walked together row by row: any number of axes, any strides. */
#ifndef KHUB_KERNELS_ROWS_H
#define KHUB_KERNELS_ROWS_H

#include "ffi.h"

enum { KHUB__MAX_TOGETHER = 4 };

/* Rows at equal distances, as many as the strides allow: what a path's function works on. */
typedef struct khub__rows {
    char *data[KHUB__MAX_TOGETHER];   /* the first row of each tensor; NULL: None */
    int64_t step[KHUB__MAX_TOGETHER]; /* bytes from a row to the next */
    int64_t count;
    int stream; /* 1: the first tensor is better written past the caches */
} khub__rows;

typedef struct khub__walk {
    khub__rows rows;
    int axes; /* that are walked outside the rows, 0 … axes - 1 */
    struct {
        int64_t extent, at, step[KHUB__MAX_TOGETHER];
    } axis[KHUB__MAX_AXES];
} khub__walk;

/* Whether the first of `count` tensors (NULL: None) is better written past the caches: it is large, and not
 * the memory of another, whose lines are there already. */
int khub__streams(const DLTensor *const *tensors, int count);

/* `count` tensors (NULL: None, the first isn't), all but their last `inner` axes alike; at most
 * KHUB__MAX_AXES axes. 1: walk->rows are the first rows. 0: there are none, or they are empty. */
int khub__walk_first(khub__walk *walk, const DLTensor *const *tensors, int count, int inner);
/* 1: walk->rows are the next rows. 0: that was all. */
int khub__walk_next(khub__walk *walk);

#endif
