/* v16 as four NEON registers (AArch64, where every processor has them and the fused multiply-add). */
#ifndef KHUB_KERNELS_VEC_NEON_H
#define KHUB_KERNELS_VEC_NEON_H

#include <arm_neon.h>

typedef struct v16 {
    float32x4_t q[4]; /* lanes 0 … 3, 4 … 7, 8 … 11, 12 … 15 */
} v16;

#define EACH(expression)                                                                                     \
    v16 r;                                                                                                   \
    for (int i = 0; i < 4; i++)                                                                              \
        r.q[i] = (expression);                                                                               \
    return r

VEC v16 v_set(float a)
{
    EACH(vdupq_n_f32(a));
}
VEC v16 v_load(const void *p)
{
    const uint8_t *bytes = p;
    EACH(vreinterpretq_f32_u8(vld1q_u8(bytes + 16 * i)));
}
VEC void v_store(void *p, v16 v)
{
    uint8_t *bytes = p;
    for (int i = 0; i < 4; i++)
        vst1q_u8(bytes + 16 * i, vreinterpretq_u8_f32(v.q[i]));
}
/* No intrinsic says it; the processor sees by itself that whole lines are written. */
VEC void v_stream(void *p, v16 v)
{
    v_store(p, v);
}
VEC void v_stream_end(void)
{
}
VEC v16 v_load_bf16(const void *p)
{
    const uint8_t *bytes = p;
    EACH(vreinterpretq_f32_u32(vshll_n_u16(vreinterpret_u16_u8(vld1_u8(bytes + 8 * i)), 16)));
}
VEC uint16x4_t narrow4(float32x4_t v)
{
    uint32x4_t u = vreinterpretq_u32_f32(v), high = vshrq_n_u32(u, 16);
    uint32x4_t odd = vandq_u32(high, vdupq_n_u32(1));
    uint32x4_t near = vshrq_n_u32(vaddq_u32(u, vaddq_u32(odd, vdupq_n_u32(0x7fff))), 16);
    uint32x4_t number = vceqq_f32(v, v);
    return vmovn_u32(vbslq_u32(number, near, vorrq_u32(high, vdupq_n_u32(0x40))));
}
VEC void v_store_bf16(void *p, v16 v)
{
    uint8_t *bytes = p;
    for (int i = 0; i < 4; i++)
        vst1_u8(bytes + 8 * i, vreinterpret_u8_u16(narrow4(v.q[i])));
}
VEC v16 v_add(v16 x, v16 y)
{
    EACH(vaddq_f32(x.q[i], y.q[i]));
}
VEC v16 v_sub(v16 x, v16 y)
{
    EACH(vsubq_f32(x.q[i], y.q[i]));
}
VEC v16 v_mul(v16 x, v16 y)
{
    EACH(vmulq_f32(x.q[i], y.q[i]));
}
VEC v16 v_div(v16 x, v16 y)
{
    EACH(vdivq_f32(x.q[i], y.q[i]));
}
VEC v16 v_fma(v16 x, v16 y, v16 z)
{
    EACH(vfmaq_f32(z.q[i], x.q[i], y.q[i]));
}
/* The machine's own maximum differs for NaN and for zeros of two signs. */
VEC v16 v_max(v16 x, v16 y)
{
    EACH(vbslq_f32(vcgtq_f32(x.q[i], y.q[i]), x.q[i], y.q[i]));
}
VEC v16 v_min(v16 x, v16 y)
{
    EACH(vbslq_f32(vcltq_f32(x.q[i], y.q[i]), x.q[i], y.q[i]));
}
VEC v16 v_abs(v16 x)
{
    EACH(vabsq_f32(x.q[i]));
}
VEC v16 v_sign(v16 x, v16 s)
{
    EACH(vbslq_f32(vdupq_n_u32(UINT32_C(0x80000000)), s.q[i], x.q[i]));
}
VEC v16 v_less(v16 p, v16 q, v16 x, v16 y)
{
    EACH(vbslq_f32(vcltq_f32(p.q[i], q.q[i]), x.q[i], y.q[i]));
}
VEC int v_all_less(v16 p, v16 q)
{
    uint32x4_t low = vandq_u32(vcltq_f32(p.q[0], q.q[0]), vcltq_f32(p.q[1], q.q[1])),
               high = vandq_u32(vcltq_f32(p.q[2], q.q[2]), vcltq_f32(p.q[3], q.q[3]));
    return vminvq_u32(vandq_u32(low, high)) != 0;
}
VEC v16 v_pick(const float four[4], v16 t)
{
    /* as bytes: 4 n, 4 n + 1, 4 n + 2, 4 n + 3 */
    const uint32x4_t first = vdupq_n_u32(UINT32_C(0x03020100)), step = vdupq_n_u32(UINT32_C(0x04040404));
    const uint8x16_t bytes = vreinterpretq_u8_f32(vld1q_f32(four));
    EACH(vreinterpretq_f32_u8(
        vqtbl1q_u8(bytes, vreinterpretq_u8_u32(vmlaq_u32(
                              first, vandq_u32(vreinterpretq_u32_f32(t.q[i]), vdupq_n_u32(3)), step)))));
}
VEC v16 v_negative(v16 s, v16 x, v16 y)
{
    EACH(vbslq_f32(vcltzq_s32(vreinterpretq_s32_f32(s.q[i])), x.q[i], y.q[i]));
}
VEC float32x4_t power4(int32x4_t n)
{
    return vreinterpretq_f32_s32(vshlq_n_s32(vaddq_s32(n, vdupq_n_s32(127)), 23));
}
VEC void v_powers(v16 t, v16 *half, v16 *rest)
{
    for (int i = 0; i < 4; i++) {
        int32x4_t n = vsubq_s32(vreinterpretq_s32_f32(t.q[i]), vdupq_n_s32((int32_t)V_ROUNDER_BITS));
        int32x4_t low = vshrq_n_s32(n, 1);
        half->q[i] = power4(low);
        rest->q[i] = power4(vsubq_s32(n, low));
    }
}
VEC void v_growth(v16 t, v16 *up, v16 *down)
{
    for (int i = 0; i < 4; i++) {
        int32x4_t n = vsubq_s32(vreinterpretq_s32_f32(t.q[i]), vdupq_n_s32((int32_t)V_ROUNDER_BITS));
        int32x4_t less = vminq_s32(vshrq_n_s32(vnegq_s32(n), 1), vdupq_n_s32(0));
        up->q[i] = power4(vaddq_s32(n, less));
        down->q[i] = power4(less);
    }
}
VEC v16 v_first(v16 v, int64_t count, float rest)
{
    static const int32_t first[4] = {0, 1, 2, 3};
    int32x4_t lane = vld1q_s32(first), left = vdupq_n_s32(count < 16 ? (int32_t)count : 16);
    EACH(vbslq_f32(vcgtq_s32(left, vaddq_s32(lane, vdupq_n_s32(4 * i))), v.q[i], vdupq_n_f32(rest)));
}
VEC float v_sum(v16 v)
{
    float32x4_t s4 = vaddq_f32(vaddq_f32(v.q[0], v.q[2]), vaddq_f32(v.q[1], v.q[3]));
    float32x2_t s2 = vadd_f32(vget_low_f32(s4), vget_high_f32(s4));
    return vget_lane_f32(s2, 0) + vget_lane_f32(s2, 1);
}
VEC float v_largest(v16 v)
{
    float f[16];
    v_store(f, v);
    for (int width = 8; width; width /= 2)
        for (int i = 0; i < width; i++)
            f[i] = f[i] > f[i + width] ? f[i] : f[i + width];
    return f[0];
}
VEC v16 v_two_to(v16 t)
{
    EACH(vreinterpretq_f32_u32(vshlq_n_u32(vreinterpretq_u32_f32(t.q[i]), 23)));
}
VEC float32x4_t load4(const char *p)
{
    return vreinterpretq_f32_u8(vld1q_u8((const uint8_t *)p));
}
VEC void transpose4(float *to, const char *from, int64_t step)
{
    float32x4x2_t a = vtrnq_f32(load4(from), load4(from + step)),
                  b = vtrnq_f32(load4(from + 2 * step), load4(from + 3 * step));
    vst1q_f32(to, vcombine_f32(vget_low_f32(a.val[0]), vget_low_f32(b.val[0])));
    vst1q_f32(to + 16, vcombine_f32(vget_low_f32(a.val[1]), vget_low_f32(b.val[1])));
    vst1q_f32(to + 32, vcombine_f32(vget_high_f32(a.val[0]), vget_high_f32(b.val[0])));
    vst1q_f32(to + 48, vcombine_f32(vget_high_f32(a.val[1]), vget_high_f32(b.val[1])));
}
VEC void v_transpose(float *to, const char *from, int64_t step)
{
    for (int i = 0; i < 16; i += 4)
        for (int j = 0; j < 16; j += 4)
            transpose4(to + 16 * j + i, from + i * step + 4 * j, step);
}

#undef EACH
#endif
