/* v16 as an array: any processor, and the meaning that the others must match. */
#ifndef KHUB_KERNELS_VEC_PORTABLE_H
#define KHUB_KERNELS_VEC_PORTABLE_H

typedef struct v16 {
    float f[16];
} v16;

#define EACH(expression)                                                                                     \
    v16 r;                                                                                                   \
    for (int i = 0; i < 16; i++)                                                                             \
        r.f[i] = (expression);                                                                               \
    return r

/* a · b + c rounded once. The product is exact in double (24 + 24 bits of 53); the sum is rounded to odd
 * there, which leaves the last rounding, to float, as if the sum were exact (53 ≥ 24 + 2; Boldo and Melquiond
 * 2008). */
VEC float fma_exact(float a, float b, float c)
{
    double p = (double)a * b, d = c, s = p + d;
    double from_p = s - d, from_d = s - from_p;
    double lost = (p - from_p) + (d - from_d); /* Knuth's TwoSum: s + lost = p + d exactly */
    uint64_t u;
    memcpy(&u, &s, 8);
    if ((lost > 0 || lost < 0) && !(u & 1)) u = (lost > 0) == (s > 0) ? u + 1 : u - 1;
    memcpy(&s, &u, 8);
    return (float)s;
}

VEC v16 v_set(float a)
{
    EACH(a);
}
VEC v16 v_load(const void *p)
{
    v16 r;
    memcpy(r.f, p, 64);
    return r;
}
VEC void v_store(void *p, v16 v)
{
    memcpy(p, v.f, 64);
}
VEC void v_stream(void *p, v16 v)
{
    v_store(p, v);
}
VEC void v_stream_end(void)
{
}
VEC_LONG v16 v_load_bf16(const void *p)
{
    uint16_t h[16];
    memcpy(h, p, 32);
    EACH(widen(h[i]));
}
VEC_LONG void v_store_bf16(void *p, v16 v)
{
    uint16_t h[16];
    for (int i = 0; i < 16; i++)
        h[i] = narrow(v.f[i]);
    memcpy(p, h, 32);
}
VEC v16 v_add(v16 a, v16 b)
{
    EACH(a.f[i] + b.f[i]);
}
VEC v16 v_sub(v16 a, v16 b)
{
    EACH(a.f[i] - b.f[i]);
}
VEC v16 v_mul(v16 a, v16 b)
{
    EACH(a.f[i] * b.f[i]);
}
VEC_LONG v16 v_div(v16 a, v16 b)
{
    EACH(a.f[i] / b.f[i]);
}
VEC_LONG v16 v_fma(v16 a, v16 b, v16 c)
{
    EACH(fma_exact(a.f[i], b.f[i], c.f[i]));
}
VEC v16 v_max(v16 a, v16 b)
{
    EACH(a.f[i] > b.f[i] ? a.f[i] : b.f[i]);
}
VEC v16 v_min(v16 a, v16 b)
{
    EACH(a.f[i] < b.f[i] ? a.f[i] : b.f[i]);
}
VEC v16 v_abs(v16 a)
{
    EACH(float_of(bits_of(a.f[i]) & UINT32_C(0x7fffffff)));
}
VEC_LONG v16 v_sign(v16 a, v16 s)
{
    EACH(float_of((bits_of(a.f[i]) & UINT32_C(0x7fffffff)) | (bits_of(s.f[i]) & UINT32_C(0x80000000))));
}
VEC_LONG v16 v_less(v16 a, v16 b, v16 x, v16 y)
{
    EACH(a.f[i] < b.f[i] ? x.f[i] : y.f[i]);
}
VEC_LONG int v_all_less(v16 a, v16 b)
{
    int all = 1;
    for (int i = 0; i < 16; i++)
        all &= a.f[i] < b.f[i];
    return all;
}
VEC_LONG v16 v_pick(const float four[4], v16 t)
{
    EACH(four[bits_of(t.f[i]) & 3]);
}
VEC_LONG v16 v_negative(v16 s, v16 x, v16 y)
{
    EACH(bits_of(s.f[i]) >> 31 ? x.f[i] : y.f[i]);
}
VEC_LONG void v_powers(v16 t, v16 *half, v16 *rest)
{
    for (int i = 0; i < 16; i++)
        lane_powers(t.f[i], &half->f[i], &rest->f[i]);
}
VEC_LONG void v_growth(v16 t, v16 *up, v16 *down)
{
    for (int i = 0; i < 16; i++)
        lane_growth(t.f[i], &up->f[i], &down->f[i]);
}
VEC_LONG v16 v_first(v16 v, int64_t count, float rest)
{
    EACH(i < count ? v.f[i] : rest);
}
VEC_LONG float v_sum(v16 v)
{
    for (int width = 8; width; width /= 2)
        for (int i = 0; i < width; i++)
            v.f[i] += v.f[i + width];
    return v.f[0];
}
VEC_LONG float v_largest(v16 v)
{
    for (int width = 8; width; width /= 2)
        for (int i = 0; i < width; i++)
            v.f[i] = v.f[i] > v.f[i + width] ? v.f[i] : v.f[i + width];
    return v.f[0];
}
VEC_LONG v16 v_two_to(v16 t)
{
    EACH(float_of(bits_of(t.f[i]) << 23));
}
VEC_LONG void v_transpose(float *to, const char *from, int64_t step)
{
    for (int i = 0; i < 16; i++)
        for (int j = 0; j < 16; j++)
            memcpy(&to[16 * j + i], from + i * step + 4 * j, 4);
}

#undef EACH
#endif
