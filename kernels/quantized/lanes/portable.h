/* w16 as an array: any processor, and the meaning that the others must match. */
#ifndef KHUB_KERNELS_LANES_PORTABLE_H
#define KHUB_KERNELS_LANES_PORTABLE_H

typedef struct w16 {
    uint32_t u[16];
} w16;

#define EACH(expression)                                                                                     \
    w16 r;                                                                                                   \
    for (int i = 0; i < 16; i++)                                                                             \
        r.u[i] = (expression);                                                                               \
    return r
#define EACH_FLOAT(expression)                                                                               \
    v16 r;                                                                                                   \
    for (int i = 0; i < 16; i++)                                                                             \
        r.f[i] = (expression);                                                                               \
    return r

VEC w16 w_load(const void *p)
{
    w16 r;
    memcpy(r.u, p, 64);
    return r;
}
VEC void w_store(void *p, w16 w)
{
    memcpy(p, w.u, 64);
}
VEC w16 w_set(int32_t a)
{
    EACH((uint32_t)a);
}
VEC w16 w_add(w16 a, w16 b)
{
    EACH(a.u[i] + b.u[i]);
}
VEC_LONG v16 w_floats(w16 w)
{
    EACH_FLOAT((float)(int32_t)w.u[i]);
}
VEC int32_t half_of(uint32_t word, int high)
{
    return (int16_t)(word >> 16 * high);
}
VEC_LONG w16 w_pairs(w16 w, int odd)
{
    const int up = odd ? 0 : 8;
    EACH((uint16_t)(half_of(w.u[i] << up, 0) >> 8) | (uint32_t)(half_of(w.u[i] << up, 1) >> 8) << 16);
}
VEC w16 w_quarters(w16 w, int t)
{
    EACH(w.u[i] >> 4 * t & UINT32_C(0x000f000f));
}
VEC w16 w_nibbles(w16 w, int high)
{
    EACH(w.u[i] >> 4 * high & UINT32_C(0x0f0f0f0f));
}
VEC_LONG w16 dot_pairs(w16 sum, const void *x, w16 w)
{
    uint32_t two;
    memcpy(&two, x, 4);
    for (int i = 0; i < 16; i++)
        for (int t = 0; t < 2; t++)
            sum.u[i] += (uint32_t)(half_of(two, t) * half_of(w.u[i], t));
    return sum;
}
VEC_LONG w16 dot_nibbles(w16 sum, const void *x, w16 w, int how)
{
    int8_t four[4];
    (void)how;
    memcpy(four, x, 4);
    for (int i = 0; i < 16; i++)
        for (int t = 0; t < 4; t++)
            sum.u[i] += (uint32_t)(four[t] * (int32_t)(w.u[i] >> 8 * t & 255));
    return sum;
}
VEC w16 dot_sums(w16 sum, int how)
{
    (void)how;
    return sum;
}
VEC void w_store_bytes(void *p, v16 v)
{
    uint8_t bytes[16];
    for (int i = 0; i < 16; i++)
        bytes[i] = (uint8_t)bits_of(v.f[i]);
    memcpy(p, bytes, 16);
}

VEC void w_store_wide(void *p, v16 v)
{
    static const uint8_t order[4] = {0, 2, 1, 3};
    uint16_t halves[16];
    for (int i = 0; i < 16; i++)
        halves[i] = (uint16_t)bits_of(v.f[i / 4 * 4 + order[i % 4]]);
    memcpy(p, halves, 32);
}

#undef EACH
#undef EACH_FLOAT
#endif
