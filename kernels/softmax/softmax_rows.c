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

VEC v16 row_largest(const char *x, int64_t n, int type)
{
    v16 most = v_set(-INFINITY);
    int64_t i = 0;
    for (; i + 16 <= n; i += 16)
        most = largest(most, x, i, i + 16, type);
    if (i < n) most = largest(most, x, i, n, type);
    return v_set(v_largest(most));
}

VEC void row_quotients(char *out, const char *keep, const char *x, v16 most, v16 total, int64_t n, int type,
                       int stream)
{
    int64_t i = 0;
    for (; i + 16 <= n; i += 16)
        quotients(out, keep, x, most, total, i, i + 16, type, stream);
    if (i < n) quotients(out, keep, x, most, total, i, n, type, stream);
}

/* A NaN, +infinity or nothing but -infinity in a row makes the whole row NaN. */
VEC void softmax_row(char *out, const char *x, int64_t n, int type)
{
    v16 most = row_largest(x, n, type), total = v_set(0);
    int64_t i = 0;
    for (; i + 16 <= n; i += 16)
        total = exponentials(total, out, x, most, i, i + 16, type);
    if (i < n) total = exponentials(total, out, x, most, i, n, type);
    row_quotients(out, out, x, most, v_set(v_sum(total)), n, type, 0);
}

/* Float32 rows that go past the caches: fetching the next row, a row's exponentials and storing the one
 * before take turns, or memory would wait for the processor and the processor for memory. */
VEC void softmax_chain(const khub__rows *rows, int64_t n)
{
    _Alignas(64) float kept[2][MOST_KEPT];
    v16 total = v_set(1);
    char *out = rows->data[0]; /* of the row before */
    for (int64_t row = 0; row < rows->count; row++) {
        char *keep = (char *)kept[row % 2], *before = (char *)kept[(row + 1) % 2];
        if (row > 1) out += rows->step[0];
        const char *x = rows->data[1] + row * rows->step[1];
        const char *next = row + 1 < rows->count ? x + rows->step[1] : x;
        v16 most = row_largest(x, n, F32), sum = v_set(0);
        int64_t i = 0;
        for (; i + 16 <= n; i += 16) {
            __builtin_prefetch(next + 4 * i);
            sum = exponentials(sum, keep, x, most, i, i + 16, F32);
            if (row) quotients(out, before, before, most, total, i, i + 16, F32, 1);
        }
        if (i < n) sum = exponentials(sum, keep, x, most, i, n, F32);
        if (i < n && row) quotients(out, before, before, most, total, i, n, F32, 1);
        total = v_set(v_sum(sum));
    }
    const char *last = (char *)kept[(rows->count - 1) % 2];
    out = rows->data[0] + (rows->count - 1) * rows->step[0];
    row_quotients(out, last, last, total, total, n, F32, 1);
    v_stream_end();
}

VEC void softmax_rows(const khub__rows *rows, int64_t n, int type)
{
    if (type == F32 && rows->stream && n <= MOST_KEPT && v_may_stream(rows->data[0]) &&
        rows->step[0] % 64 == 0) {
        softmax_chain(rows, n);
        return;
    }
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
