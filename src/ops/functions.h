/* The standard functions. `self` says which of a family it is: see the table in standard.c. */
#ifndef OPS_FUNCTIONS_H
#define OPS_FUNCTIONS_H

#include "ops/scalar.h"

#include <khub/function.h>

/* self of the activations and of Linear with one, or with a residual. */
typedef struct khub__activation {
    const char *layer;
    khub__scalar_fn apply; /* NULL: none */
} khub__activation;

/* Outputs that Linear asks the BLAS for at a time, always from a multiple of it on: a BLAS may sum in another
 * order when it is asked for another number of them. */
enum { KHUB__LINEAR_BLOCK = 64 };

int khub__std_activation(void *self, const khub_value *args, int32_t n,
                         khub_value *result);                                           /* khub__activation */
int khub__std_gated(void *self, const khub_value *args, int32_t n, khub_value *result); /* khub__activation */
int khub__std_linear(void *self, const khub_value *args, int32_t n,
                     khub_value *result); /* khub__activation */
int khub__std_rms_norm_linear(void *self, const khub_value *args, int32_t n, khub_value *result);
int khub__std_add(void *self, const khub_value *args, int32_t n, khub_value *result);
int khub__std_rms_norm(void *self, const khub_value *args, int32_t n, khub_value *result);
int khub__std_add_rms_norm(void *self, const khub_value *args, int32_t n, khub_value *result);
int khub__std_layer_norm(void *self, const khub_value *args, int32_t n, khub_value *result);
int khub__std_add_layer_norm(void *self, const khub_value *args, int32_t n, khub_value *result);
int khub__std_embedding(void *self, const khub_value *args, int32_t n, khub_value *result);
int khub__std_embedding_layer_norm(void *self, const khub_value *args, int32_t n, khub_value *result);
int khub__std_softmax(void *self, const khub_value *args, int32_t n, khub_value *result);
int khub__std_rotary(void *self, const khub_value *args, int32_t n, khub_value *result);
int khub__std_attention(void *self, const khub_value *args, int32_t n, khub_value *result);

#endif
