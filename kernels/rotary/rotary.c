/* khub/rotary: rotary position embedding. */
#include "rotary.h"

ISA_PATHS(rotary_path, rotary);

static void turn(const khub__call *c, const DLTensor *out, const DLTensor *x, const DLTensor *cos,
                 const DLTensor *sin)
{
    rotary_job job = {
        .out = khub__data(out),
        .x = khub__data(x),
        .cos = khub__data(cos),
        .sin = khub__data(sin),
        .tokens = x->shape[0],
        .heads = x->shape[1],
        .half = x->shape[2] / 2,
        .out_token = khub__step(out, 0),
        .out_head = khub__step(out, 1),
        .x_token = khub__step(x, 0),
        .x_head = khub__step(x, 1),
        .cos_token = khub__step(cos, 0),
        .sin_token = khub__step(sin, 0),
    };
    if (job.half > 0) rotary_paths[c->isa]->rotary[c->type](&job);
}

#define TURNED "each pair (x[i], x[i + d]) to (x[i] cos[i] - x[i + d] sin[i], x[i + d] cos[i] + x[i] sin[i])"

static const khub__signature rotary_signature = {
    .name = "rotary",
    .doc = "Turns " TURNED ", for t tokens and h heads. out may be x.",
    .not_empty = "",
    .dtypes = KHUB__TAKES_F32 | KHUB__TAKES_BF16,
    .count = 4,
    .params = {{"out", KHUB__OUT, "th2d", .may_be = "x"},
               {"x", KHUB__TENSOR, "th2d"},
               {"cos", KHUB__TENSOR, "td"},
               {"sin", KHUB__TENSOR, "td"}},
};
static int rotary_run(const khub__call *c)
{
    turn(c, c->arg[0].tensor, c->arg[1].tensor, c->arg[2].tensor, c->arg[3].tensor);
    return 0;
}
KHUB__EXPORT(rotary)

static const khub__signature rotary_pos_emb_signature = {
    .name = "rotary_pos_emb",
    .doc = "Turns, for x = q and x = k, " TURNED
           ",\nfor t tokens, h heads of q and g of k. q_out may be q, k_out may be k.",
    .not_empty = "",
    .dtypes = KHUB__TAKES_F32 | KHUB__TAKES_BF16,
    .count = 6,
    .params = {{"q_out", KHUB__OUT, "th2d", .may_be = "q"},
               {"k_out", KHUB__OUT, "tg2d", .may_be = "k"},
               {"q", KHUB__TENSOR, "th2d"},
               {"k", KHUB__TENSOR, "tg2d"},
               {"cos", KHUB__TENSOR, "td"},
               {"sin", KHUB__TENSOR, "td"}},
};
static int rotary_pos_emb_run(const khub__call *c)
{
    turn(c, c->arg[0].tensor, c->arg[2].tensor, c->arg[4].tensor, c->arg[5].tensor);
    turn(c, c->arg[1].tensor, c->arg[3].tensor, c->arg[4].tensor, c->arg[5].tensor);
    return 0;
}
KHUB__EXPORT(rotary_pos_emb)
