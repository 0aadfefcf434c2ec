/* The activations of docs/layers.md on one number, in double. */
#ifndef OPS_SCALAR_H
#define OPS_SCALAR_H

typedef double (*khub__scalar_fn)(double x);

double khub__gelu(double x);
double khub__gelu_tanh(double x);
double khub__silu(double x);
double khub__quick_gelu(double x);
double khub__relu(double x);

#endif
