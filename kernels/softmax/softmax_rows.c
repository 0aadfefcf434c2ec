/* Softmax over rows; once for each path. */
#include "softmax.h"

#include "vmath.h"

#include <math.h>

/* Exponentials of a row this long are kept here, where the result is written past the caches. */
enum { MOST_KEPT = 16384 };

VEC v16 largest(v16 most, const char *x, int64_t i, int64_t end, int type)
{
    v16 v = v_read(x, i, end, type);
    return v_max(most, end - i < 16 ? v_first(v, end - i, -INFINITY) : v);
}

/* Adds to the total; float32 keeps the exponentials until that is known. */
VEC v16 exponentials(v16 total, char *keep, const char *x, v16 most, int64_t i, int64_t end, int type)
{
    v16 e = v_exp_raised(v_sub(v_read(x, i, end, type), most));
    if (type == F32) v_write(keep, i, end, type, e);
    return v_add(total, end - i < 16 ? v_first(e, end - i, 0) : e);
}

VEC void quotients(char *out, const char *keep, const char *x, v16 most, v16 total, int64_t i, int64_t end,
                   int type, int stream)
{
    v16 e = type == F32 ? v_read(keep, i, end, type) : v_exp_raised(v_sub(v_read(x, i, end, type), most));
    v_write_past(out, i, end, type, v_div(e, total), stream);
}

/* A NaN, +infinity or nothing but -infinity in a row makes the whole row NaN. */
VEC void softmax_row(char *out, char *keep, const char *x, int64_t n, int type, int stream)
{
    v16 most = v_set(-INFINITY), total = v_set(0);
    int64_t i = 0, whole = n / 16 * 16;
    for (i = 0; i < whole; i += 16)
        most = largest(most, x, i, i + 16, type);
    if (i < n) most = largest(most, x, i, n, type);
    most = v_set(v_largest(most));
    for (i = 0; i < whole; i += 16)
        total = exponentials(total, keep, x, most, i, i + 16, type);
    if (i < n) total = exponentials(total, keep, x, most, i, n, type);
    total = v_set(v_sum(total));
    for (i = 0; i < whole; i += 16)
        quotients(out, keep, x, most, total, i, i + 16, type, stream);
    if (i < n) quotients(out, keep, x, most, total, i, n, type, stream);
}

VEC void softmax_rows(const khub__rows *rows, int64_t n, int type)
{
    _Alignas(64) float kept[MOST_KEPT];
    for (int64_t row = 0; row < rows->count; row++) {
        char *out = rows->data[0] + row * rows->step[0];
        int stream = type == F32 && rows->stream && n <= MOST_KEPT && v_may_stream(out);
        softmax_row(out, stream ? (char *)kept : out, rows->data[1] + row * rows->step[1], n, type, stream);
    }
    if (rows->stream) v_stream_end();
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
