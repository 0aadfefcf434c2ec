/* Activations, plain and gated; once for each path. */
#include "activation_path.h"

#include "activation.h"

/* Defines NAME_f32 and NAME_bf16: rows of `expression` of x and, when gated, of its second half, `gate`. */
#define DEFINE_FOR(name, type, gated, expression)                                                            \
    static void name(const khub__rows *rows, int64_t n)                                                      \
    {                                                                                                        \
        for (int64_t row = 0; row < rows->count; row++) {                                                    \
            char *out_row = rows->data[0] + row * rows->step[0];                                             \
            const char *x_row = rows->data[1] + row * rows->step[1];                                         \
            const char *gate_row = x_row + (gated ? n * ELEMENT_BYTES(type) : 0);                            \
            for (int64_t i = 0; i < n; i += 16) {                                                            \
                v16 x = v_read(x_row, i, n, type), gate = gated ? v_read(gate_row, i, n, type) : x;          \
                (void)gate;                                                                                  \
                v_write(out_row, i, n, type, expression);                                                    \
            }                                                                                                \
        }                                                                                                    \
    }
#define DEFINE(name, gated, expression)                                                                      \
    DEFINE_FOR(name##_f32, F32, gated, expression)                                                           \
    DEFINE_FOR(name##_bf16, BF16, gated, expression)

DEFINE(gelu, 0, v_gelu(x))
DEFINE(gelu_tanh, 0, v_gelu_tanh(x))
DEFINE(silu, 0, v_silu(x))
DEFINE(quick_gelu, 0, v_quick_gelu(x))
DEFINE(relu, 0, v_relu(x))
DEFINE(silu_and_mul, 1, v_silu_times(x, gate))
DEFINE(gelu_and_mul, 1, v_gelu_times(x, gate))

#define BY_TYPE(name) .name = {name##_f32, name##_bf16}
extern const activation_path PATH(activation);
const activation_path PATH(activation) = {BY_TYPE(gelu),        BY_TYPE(gelu_tanh), BY_TYPE(silu),
                                          BY_TYPE(quick_gelu),  BY_TYPE(relu),      BY_TYPE(silu_and_mul),
                                          BY_TYPE(gelu_and_mul)};
