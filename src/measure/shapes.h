/* The shapes a layer is timed with, by the names of their extents: "m=252,n=384,k=384". */
#ifndef MEASURE_SHAPES_H
#define MEASURE_SHAPES_H

#include "measure/cases.h"

/* A call of `layer` with tensors of `dtype` and the shape `text`, as <khub/bench.h> describes it. What `text`
 * leaves out is as in the layer's first shape; an optional tensor is there (`bias=0`: it isn't) but for the
 * lengths of attention, a bool is false (`causal=1`). KHUB_E_INVAL: what is wrong, and what there is. */
int khub__shape_parse(khub__case *out, const khub__layer_def *layer, khub_dtype dtype, const char *text,
                      khub_error *err);

enum { KHUB__SHAPE_TEXT = 160 };

/* The shape in full, but for what is as usual: "b=1,t=1,s=2048,h=32,g=8,d=128,causal=1". */
const char *khub__shape_text_of(char text[KHUB__SHAPE_TEXT], const khub__case *c);

#endif
