/* PyTorch's own operators as the standard function of a layer. Its arithmetic, its rounding, its threads. */
#include <khub/standard.h>

#include "base/error.h"
#include "base/memory.h"
#include "kernel/machine.h"
#include "ops/args.h"
#include "ops/whose.h"
#include "torch/call.h"
#include "torch/operators.h"

#include <stdatomic.h>

enum { OPERATORS = 3 };

/* How a layer is computed: by which operators of "aten", in the order that `run` uses them in. */
typedef struct recipe {
    const char *layer;
    int (*run)(const struct recipe *recipe, const khub__op *op, const khub_value *args);
    const char *names[OPERATORS];
    const char *approximate;                              /* gelu's "none" or "tanh"; NULL: it isn't gelu */
    _Atomic(const khub__torch_operator *) ops[OPERATORS]; /* NULL: nobody asked yet */
} recipe;

/* ---- calling ---- */

/* *result is the caller's to release; None after a failure. */
static int call(khub_value *result, const recipe *r, int i, const khub_value *args, int32_t n)
{
    *result = khub_arg_none();
    return khub__torch_call((void *)(uintptr_t)atomic_load_explicit(&r->ops[i], memory_order_relaxed), args,
                            n, result);
}

/* PyTorch gives an output that hasn't the result's shape another one, or repeats the result in it. */
static int check_shape(const recipe *r, const khub_tensor *out, const khub_tensor *result)
{
    size_t bytes = (size_t)out->ndim * sizeof(*out->shape);
    if (result && result->ndim == out->ndim && (!bytes || !memcmp(result->shape, out->shape, bytes)))
        return 0;
    return khub_raise("ValueError", "%s: out hasn't the shape of the result", r->layer);
}

/* The last argument is the output, whose memory is what comes back. */
static int call_out(const recipe *r, int i, const khub_value *args, int32_t n)
{
    khub_value result;
    int rc = call(&result, r, i, args, n);
    if (rc == 0) rc = check_shape(r, khub_value_tensor(&args[n - 1]), khub_value_tensor(&result));
    khub_value_release(&result);
    return rc;
}

static _Thread_local int leaves_result; /* 1: in run_leaving */

/* The i-th operator is copy_. Releases `from`. */
static int copy(const recipe *r, int i, const khub_tensor *to, khub_value *from)
{
    const khub_value args[] = {khub_arg_tensor(to), *from};
    khub_value result = khub_arg_none();
    int rc = check_shape(r, to, khub_value_tensor(from));
    if (rc == 0 && !leaves_result) rc = call(&result, r, i, args, 2);
    khub_value_release(&result);
    khub_value_release(from);
    return rc;
}

/* out = activation(x), the i-th operator's; gelu takes the name of its approximation before `out`. */
static int activate(const recipe *r, int i, khub_value out, khub_value x)
{
    const khub_value plain[] = {x, out}, named[] = {x, khub_arg_string(r->approximate), out};
    return r->approximate ? call_out(r, i, named, 3) : call_out(r, i, plain, 2);
}

/* ---- views of a tensor ---- */

typedef struct view {
    khub_tensor tensor;
    int64_t shape[KHUB_MAX_NDIM], strides[KHUB_MAX_NDIM];
} view;

static void view_of(view *out, const khub_tensor *tensor)
{
    memset(out, 0, sizeof(*out));
    out->tensor = *tensor;
    out->tensor.shape = out->shape;
    out->tensor.strides = out->strides;
    int64_t compact = 1;
    for (int32_t i = tensor->ndim; i-- > 0; compact *= tensor->shape[i]) {
        out->shape[i] = tensor->shape[i];
        out->strides[i] = tensor->strides ? tensor->strides[i] : compact;
    }
}

static void view_swap(view *v, int32_t a, int32_t b)
{
    int64_t extent = v->shape[a], stride = v->strides[a];
    v->shape[a] = v->shape[b], v->strides[a] = v->strides[b];
    v->shape[b] = extent, v->strides[b] = stride;
}

/* One half of the last axis. */
static void view_half(view *v, const khub_tensor *tensor, int second)
{
    view_of(v, tensor);
    int32_t last = tensor->ndim - 1;
    v->shape[last] /= 2;
    v->tensor.byte_offset += (uint64_t)(second * v->shape[last] * tensor->dtype.bits / 8);
}

