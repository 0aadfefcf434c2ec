/* khub/softmax. */
#include "softmax.h"

ISA_PATHS(softmax_path, softmax);

static const khub__signature softmax_signature = {
    .name = "softmax",
    .doc = "out = exp(x - max) / Σ exp(x - max) over the last axis. out may be x.",
    .not_empty = "n",
    .dtypes = KHUB__TAKES_F32 | KHUB__TAKES_BF16,
    .count = 2,
    .params = {{"out", KHUB__OUT, "*n", .may_be = "x"}, {"x", KHUB__TENSOR, "*n"}},
};

static int softmax_run(const khub__call *c)
{
    const DLTensor *const t[2] = {c->arg[0].tensor, c->arg[1].tensor};
    khub__walk walk;
    for (int more = khub__walk_first(&walk, t, 2, 1); more; more = khub__walk_next(&walk))
        softmax_paths[c->isa]->softmax[c->type](&walk.rows, c->extent['n']);
    return 0;
}
KHUB__EXPORT(softmax)
