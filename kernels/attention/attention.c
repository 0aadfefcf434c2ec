/* khub/attention: softmax(scale · q kᵀ) v for each head. */
#include "attention.h"

#include "ffi.h"

ISA_PATHS(attention_path, attention);

enum { OUT, Q, K, V, LENGTHS, SCALE, CAUSAL, WINDOW };

static const khub__signature attention_signature = {
    .name = "attention",
    .doc = "out = softmax(scale · q kᵀ) v for each head; query head i uses key head i / (h / g). Query i "
           "stands at key p = i + s - t. It sees key j if j < lengths[b] (None: all s), when causal j <= p, "
           "and with a window (None, 0: there is none) |p - j| < window; one that sees no key gives zeros.",
    .not_empty = "",
    .dtypes = KHUB__TAKES_F32 | KHUB__TAKES_BF16,
    .count = 8,
    .params = {{"out", KHUB__OUT, "bthd"},
               {"q", KHUB__TENSOR, "bthd"},
               {"k", KHUB__TENSOR, "bsgd"},
               {"v", KHUB__TENSOR, "bsgd"},
               {"lengths", KHUB__TENSOR, "b", .optional = 1, .dtype = {kDLInt, 32, 1}},
               {"scale", KHUB__FLOAT},
               {"causal", KHUB__BOOL},
               {"window", KHUB__INT, .optional = 1}}};

/* Query i stands at key i + s - t. */
static void limit(attention_call *call, const khub__call *c)
{
    int64_t offset = c->extent['s'] - c->extent['t'], window = c->arg[WINDOW].i64;
    if (window > ATTENTION_FAR) window = 0;
    call->from = window > 0 ? offset - window + 1 : -ATTENTION_FAR;
    call->until = window > 0 ? offset + window : ATTENTION_FAR;
    if (c->arg[CAUSAL].flag) call->until = offset + 1;
}

static int attention_run(const khub__call *c)
{
    const DLTensor *out = c->arg[OUT].tensor, *q = c->arg[Q].tensor, *k = c->arg[K].tensor,
                   *v = c->arg[V].tensor;
    int64_t h = c->extent['h'], g = c->extent['g'], t = c->extent['t'], s = c->extent['s'];
    if (h == 0 || t == 0 || c->extent['d'] == 0) return 0;
    if (g == 0 || h % g)
        return khub__raise(c, "ValueError", "q has %lld heads, not a multiple of k's %lld", (long long)h,
                           (long long)g);
    attention_call call = {.out = khub__data(out),
                           .q = khub__data(q),
                           .k = khub__data(k),
                           .v = khub__data(v),
                           .lengths = (const int32_t *)(const void *)khub__data(c->arg[LENGTHS].tensor),
                           .sequences = c->extent['b'],
                           .out_sequence = khub__step(out, 0),
                           .q_sequence = khub__step(q, 0),
                           .k_sequence = khub__step(k, 0),
                           .v_sequence = khub__step(v, 0),
                           .keys = s,
                           .out_step = khub__step(out, 1),
                           .out_head = khub__step(out, 2),
                           .q_step = khub__step(q, 1),
                           .q_head = khub__step(q, 2),
                           .k_step = khub__step(k, 1),
                           .k_head = khub__step(k, 2),
                           .v_step = khub__step(v, 1),
                           .v_head = khub__step(v, 2),
                           .queries = t,
                           .heads = h / g,
                           .key_heads = g,
                           .dims = c->extent['d'],
                           .scale = (float)(c->arg[SCALE].f64 * 1.4426950408889634 /* log2(e) */)};
    if (s == 0) call.k_sequence = call.v_sequence = call.k_head = call.v_head = 0; /* through no memory */
    if (c->arg[WINDOW].i64 < 0) return khub__raise(c, "ValueError", "window is negative");
    limit(&call, c);
    attention_paths[c->isa]->attend[c->type](&call);
    return 0;
}
KHUB__EXPORT(attention)
