#include "base/memory.h"
#include "ops/args.h"
#include "ops/blas.h"
#include "ops/functions.h"
#include "ops/softmax.h"

#include <math.h>

enum { OUT, Q, K, V, LENGTHS, SCALE, CAUSAL, WINDOW };

int khub__attention_check(const khub__op *op)
{
    const int64_t any[4] = {-1, -1, -1, -1};
    if (khub__op_shape(op, Q, 4, any) || khub__op_shape(op, K, 4, any)) return -1;
    const int64_t *q = op->tensor[Q]->shape, *k = op->tensor[K]->shape;
    const int64_t key[4] = {q[0], -1, -1, q[3]};
    if (khub__op_shape(op, K, 4, key) || khub__op_same_shape(op, V, K) || khub__op_same_shape(op, OUT, Q))
        return -1;
    if (k[2] == 0 ? q[2] != 0 : q[2] % k[2] != 0)
        return khub__op_wrong(op, Q, "has a number of heads that isn't a multiple of k's");
    return op->tensor[LENGTHS] ? khub__op_shape(op, LENGTHS, 1, q) : 0;
}

/* One head of one batch row as float32 matrices. */
typedef struct head {
    int64_t b, h, g; /* batch row, query head, key head */
    float *q, *k, *v, *scores, *out;
} head;

static void load(float *to, const khub_tensor *t, int64_t b, int64_t h)
{
    int64_t tokens = t->shape[1], heads = t->shape[2], width = t->shape[3];
    for (int64_t i = 0; i < tokens; i++)
        khub__op_load(to + i * width, t, (b * tokens + i) * heads + h, 0, width);
}

khub__keys khub__attention_keys(const khub__op *op, int64_t b, int64_t i)
{
    int64_t t = op->tensor[Q]->shape[1], s = op->tensor[K]->shape[1], place = i + s - t;
    khub__keys keys = {0, s};
    const khub_tensor *lengths = op->tensor[LENGTHS];
    if (lengths) {
        int32_t length;
        int64_t stride = lengths->strides ? lengths->strides[0] : 1;
        memcpy(&length, (const char *)lengths->data + lengths->byte_offset + b * stride * 4, 4);
        if (length < s) keys.until = length;
    }
    double window = op->number[WINDOW]; /* wider than s + t is as if there were none */
    if (window > 0 && window < (double)(s + t)) {
        if (place - (int64_t)window + 1 > 0) keys.from = place - (int64_t)window + 1;
        if (place + (int64_t)window < keys.until) keys.until = place + (int64_t)window;
    }
    if (op->number[CAUSAL] != 0 && place + 1 < keys.until) keys.until = place + 1;
    if (keys.until < keys.from) keys.until = keys.from;
    return keys;
}

static void one_head(const khub__op *op, const head *at)
{
    const khub_tensor *q = op->tensor[Q];
    int64_t t = q->shape[1], s = op->tensor[K]->shape[1], d = q->shape[3], heads = q->shape[2];
    load(at->q, q, at->b, at->h);
    load(at->k, op->tensor[K], at->b, at->g);
    load(at->v, op->tensor[V], at->b, at->g);
    khub__sgemm(1, t, s, d, at->q, d, at->k, d, at->scores, s);
    for (int64_t i = 0; i < t; i++) {
        float *row = at->scores + i * s;
        khub__keys keys = khub__attention_keys(op, at->b, i);
        for (int64_t j = keys.from; j < keys.until; j++)
            row[j] = (float)(row[j] * op->number[SCALE]);
        khub__softmax(row + keys.from, keys.until - keys.from);
        /* row by row: a value at a key that nobody sees, NaN included, must not reach the sum */
        khub__sgemm(0, 1, d, keys.until - keys.from, row + keys.from, s, at->v + keys.from * d, d, at->out,
                    d);
        khub__op_store(op->tensor[OUT], (at->b * t + i) * heads + at->h, 0, at->out, d);
    }
}

int khub__std_attention(void *self, const khub_value *args, int32_t n, khub_value *result)
{
    khub__op op;
    (void)self, (void)result;
    if (khub__op_open(&op, "Attention", args, n) || khub__attention_check(&op)) return -1;
    const int64_t *q = op.tensor[Q]->shape, *k = op.tensor[K]->shape;
    int64_t t = q[1], s = k[1], d = q[3];
    if (d == 0 || t == 0) return 0;
    float *memory = khub__malloc((size_t)(t * d + 2 * s * d + t * s + d) * sizeof(float));
    if (!memory) return khub__op_memory(&op);
    head at = {0};
    at.q = memory, at.k = at.q + t * d, at.v = at.k + s * d, at.scores = at.v + s * d,
    at.out = at.scores + t * s;
    for (at.b = 0; at.b < q[0]; at.b++) {
        for (at.h = 0; at.h < q[2]; at.h++) {
            at.g = at.h / (q[2] / k[2]);
            one_head(&op, &at);
        }
    }
    khub__free(memory);
    return 0;
}
