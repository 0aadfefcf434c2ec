/* khub/bfloat16: linear's x weightᵀ + bias by instructions that multiply pairs of bfloat16, where there are
 * such: x is rounded to bfloat16, the weight once, when it is packed. */
#include "dot.h"

#include "ffi.h"
#include "linear_pack.h"
#include "vec.h"

ISA_PATHS(dot_path, dot);

enum { OUT, X, WEIGHT, BIAS };

static int check_packed(const khub__call *c, int param)
{
    const DLTensor *t = c->arg[param].tensor;
    int64_t panels = linear_panels(c->extent['n']), pairs = dot_groups(c->extent['k']) * (DOT_GROUP / 2);
    const char *name = c->signature->params[param].name;
    if (t->shape[0] != panels || t->shape[1] != pairs || t->shape[2] != DOT_GROUP)
        return khub__raise(
            c, "ValueError", "%s has shape (%lld, %lld, %lld), (%lld, %lld, 32) is expected for %lld by %lld",
            name, (long long)t->shape[0], (long long)t->shape[1], (long long)t->shape[2], (long long)panels,
            (long long)pairs, (long long)c->extent['n'], (long long)c->extent['k']);
    return khub__check_gaps(c, param);
}

/* The best that the path has. */
static dot_engine engine(void)
{
    unsigned extras = khub__isa_extras();
    return extras & ISA_HAS_AMX_BF16 ? DOT_TILES : extras & ISA_HAS_AVX512_BF16 ? DOT_PAIRS : DOT_WIDENED;
}

static int run(const khub__call *c, activation_kind activation)
{
    if (check_packed(c, WEIGHT)) return -1;
    linear_call call = khub__linear_call(c, activation);
    dot_paths[c->isa]->linear[engine()][c->type](&call);
    return 0;
}

#define FUNCTION(NAME, ACTIVATION, FORMULA)                                                                  \
    KHUB__EXPORT_LINEAR(NAME,                                                                                \
                        "out = " FORMULA ", x rounded to bfloat16, weight as linear_dot_pack makes it",      \
                        run(c, ACTIVATION), "pqw", .dtype = {kDLBfloat, 16, 1})
FUNCTION(linear_dot, ACTIVATION_NONE, "x weightᵀ + bias")
FUNCTION(linear_dot_gelu, ACTIVATION_GELU, "gelu(x weightᵀ + bias)")
FUNCTION(linear_dot_gelu_tanh, ACTIVATION_GELU_TANH, "gelu_tanh(x weightᵀ + bias)")
FUNCTION(linear_dot_silu, ACTIVATION_SILU, "silu(x weightᵀ + bias)")
FUNCTION(linear_dot_relu, ACTIVATION_RELU, "relu(x weightᵀ + bias)")

static const khub__signature linear_dot_pack_signature = {
    .name = "linear_dot_pack",
    .doc = "Rounds weight (n, k) to bfloat16 and packs it into prepared (ceil(n/16), 16 ceil(k/32), 32): at "
           "[p, i, "
           "2 j] element 2 i + 1 of row 16 p + j, at [p, i, 2 j + 1] element 2 i; zeros past the last.\n"
           "Without memory, prepared gets its shape and dtype and nothing else happens.",
    .not_empty = "",
    .dtypes = KHUB__TAKES_F32 | KHUB__TAKES_BF16,
    .count = 2,
    .params = {{"prepared", KHUB__OUT, "pqw", .dtype = {kDLBfloat, 16, 1}}, {"weight", KHUB__TENSOR, "nk"}}};

static uint16_t element(const char *row, int64_t k, int64_t count, int type)
{
    uint16_t half;
    float whole;
    if (k >= count) return 0;
    memcpy(&half, row + 2 * k, 2);
    if (type == BF16) return half;
    memcpy(&whole, row + 4 * k, 4);
    return narrow(whole);
}

/* A row of the weight into its column of a panel; NULL: zeros. */
static void pack_row(char *to, const char *row, int64_t k, int type)
{
    int64_t pairs = dot_groups(k) * (DOT_GROUP / 2);
    for (int64_t i = 0; i < pairs; i++) {
        uint16_t pair[2] = {0, 0};
        if (row) pair[0] = element(row, 2 * i + 1, k, type), pair[1] = element(row, 2 * i, k, type);
        memcpy(to + i * DOT_ROW, pair, sizeof(pair));
    }
}

static int linear_dot_pack_run(const khub__call *c)
{
    const DLTensor *prepared = c->arg[0].tensor, *weight = c->arg[1].tensor;
    int64_t n = c->extent['n'], k = c->extent['k'], panel = dot_groups(k) * DOT_GROUP_BYTES;
    if (check_packed(c, 0)) return -1;
    for (int64_t j = 0; j < linear_panels(n) * LINEAR_PANEL; j++)
        pack_row(khub__data(prepared) + j / LINEAR_PANEL * panel + j % LINEAR_PANEL * 4,
                 j < n ? khub__data(weight) + j * khub__step(weight, 0) : NULL, k, c->type);
    return 0;
}

static void linear_dot_pack_size(DLTensor *prepared, const khub__call *call)
{
    prepared->ndim = 3;
    prepared->dtype = (DLDataType){kDLBfloat, 16, 1};
    prepared->shape[0] = linear_panels(call->extent['n']);
    prepared->shape[1] = dot_groups(call->extent['k']) * (DOT_GROUP / 2);
    prepared->shape[2] = DOT_GROUP;
}

KHUB__EXPORT_PACK(linear_dot_pack)
