/* RMSNorm and LayerNorm, with and without a residual that is added first; once for each path. */
#include "norm.h"

#include "norm_row.h"

/* Where no sum is wanted it goes where the result will be. */
VEC void norm_rows(const khub__rows *rows, const norm_params *p, int type, int added, int centered)
{
    const int summed = added && rows->data[NORM_SUM];
    for (int64_t row = 0; row < rows->count; row++) {
        norm_one one = {.out = rows->data[NORM_OUT] + row * rows->step[NORM_OUT],
                        .x = rows->data[NORM_X] + row * rows->step[NORM_X],
                        .p = p};
        if (added) one.residual = rows->data[NORM_RESIDUAL] + row * rows->step[NORM_RESIDUAL];
        one.sum = summed ? rows->data[NORM_SUM] + row * rows->step[NORM_SUM] : one.out;
        one.stream = rows->stream && summed == added && v_may_stream(one.out);
        if (norm_row(one, type, added, centered, 0)) continue;
        if (added) one.x = one.sum;
        huge_row(one, type, centered);
    }
    if (rows->stream) v_stream_end();
}

#define DEFINE(name, type, added, centered)                                                                  \
    static void name(const khub__rows *rows, const norm_params *params)                                      \
    {                                                                                                        \
        norm_rows(rows, params, type, added, centered);                                                      \
    }
DEFINE(rms_f32, F32, 0, 0)
DEFINE(rms_bf16, BF16, 0, 0)
DEFINE(add_rms_f32, F32, 1, 0)
DEFINE(add_rms_bf16, BF16, 1, 0)
DEFINE(layer_f32, F32, 0, 1)
DEFINE(layer_bf16, BF16, 0, 1)
DEFINE(add_layer_f32, F32, 1, 1)
DEFINE(add_layer_bf16, BF16, 1, 1)

extern const norm_path PATH(norm);
const norm_path PATH(norm) = {.rms = {rms_f32, rms_bf16},
                              .add_rms = {add_rms_f32, add_rms_bf16},
                              .layer = {layer_f32, layer_bf16},
                              .add_layer = {add_layer_f32, add_layer_bf16}};