/* ---- layers; the first arguments are out and x in each ---- */

enum { OUT, X };

static int run_activation(const recipe *r, const khub__op *op, const khub_value *args)
{
    (void)op;
    return activate(r, 0, args[OUT], args[X]);
}

static int run_softmax(const recipe *r, const khub__op *op, const khub_value *args)
{
    (void)op;
    const khub_value of_softmax[] = {args[X], khub_arg_int(-1), khub_arg_bool(0), args[OUT]};
    return call_out(r, 0, of_softmax, 4);
}

/* x · sigmoid(1.702 x): mul, sigmoid_, mul.out */
static int run_quick_gelu(const recipe *r, const khub__op *op, const khub_value *args)
{
    (void)op;
    float factor = 1.702f;
    const khub_tensor scalar = khub_tensor_f32(&factor, 0, NULL);
    const khub_value scaled[] = {args[X], khub_arg_tensor(&scalar)};
    khub_value gate;
    int rc = call(&gate, r, 0, scaled, 2);
    if (rc == 0) rc = call_out(r, 1, &gate, 1);
    const khub_value product[] = {args[X], gate, args[OUT]};
    if (rc == 0) rc = call_out(r, 2, product, 3);
    khub_value_release(&gate);
    return rc;
}

/* The activation of the first half, times the second: silu or gelu, mul.out */
static int run_gated(const recipe *r, const khub__op *op, const khub_value *args)
{
    if (op->tensor[X]->ndim < 1 || khub__op_width(op->tensor[X]) % 2)
        return khub__op_wrong(op, X, "has no last axis that can be halved");
    view first, second;
    view_half(&first, op->tensor[X], 0);
    view_half(&second, op->tensor[X], 1);
    const khub_value gate[] = {khub_arg_tensor(&first.tensor)};
    khub_value activated;
    int rc = call(&activated, r, 0, gate, 1);
    const khub_value product[] = {activated, khub_arg_tensor(&second.tensor), args[OUT]};
    if (rc == 0) rc = call_out(r, 1, product, 3);
    khub_value_release(&activated);
    return rc;
}

/* rms_norm's first arguments are x, the extents of what it normalizes over, and the weight. */
static int rms_norm(khub_value *out, const recipe *r, const khub__op *op, int weight, int eps,
                    const khub_value *args)
{
    int64_t width = khub__op_width(op->tensor[X]), one = 1;
    const khub_tensor extents = khub_tensor_over(&width, khub_dtype_of(KHUB_DTYPE_INT, 64), 1, &one);
    const khub_value of_norm[] = {args[X], khub_arg_tensor(&extents), args[weight],
                                  khub_arg_float(op->number[eps])};
    return call(out, r, 0, of_norm, 4);
}

static int run_rms_norm(const recipe *r, const khub__op *op, const khub_value *args)
{
    enum { WEIGHT = 2, EPS };
    khub_value normed;
    int rc = rms_norm(&normed, r, op, WEIGHT, EPS, args);
    return rc == 0 ? copy(r, 1, op->tensor[OUT], &normed) : rc;
}

static int run_layer_norm(const recipe *r, const khub__op *op, const khub_value *args)
{
    enum { WEIGHT = 2, BIAS, EPS };
    int64_t width = khub__op_width(op->tensor[X]), one = 1;
    const khub_tensor extents = khub_tensor_over(&width, khub_dtype_of(KHUB_DTYPE_INT, 64), 1, &one);
    const khub_value of_norm[] = {args[X], khub_arg_tensor(&extents), args[WEIGHT], args[BIAS],
                                  khub_arg_float(op->number[EPS])};
    khub_value normed;
    int rc = call(&normed, r, 0, of_norm, 5);
    return rc == 0 ? copy(r, 1, op->tensor[OUT], &normed) : rc;
}

/* linear.out, and an activation in place */
static int run_linear(const recipe *r, const khub__op *op, const khub_value *args)
{
    enum { WEIGHT = 2, BIAS };
    (void)op;
    const khub_value of_linear[] = {args[X], args[WEIGHT], args[BIAS], args[OUT]};
    int rc = call_out(r, 0, of_linear, 4);
    return rc == 0 && r->names[1] ? activate(r, 1, args[OUT], args[OUT]) : rc;
}

