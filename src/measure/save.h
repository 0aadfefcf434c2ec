/* The arguments of a case as files. */
#ifndef MEASURE_SAVE_H
#define MEASURE_SAVE_H

#include "measure/cases.h"

/* Writes DIR/LAYER.ARG.npy for every tensor that goes in, and DIR/LAYER.ARG.exact.npy (float64) for every one
 * that comes out: all or none. As khub_npy_write. */
int khub__save_case(const char *directory, const khub__case *c, khub_error *err);

#endif
