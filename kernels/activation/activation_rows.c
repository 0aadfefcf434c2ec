/* Activations, plain and gated; once for each path. */
#include "activation_path.h"

#include "activation.h"

/* Defines NAME_f32 and NAME_bf16: rows of `expression` of x and, when gated, of its second half, `gate`. */
#define DEFINE_FOR(name, type, gated, expression)                                                            \
    VEC void name##_part(char *out, const char *xs, const char *gates, int64_t i, int64_t end, int stream)   \
    {                                                                                                        \
        v16 x = v_read(xs, i, end, type), gate = gated ? v_read(gates, i, end, type) : x;                    \
        (void)gate;                                                                                          \
        if (stream && type == F32) v_ahead(xs, i, type);                                                     \
        if (stream && type == F32 && gated) v_ahead(gates, i, type);                                         \
        v_write_past(out, i, end, type, expression, stream);                                                 \
    }                                                                                                        \
    static void name(const khub__rows *rows, int64_t n)                                                      \
    {                                                                                                        \
        for (int64_t row = 0; row < rows->count; row++) {                                                    \
            char *out = rows->data[0] + row * rows->step[0];                                                 \
            const char *x = rows->data[1] + row * rows->step[1];                                             \
            const char *gate = x + (gated ? n * ELEMENT_BYTES(type) : 0);                                    \
            int64_t i = 0;                                                                                   \
            int stream = rows->stream && v_may_stream(out);                                                  \
            for (; i + 16 <= n; i += 16)                                                                     \
                name##_part(out, x, gate, i, i + 16, stream);                                                \
            if (i < n) name##_part(out, x, gate, i, n, stream);                                              \
        }                                                                                                    \
        if (rows->stream) v_stream_end();                                                                    \
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
