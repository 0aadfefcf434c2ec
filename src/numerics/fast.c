#include "numerics/fast.h"

const khub__fast *khub__fast_of(khub_dtype dtype)
{
#if defined(__x86_64__)
    /* F16C came before AVX2: a processor with the latter has it. */
    int has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    return has_avx2 ? khub__fast_avx2(dtype) : NULL;
#else
    (void)dtype;
    return NULL;
#endif
}
