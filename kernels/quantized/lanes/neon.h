/* w16 as four NEON registers. */
#ifndef KHUB_KERNELS_LANES_NEON_H
#define KHUB_KERNELS_LANES_NEON_H

typedef struct w16 {
    int32x4_t q[4]; /* lanes 0 … 3, 4 … 7, 8 … 11, 12 … 15 */
} w16;

#define EACH(type, expression)                                                                               \
    type r;                                                                                                  \
    for (int i = 0; i < 4; i++)                                                                              \
        r.q[i] = (expression);                                                                               \
    return r

VEC w16 w_load(const void *p)
{
    const uint8_t *bytes = p;
    EACH(w16, vreinterpretq_s32_u8(vld1q_u8(bytes + 16 * i)));
}
VEC void w_store(void *p, w16 w)
{
    uint8_t *bytes = p;
    for (int i = 0; i < 4; i++)
        vst1q_u8(bytes + 16 * i, vreinterpretq_u8_s32(w.q[i]));
}
VEC w16 w_set(int32_t a)
{
    EACH(w16, vdupq_n_s32(a));
}
VEC w16 w_add(w16 a, w16 b)
{
    EACH(w16, vaddq_s32(a.q[i], b.q[i]));
}
VEC v16 w_floats(w16 w)
{
    EACH(v16, vcvtq_f32_s32(w.q[i]));
}
VEC int32x4_t pairs4(int16x8_t w, int odd)
{
    return vreinterpretq_s32_s16(vshrq_n_s16(odd ? w : vshlq_n_s16(w, 8), 8));
}
VEC w16 w_pairs(w16 w, int odd)
{
    EACH(w16, pairs4(vreinterpretq_s16_s32(w.q[i]), odd));
}
VEC w16 w_quarters(w16 w, int t)
{
    const int32x4_t right = vdupq_n_s32(-4 * t), low = vdupq_n_s32(0x000f000f);
    EACH(w16, vandq_s32(vshlq_s32(w.q[i], right), low));
}
VEC w16 w_nibbles(w16 w, int high)
{
    const int32x4_t right = vdupq_n_s32(-4 * high), low = vdupq_n_s32(0x0f0f0f0f);
    EACH(w16, vandq_s32(vshlq_s32(w.q[i], right), low));
}
VEC int32x4_t dot_pairs4(int32x4_t sum, int16x8_t x, int16x8_t w)
{
    int32x4_t low = vmull_s16(vget_low_s16(x), vget_low_s16(w));
    return vaddq_s32(sum, vpaddq_s32(low, vmull_s16(vget_high_s16(x), vget_high_s16(w))));
}
VEC w16 dot_pairs(w16 sum, const void *x, w16 w)
{
    int32_t two;
    memcpy(&two, x, 4);
    int16x8_t all = vreinterpretq_s16_s32(vdupq_n_s32(two));
    EACH(w16, dot_pairs4(sum.q[i], all, vreinterpretq_s16_s32(w.q[i])));
}
VEC int32x4_t dot_bytes4(int32x4_t sum, int8x16_t x, int8x16_t w)
{
    int16x8_t low = vmull_s8(vget_low_s8(x), vget_low_s8(w));
    return vpadalq_s16(sum, vpaddq_s16(low, vmull_s8(vget_high_s8(x), vget_high_s8(w))));
}
VEC w16 dot_nibbles(w16 sum, const void *x, w16 w, int how)
{
    int32_t four;
    (void)how;
    memcpy(&four, x, 4);
    int8x16_t all = vreinterpretq_s8_s32(vdupq_n_s32(four));
    EACH(w16, dot_bytes4(sum.q[i], all, vreinterpretq_s8_s32(w.q[i])));
}
VEC w16 dot_sums(w16 sum, int how)
{
    (void)how;
    return sum;
}
VEC void w_store_bytes(void *p, v16 v)
{
    uint16x4_t h[4];
    uint8_t *bytes = p;
    for (int i = 0; i < 4; i++)
        h[i] = vmovn_u32(vreinterpretq_u32_f32(v.q[i]));
    vst1_u8(bytes, vmovn_u16(vcombine_u16(h[0], h[1])));
    vst1_u8(bytes + 8, vmovn_u16(vcombine_u16(h[2], h[3])));
}
VEC void w_store_wide(void *p, v16 v)
{
    uint8_t *bytes = p;
    for (int i = 0; i < 4; i++) {
        uint32x4_t u = vreinterpretq_u32_f32(v.q[i]);
        uint32x4_t ordered = vcombine_u32(vzip1_u32(vget_low_u32(u), vget_high_u32(u)),
                                          vzip2_u32(vget_low_u32(u), vget_high_u32(u)));
        vst1_u8(bytes + 8 * i, vreinterpret_u8_u16(vmovn_u32(ordered)));
    }
}

#undef EACH
#endif