/* rms_norm, linear.out */
static int run_rms_norm_linear(const recipe *r, const khub__op *op, const khub_value *args)
{
    enum { NORM_WEIGHT = 2, EPS, WEIGHT, BIAS };
    khub_value normed;
    int rc = rms_norm(&normed, r, op, NORM_WEIGHT, EPS, args);
    const khub_value of_linear[] = {normed, args[WEIGHT], args[BIAS], args[OUT]};
    if (rc == 0) rc = call_out(r, 1, of_linear, 4);
    khub_value_release(&normed);
    return rc;
}

/* ---- attention ---- */

enum { Q = 1, K, V, LENGTHS, SCALE, CAUSAL, WINDOW };

/* Which keys a query sees, (b, 1, t, s). NULL: no memory. */
static uint8_t *make_mask(const khub__op *op)
{
    const int64_t *q = op->tensor[Q]->shape, s = op->tensor[K]->shape[1];
    uint8_t *mask = khub__calloc((size_t)(q[0] * q[1] * s) + 1, 1);
    for (int64_t b = 0; mask && b < q[0]; b++)
        for (int64_t i = 0; i < q[1]; i++) {
            khub__keys keys = khub__attention_keys(op, b, i);
            memset(mask + (b * q[1] + i) * s + keys.from, 1, (size_t)(keys.until - keys.from));
        }
    return mask;
}

/* PyTorch has NaN where a query sees no key. */
static int clear_blind(const khub__op *op)
{
    const int64_t *q = op->tensor[Q]->shape;
    float *zeros = khub__calloc((size_t)q[3] + 1, sizeof(*zeros));
    if (!zeros) return khub__op_memory(op);
    for (int64_t token = 0; token < q[0] * q[1]; token++) {
        khub__keys keys = khub__attention_keys(op, token / q[1], token % q[1]);
        for (int64_t h = 0; h < q[2] && keys.from == keys.until; h++)
            khub__op_store(op->tensor[OUT], token * q[2] + h, 0, zeros, q[3]);
    }
    khub__free(zeros);
    return 0;
}

/* Heads stand before tokens there. scaled_dot_product_attention, copy_ */
static int attend(const recipe *r, const khub__op *op, const khub_tensor *mask)
{
    view of[4]; /* out, q, k, v */
    for (int i = OUT; i <= V; i++) {
        view_of(&of[i], op->tensor[i]);
        view_swap(&of[i], 1, 2);
    }
    const khub_value args[] = {khub_arg_tensor(&of[Q].tensor),
                               khub_arg_tensor(&of[K].tensor),
                               khub_arg_tensor(&of[V].tensor),
                               khub_arg_tensor(mask),
                               khub_arg_float(0),
                               khub_arg_bool(!mask && op->number[CAUSAL] != 0),
                               khub_arg_float(op->number[SCALE]),
                               khub_arg_bool(of[Q].shape[1] != of[K].shape[1])};
    khub_value result;
    int rc = call(&result, r, 0, args, 8);
    return rc == 0 ? copy(r, 1, &of[OUT].tensor, &result) : rc;
}

/* PyTorch's own "causal" counts from the first key, so that it is ours for as many keys as queries. */
static int run_attention(const recipe *r, const khub__op *op, const khub_value *args)
{
    (void)args;
    if (khub__attention_check(op)) return -1;
    const int64_t *q = op->tensor[Q]->shape, s = op->tensor[K]->shape[1];
    const int64_t shape[4] = {q[0], 1, q[1], s};
    int whole = !op->tensor[LENGTHS] && op->number[WINDOW] <= 0;
    if (whole && (op->number[CAUSAL] == 0 || q[1] == s)) return attend(r, op, NULL);
    uint8_t *seen = make_mask(op);
    if (!seen) return khub__op_memory(op);
    const khub_tensor mask = khub_tensor_over(seen, khub_dtype_of(KHUB_DTYPE_BOOL, 8), 4, shape);
    int rc = attend(r, op, &mask);
    khub__free(seen);
    return rc == 0 ? clear_blind(op) : rc;
}

/* ---- the table ---- */

/* Not here, since PyTorch's C interface can't carry the Scalar that its add takes: Add and what adds,
 * rotary_pos_emb. */
