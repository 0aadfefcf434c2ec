#include "linear_call.h"

#include "ffi.h"

enum { OUT, X, WEIGHT, BIAS };

linear_call khub__linear_call(const khub__call *c, activation_kind activation)
{
    const DLTensor *out = c->arg[OUT].tensor, *x = c->arg[X].tensor, *weight = c->arg[WEIGHT].tensor;
    static const char nothing = 0; /* tensors without elements have no address to count from */
    const char *x_data = khub__data(x), *weight_data = khub__data(weight);
    return (linear_call){.out = khub__data(out),
                         .x = x_data ? x_data : &nothing,
                         .weight = weight_data ? weight_data : &nothing,
                         .bias = khub__data(c->arg[BIAS].tensor),
                         .out_step = khub__step(out, 0),
                         .x_step = khub__step(x, 0),
                         .weight_step = khub__step(weight, 0),
                         .m = c->extent['m'],
                         .n = c->extent['n'],
                         .k = c->extent['k'],
                         .activation = activation};
}
