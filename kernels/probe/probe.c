/* Not a repository: exp(out, x), tanh, erf, normal_tail, fma(out, a, b, c), sum(out (m), x (m, 16)), largest,
 * narrow (to bfloat16). */
#include "probe.h"

#include "ffi.h"

ISA_PATHS(probe_path, probe);

static int run(const khub__call *c, probe_function *function)
{
    const float *in[3] = {0};
    int64_t n = 1;
    for (int i = 1; i < c->signature->count; i++)
        in[i - 1] = (const float *)khub__data(c->arg[i].tensor);
    const DLTensor *x = c->arg[1].tensor;
    for (int32_t axis = 0; axis < x->ndim; axis++)
        n *= x->shape[axis];
    function(khub__data(c->arg[0].tensor), in, n);
    return 0;
}

#define PROBE(function, number, ...)                                                                         \
    static const khub__signature function##_signature = {.name = #function,                                  \
                                                         .doc = "",                                          \
                                                         .not_empty = "",                                    \
                                                         .dtypes = KHUB__TAKES_F32,                          \
                                                         .count = number,                                    \
                                                         .params = {__VA_ARGS__}};                           \
    static int function##_run(const khub__call *call)                                                        \
    {                                                                                                        \
        return run(call, probe_paths[call->isa]->function);                                                  \
    }                                                                                                        \
    KHUB__EXPORT(function)

#define X(name, shape)                                                                                       \
    {                                                                                                        \
        name, KHUB__TENSOR, shape                                                                            \
    }
PROBE(exp, 2, {"out", KHUB__OUT, "n"}, X("x", "n"))
PROBE(tanh, 2, {"out", KHUB__OUT, "n"}, X("x", "n"))
PROBE(erf, 2, {"out", KHUB__OUT, "n"}, X("x", "n"))
PROBE(normal_tail, 2, {"out", KHUB__OUT, "n"}, X("x", "n"))
PROBE(fma, 4, {"out", KHUB__OUT, "n"}, X("a", "n"), X("b", "n"), X("c", "n"))
PROBE(sum, 2, {"out", KHUB__OUT, "m"}, X("x", "mw"))
PROBE(largest, 2, {"out", KHUB__OUT, "m"}, X("x", "mw"))
PROBE(narrow, 2, {"out", KHUB__OUT, "mw", .dtype = {kDLBfloat, 16, 1}}, X("x", "mw"))