static recipe recipes[] = {
    {.layer = "RMSNorm", .run = run_rms_norm, .names = {"rms_norm", "copy_"}},
    {.layer = "LayerNorm", .run = run_layer_norm, .names = {"layer_norm", "copy_"}},
    {.layer = "GeLU", .run = run_activation, .names = {"gelu.out"}, .approximate = "none"},
    {.layer = "GeluTanh", .run = run_activation, .names = {"gelu.out"}, .approximate = "tanh"},
    {.layer = "SiLU", .run = run_activation, .names = {"silu.out"}},
    {.layer = "QuickGELU", .run = run_quick_gelu, .names = {"mul.Tensor", "sigmoid_", "mul.out"}},
    {.layer = "ReLU", .run = run_activation, .names = {"relu.out"}},
    {.layer = "SiluAndMul", .run = run_gated, .names = {"silu", "mul.out"}},
    {.layer = "GeluAndMul", .run = run_gated, .names = {"gelu", "mul.out"}},
    {.layer = "Softmax", .run = run_softmax, .names = {"_softmax.out"}},
    {.layer = "Attention", .run = run_attention, .names = {"scaled_dot_product_attention", "copy_"}},
    {.layer = "Linear", .run = run_linear, .names = {"linear.out"}},
    {.layer = "LinearGeLU", .run = run_linear, .names = {"linear.out", "gelu.out"}, .approximate = "none"},
    {.layer = "LinearGeluTanh",
     .run = run_linear,
     .names = {"linear.out", "gelu.out"},
     .approximate = "tanh"},
    {.layer = "LinearSiLU", .run = run_linear, .names = {"linear.out", "silu.out"}},
    {.layer = "LinearReLU", .run = run_linear, .names = {"linear.out", "relu.out"}},
    {.layer = "RMSNormLinear", .run = run_rms_norm_linear, .names = {"rms_norm", "linear.out"}},
};

static int run(void *self, const khub_value *args, int32_t n, khub_value *result)
{
    const recipe *r = self;
    khub__op op;
    (void)result;
    return khub__op_open(&op, r->layer, args, n) ? -1 : r->run(r, &op, args);
}

static int run_leaving(void *self, const khub_value *args, int32_t n, khub_value *result)
{
    leaves_result = 1;
    int rc = run(self, args, n, result);
    leaves_result = 0;
    return rc;
}

void khub__torch_leave_result(khub_function *f)
{
    if (f->call == run) f->call = run_leaving;
}

/* Whoever looks finds the same. */
static int prepare(recipe *r, const char *torch, khub_error *err)
{
    int rc = khub__machine_open_torch(&(khub_get_options){.torch = torch}, 0, err);
    for (int i = 0; rc == KHUB_OK && i < OPERATORS && r->names[i]; i++) {
        const khub__torch_operator *found = NULL;
        rc = khub__torch_operator_find(&found, "aten", r->names[i], err);
        const char *refusal = rc == KHUB_OK ? khub__torch_operator_refusal(found) : NULL;
        if (refusal) rc = khub__fail(err, KHUB_E_NOTFOUND, "aten::%s: %s", r->names[i], refusal);
        atomic_store(&r->ops[i], found);
    }
    return rc;
}

static recipe *find_recipe(const char *layer)
{
    for (size_t i = 0; i < sizeof(recipes) / sizeof(*recipes); i++)
        if (!strcmp(recipes[i].layer, layer)) return &recipes[i];
    return NULL;
}

int khub__torch_has_layer(const char *layer)
{
    return find_recipe(layer) != NULL;
}

int khub__standard_torch(khub_function *out, const char *layer, const char *torch, khub_error *err)
{
    recipe *r = find_recipe(layer);
    *out = (khub_function){0};
    if (r) {
        int rc = prepare(r, torch, err);
        if (rc == KHUB_OK) *out = (khub_function){run, r};
        return rc;
    }
    khub_function ours;
    int rc = khub_standard(&ours, layer, err);
    return rc == KHUB_OK
               ? khub__fail(err, KHUB_E_NOTFOUND,
                            "%s: PyTorch has no operator for it that its C interface can call", layer)
               : rc;
}

int khub_standard_torch(khub_function *out, const char *layer, khub_error *err)
{
    return khub__standard_torch(out, layer, NULL, err);
}
