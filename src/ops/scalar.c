#include "ops/scalar.h"

#include <math.h>

double khub__gelu(double x)
{
    return 0.5 * x *
           erfc(-x * 0.70710678118654752440); /* 1 + erf(y) = erfc(-y), exact for large negative x */
}

double khub__gelu_tanh(double x)
{
    /* (1 + tanh(u)) / 2 = 1 / (1 + exp(-2u)), exact for large negative x; 2 sqrt(2 / pi) */
    return x / (1 + exp(-1.5957691216057307117 * (x + 0.044715 * x * x * x)));
}

double khub__silu(double x)
{
    return x / (1 + exp(-x));
}

double khub__quick_gelu(double x)
{
    return x / (1 + exp(-1.702 * x));
}

double khub__relu(double x)
{
    return x < 0 ? 0 : x;
}
