/* khub/quantized: linear's x weightᵀ + bias on a weight of 8 or 4 bits. */
#include "quantized.h"

#include "ffi.h"
#include "linear_pack.h"
#include "vec.h"

ISA_PATHS(quantized_path, quantized);
ISA_PATHS(quantized_packers, quantized_packers);

enum { OUT, X, WEIGHT, BIAS };

static const DLDataType bytes = {kDLUInt, 8, 1};

static int bits_of_form(quantized_form form)
{
    return form == QUANTIZED_INT4 || form == QUANTIZED_INT4_WEIGHT ? 4 : 8;
}

static int check_packed(const khub__call *c, int param, int bits)
{
    int64_t panels = linear_panels(c->extent['n']), record = quantized_record(bits, c->extent['k']);
    if (c->extent['p'] == panels && c->extent['b'] == record) return 0;
    return khub__raise(
        c, "ValueError", "%s has shape (%lld, %lld), (%lld, %lld) is what %d bits take for %lld by %lld",
        c->signature->params[param].name, (long long)c->extent['p'], (long long)c->extent['b'],
        (long long)panels, (long long)record, bits, (long long)c->extent['n'], (long long)c->extent['k']);
}

static int check_sums(const khub__call *c, quantized_form form)
{
    if (form != QUANTIZED_INT8 || c->extent['k'] <= QUANTIZED_MOST) return 0;
    return khub__raise(c, "ValueError", "x has rows of %lld elements, at most %d are handled",
                       (long long)c->extent['k'], QUANTIZED_MOST);
}

static int run(const khub__call *c, quantized_form form, activation_kind activation)
{
    if (check_packed(c, WEIGHT, bits_of_form(form)) || check_sums(c, form)) return -1;
    linear_call call = khub__linear_call(c, activation);
    const quantized_path *path = quantized_paths[c->isa];
    int tiles = form == QUANTIZED_INT8 && khub__isa_extras() & ISA_HAS_AMX_INT8; /* then the path has them */
    int vnni = form < QUANTIZED_INT8_WEIGHT && khub__isa_has_vnni();
    quantized_function *const *functions = tiles ? path->tiles : vnni ? path->vnni[form] : path->linear[form];
    functions[c->type](&call);
    return 0;
}

/* A form's functions, one for each activation. */
#define FORM(NAME, FORM, PACK, WHAT)                                                                         \
    FUNCTION(NAME, FORM, ACTIVATION_NONE, "x weightᵀ + bias", PACK, WHAT)                                    \
    FUNCTION(NAME##_gelu, FORM, ACTIVATION_GELU, "gelu(x weightᵀ + bias)", PACK, WHAT)                       \
    FUNCTION(NAME##_gelu_tanh, FORM, ACTIVATION_GELU_TANH, "gelu_tanh(x weightᵀ + bias)", PACK, WHAT)        \
    FUNCTION(NAME##_silu, FORM, ACTIVATION_SILU, "silu(x weightᵀ + bias)", PACK, WHAT)                       \
    FUNCTION(NAME##_relu, FORM, ACTIVATION_RELU, "relu(x weightᵀ + bias)", PACK, WHAT)
#define FUNCTION(NAME, FORM, ACTIVATION, FORMULA, PACK, WHAT)                                                \
    KHUB__EXPORT_LINEAR(NAME, "out = " FORMULA ", weight as " PACK " makes it" WHAT,                         \
                        run(c, FORM, ACTIVATION), "pb", .dtype = {kDLUInt, 8, 1})

#define ROUNDED_X ", x's rows rounded to 8 bits, each with a scale of its own"
#define NEAR_X    ", x rounded to 16 bits, a scale for each 32 elements of a row"
FORM(linear_int8, QUANTIZED_INT8, "quantize_int8", ROUNDED_X)
FORM(linear_int4, QUANTIZED_INT4, "quantize_int4", ROUNDED_X)
FORM(linear_int8_weight, QUANTIZED_INT8_WEIGHT, "quantize_int8", NEAR_X)
FORM(linear_int4_weight, QUANTIZED_INT4_WEIGHT, "quantize_int4", NEAR_X)

static int run_pack(const khub__call *c, int bits)
{
    const DLTensor *prepared = c->arg[0].tensor, *weight = c->arg[1].tensor;
    if (check_packed(c, 0, bits)) return -1;
    quantized_pack pack = {.to = khub__data(prepared),
                           .from = khub__data(weight),
                           .to_step = khub__step(prepared, 0),
                           .from_step = khub__step(weight, 0),
                           .n = c->extent['n'],
                           .k = c->extent['k']};
    const quantized_packers *packers = quantized_packers_paths[c->isa];
    (bits == 8 ? packers->int8 : packers->int4)[c->type](&pack);
    return 0;
}

static void size_pack(DLTensor *prepared, const khub__call *call, int bits)
{
    prepared->ndim = 2;
    prepared->dtype = bytes;
    prepared->shape[0] = linear_panels(call->extent['n']);
    prepared->shape[1] = quantized_record(bits, call->extent['k']);
}

#define PACK(NAME, BITS, HOW)                                                                                \
    static const khub__signature NAME##_signature = {                                                        \
        .name = #NAME,                                                                                       \
        .doc = "Packs weight (n, k) into bytes: " HOW                                                        \
               ".\nWithout memory, prepared gets its shape and dtype and nothing else happens.",             \
        .not_empty = "",                                                                                     \
        .dtypes = KHUB__TAKES_F32 | KHUB__TAKES_BF16,                                                        \
        .count = 2,                                                                                          \
        .params = {{"prepared", KHUB__OUT, "pb", .dtype = {kDLUInt, 8, 1}},                                  \
                   {"weight", KHUB__TENSOR, "nk"}}};                                                         \
    static void NAME##_size(DLTensor *prepared, const khub__call *call)                                      \
    {                                                                                                        \
        size_pack(prepared, call, BITS);                                                                     \
    }                                                                                                        \
    static int NAME##_run(const khub__call *call)                                                            \
    {                                                                                                        \
        return run_pack(call, BITS);                                                                         \
    }                                                                                                        \
    KHUB__EXPORT_PACK(NAME)
PACK(quantize_int8, 8, "8 bits an element, a scale for each of n")
PACK(quantize_int4, 4, "4 bits an element, a scale for each 32 along k")
