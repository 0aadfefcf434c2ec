/* Softmax over rows; once for each path. */
#include "softmax.h"

#include "vmath.h"

#include <math.h>

/* A NaN, +infinity or nothing but -infinity in a row makes the whole row NaN. */
VEC void softmax_row(char *out, const char *x, int64_t n, int type)
{
    v16 most = v_set(-INFINITY), total = v_set(0);
    for (int64_t i = 0; i < n; i += 16) {
        v16 v = v_read(x, i, n, type);
        most = v_max(most, n - i < 16 ? v_first(v, n - i, -INFINITY) : v);
    }
    most = v_set(v_largest(most));
    for (int64_t i = 0; i < n; i += 16) {
        v16 e = v_exp(v_sub(v_read(x, i, n, type), most));
        if (type == F32) v_write(out, i, n, type, e); /* kept there until the sum is known */
        total = v_add(total, n - i < 16 ? v_first(e, n - i, 0) : e);
    }
    total = v_set(v_sum(total));
    for (int64_t i = 0; i < n; i += 16) {
        v16 e = type == F32 ? v_read(out, i, n, type) : v_exp(v_sub(v_read(x, i, n, type), most));
        v_write(out, i, n, type, v_div(e, total));
    }
}

VEC void softmax_rows(const khub__rows *rows, int64_t n, int type)
{
    for (int64_t row = 0; row < rows->count; row++)
        softmax_row(rows->data[0] + row * rows->step[0], rows->data[1] + row * rows->step[1], n, type);
}

static void softmax_f32(const khub__rows *rows, int64_t n)
{
    softmax_rows(rows, n, F32);
}
static void softmax_bf16(const khub__rows *rows, int64_t n)
{
    softmax_rows(rows, n, BF16);
}

extern const softmax_path PATH(softmax);
const softmax_path PATH(softmax) = {.softmax = {softmax_f32, softmax_bf16}};
