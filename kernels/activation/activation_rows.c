/* Activations, plain and gated; once for each path. */
#include "activation_path.h"

#include "activation.h"

enum { TOGETHER = 16 * V_TOGETHER };

/* Defines NAME_f32 and NAME_bf16: rows of `one` of x and, when gated, of its second half, `gate`. Where
 * `near` has it all, which is the rule, that is V_TOGETHER in one go. */
#define DEFINE_FOR(name, type, gated, near, one)                                                             \
    VEC_RARE void name##_rest(char *out, const char *xs, const char *gates, int64_t i, int64_t end)          \
    {                                                                                                        \
        for (; i < end; i += 16) {                                                                           \
            v16 x = v_read(xs, i, end, type), gate = gated ? v_read(gates, i, end, type) : x;                \
            (void)gate;                                                                                      \
            v_write(out, i, end, type, one);                                                                 \
        }                                                                                                    \
    }                                                                                                        \
    VEC void name##_part(char *out, const char *xs, const char *gates, int64_t i, int stream)                \
    {                                                                                                        \
        v16 x[V_TOGETHER], result[V_TOGETHER];                                                               \
        int64_t end = i + TOGETHER;                                                                          \
        V_EACH(k, V_TOGETHER) x[k] = v_read(xs, i + 16 * k, end, type);                                      \
        if (stream && type == F32) V_EACH(k, V_TOGETHER) v_ahead(xs, i + 16 * k, type);                      \
        if (stream && type == F32 && gated) V_EACH(k, V_TOGETHER) v_ahead(gates, i + 16 * k, type);          \
        if (!near(result, x, V_TOGETHER)) {                                                                  \
            name##_rest(out, xs, gates, i, end);                                                             \
            return;                                                                                          \
        }                                                                                                    \
        if (gated) V_EACH(k, V_TOGETHER) result[k] = v_mul(result[k], v_read(gates, i + 16 * k, end, type)); \
        V_EACH(k, V_TOGETHER) v_write_past(out, i + 16 * k, end, type, result[k], stream);                   \
    }                                                                                                        \
    static void name(const khub__rows *rows, int64_t n)                                                      \
    {                                                                                                        \
        for (int64_t row = 0; row < rows->count; row++) {                                                    \
            char *out = rows->data[0] + row * rows->step[0];                                                 \
            const char *x = rows->data[1] + row * rows->step[1];                                             \
            const char *gate = x + (gated ? n * ELEMENT_BYTES(type) : 0);                                    \
            int64_t i = 0;                                                                                   \
            int stream = rows->stream && v_may_stream(out);                                                  \
            for (; i + TOGETHER <= n; i += TOGETHER)                                                         \
                name##_part(out, x, gate, i, stream);                                                        \
            name##_rest(out, x, gate, i, n);                                                                 \
        }                                                                                                    \
        if (rows->stream) v_stream_end();                                                                    \
    }
#define DEFINE(name, gated, near, one)                                                                       \
    DEFINE_FOR(name##_f32, F32, gated, near, one)                                                            \
    DEFINE_FOR(name##_bf16, BF16, gated, near, one)

DEFINE(gelu, 0, v_gelu_near, v_gelu_both(x))
DEFINE(gelu_tanh, 0, v_gelu_tanh_near, v_gelu_tanh_both(x))
DEFINE(silu, 0, v_silu_near, v_silu_both(x))
DEFINE(quick_gelu, 0, v_quick_gelu_near, v_quick_gelu_both(x))
DEFINE(relu, 0, v_relu_near, v_relu(x))
DEFINE(silu_and_mul, 1, v_silu_near, v_silu_times(x, gate))
DEFINE(gelu_and_mul, 1, v_gelu_near, v_gelu_times(x, gate))

#define BY_TYPE(name) .name = {name##_f32, name##_bf16}
extern const activation_path PATH(activation);
const activation_path PATH(activation) = {BY_TYPE(gelu),        BY_TYPE(gelu_tanh), BY_TYPE(silu),
                                          BY_TYPE(quick_gelu),  BY_TYPE(relu),      BY_TYPE(silu_and_mul),
                                          BY_TYPE(gelu_and_mul)};
