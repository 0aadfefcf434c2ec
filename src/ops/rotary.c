#include "base/memory.h"
#include "ops/args.h"
#include "ops/functions.h"

enum { Q_OUT, K_OUT, Q, K, COS, SIN };

static int check(const khub__op *op, int64_t *half)
{
    const khub_tensor *q = op->tensor[Q];
    const int64_t any[3] = {-1, -1, -1};
    if (khub__op_shape(op, Q, 3, any)) return -1;
    if (q->shape[2] % 2) return khub__op_wrong(op, Q, "has a head dimension that isn't even");
    *half = q->shape[2] / 2;
    const int64_t key[3] = {q->shape[0], -1, q->shape[2]}, angle[2] = {q->shape[0], *half};
    return khub__op_shape(op, K, 3, key) || khub__op_same_shape(op, Q_OUT, Q) ||
           khub__op_same_shape(op, K_OUT, K) || khub__op_shape(op, COS, 2, angle) ||
           khub__op_shape(op, SIN, 2, angle);
}

/* Turns each head of one tensor; `room` is 4 * half floats. */
static void turn(const khub__op *op, int32_t out, int32_t in, float *room, int64_t half)
{
    float *x = room, *c = room + 2 * half, *s = room + 3 * half;
    int64_t tokens = op->tensor[in]->shape[0], heads = op->tensor[in]->shape[1];
    for (int64_t t = 0; t < tokens; t++) {
        khub__op_load(c, op->tensor[COS], t, 0, half);
        khub__op_load(s, op->tensor[SIN], t, 0, half);
        for (int64_t h = 0; h < heads; h++) {
            khub__op_load(x, op->tensor[in], t * heads + h, 0, 2 * half);
            for (int64_t i = 0; i < half; i++) {
                double a = x[i], b = x[i + half];
                x[i] = (float)(a * c[i] - b * s[i]);
                x[i + half] = (float)(b * c[i] + a * s[i]);
            }
            khub__op_store(op->tensor[out], t * heads + h, 0, x, 2 * half);
        }
    }
}

int khub__std_rotary(void *self, const khub_value *args, int32_t n, khub_value *result)
{
    khub__op op;
    int64_t half = 0;
    (void)self, (void)result;
    if (khub__op_open(&op, "rotary_pos_emb", args, n) || check(&op, &half)) return -1;
    float *room = khub__malloc((size_t)half * 4 * sizeof(float));
    if (!room) return khub__op_memory(&op);
    if (half > 0) {
        turn(&op, Q_OUT, Q, room, half);
        turn(&op, K_OUT, K, room, half);
    }
    khub__free(room);
    return 0;
}
