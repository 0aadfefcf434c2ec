#include "numerics/fast.h"

#include "platform/cpu.h"

#include <stdatomic.h>
#include <string.h>

#if defined(__x86_64__)
static int look(void)
{
    static const char *const needed[] = {"avx2", "fma", "f16c"};
    enum { NEEDED = sizeof(needed) / sizeof(*needed) };
    const char *names[KHUB__MAX_FEATURES];
    size_t count = khub__cpu_features(names), has = 0;
    for (size_t i = 0; i < count; i++)
        for (size_t n = 0; n < NEEDED; n++)
            has += !strcmp(names[i], needed[n]);
    return has == NEEDED;
}

/* Looked at when first asked. (The compiler's own way looks at each start of a program, and a virtual
 * machine takes its time for that.) */
static int has_avx2(void)
{
    static _Atomic int known; /* 0: not yet, 1: no, 2: yes */
    if (!atomic_load(&known)) atomic_store(&known, 1 + look());
    return atomic_load(&known) == 2;
}

const khub__fast *khub__fast_of(khub_dtype a, khub_dtype b)
{
    if (!has_avx2()) return NULL;
    return memcmp(&a, &b, sizeof(a)) ? khub__fast_avx2_beside(a, b) : khub__fast_avx2(a);
}
#else
const khub__fast *khub__fast_of(khub_dtype a, khub_dtype b)
{
    (void)a;
    (void)b;
    return NULL;
}
#endif
