/* The functions under the kernels, one by one; once for each path. */
#include "probe.h"

#include "vmath.h"

#define DEFINE(name, expression)                                                                             \
    static void name(void *out, const float *const in[3], int64_t n)                                         \
    {                                                                                                        \
        for (int64_t i = 0; i < n; i += 16) {                                                                \
            v16 x = v_read((const char *)in[0], i, n, F32);                                                  \
            v_write(out, i, n, F32, expression);                                                             \
        }                                                                                                    \
    }
DEFINE(probe_exp, v_exp(x))
DEFINE(probe_tanh, v_tanh(x))
DEFINE(probe_erf, v_erf(x))
DEFINE(probe_normal_tail, v_normal_tail(x))
DEFINE(probe_fma, v_fma(x, v_read((const char *)in[1], i, n, F32), v_read((const char *)in[2], i, n, F32)))

static void probe_sum(void *out, const float *const in[3], int64_t n)
{
    for (int64_t i = 0; i < n; i += 16)
        ((float *)out)[i / 16] = v_sum(v_load(in[0] + i));
}
static void probe_largest(void *out, const float *const in[3], int64_t n)
{
    for (int64_t i = 0; i < n; i += 16)
        ((float *)out)[i / 16] = v_largest(v_load(in[0] + i));
}
static void probe_narrow(void *out, const float *const in[3], int64_t n)
{
    for (int64_t i = 0; i < n; i += 16)
        v_write(out, i, n, BF16, v_load(in[0] + i));
}

extern const probe_path PATH(probe);
const probe_path PATH(probe) = {.exp = probe_exp,
                                .tanh = probe_tanh,
                                .erf = probe_erf,
                                .normal_tail = probe_normal_tail,
                                .fma = probe_fma,
                                .sum = probe_sum,
                                .largest = probe_largest,
                                .narrow = probe_narrow};
