/* khub/rotary: right by the formula, the same bits for every instruction set, split and layout, in place or
 * not. */
#include "kernels.h"

enum { TOKENS = 5, HEADS = 3, GROUPS = 2 };

static guarded *tensor(khub_dtype dtype, int64_t heads, int64_t width, int64_t gap)
{
    int64_t shape[3] = {TOKENS, heads, width};
    guarded *g = guarded_new(dtype, 3, shape, gap, 0);
    guarded_fill(g, random_normal);
    return g;
}
static guarded *angles(khub_dtype dtype, int64_t half, int64_t gap)
{
    int64_t shape[2] = {TOKENS, half};
    guarded *g = guarded_new(dtype, 2, shape, gap, 0);
    guarded_fill(g, random_normal); /* any numbers do: no use is made of cos² + sin² = 1 */
    return g;
}

static void call(const library *l, guarded *out, const guarded *x, const guarded *cos, const guarded *sin)
{
    ck_kernel_ok(l, "rotary", khub_arg_tensor(&out->t), khub_arg_tensor(&x->t), khub_arg_tensor(&cos->t),
                 khub_arg_tensor(&sin->t));
    ck_assert(guards_hold(out) && guards_hold(x));
}

/* Two products, one sum: each rounded at most, to 24 bits, then to the tensor's. */
static void check(const guarded *out, const guarded *x, const guarded *cos, const guarded *sin)
{
    int64_t width = x->shape[2], half = width / 2, heads = x->shape[1];
    double stored = stored_within(out->t.dtype), tiny = out->t.dtype.bits == 16 ? 0x1p-25 : 0;
    for (int64_t row = 0; row < TOKENS * heads; row++)
        for (int64_t i = 0; i < half; i++) {
            double a = guarded_get(x, row * width + i), b = guarded_get(x, row * width + half + i);
            double c = guarded_get(cos, row / heads * half + i), s = guarded_get(sin, row / heads * half + i);
            double first = a * c - b * s, second = b * c + a * s, off = 3 * 0x1p-24;
            double got = guarded_get(out, row * width + i), got2 = guarded_get(out, row * width + half + i);
            ck_assert(fabs(got - first) <=
                      off * (fabs(a * c) + fabs(b * s)) + stored * fabs(first) * 1.001 + tiny);
            ck_assert(fabs(got2 - second) <=
                      off * (fabs(b * c) + fabs(a * s)) + stored * fabs(second) * 1.001 + tiny);
        }
}

START_TEST(right_and_the_same_everywhere)
{
    static const int64_t halves[] = {1, 8, 16, 17, 32, 50, 0};
    const char *isas[ISAS];
    int count = isas_of(isas, "rotary");
    for (int n = 0; n < 7; n++)
        for (int k = 0; k < 3; k++) {
            khub_dtype dtype = k == 0 ? f32 : k == 1 ? bf16 : f16;
            int from = k == 2 ? count - 1 : 0; /* float16 on GPUs alone */
            ck_assert(k < 2 || isas[from] == emulated);
            guarded *x = tensor(dtype, HEADS, 2 * halves[n], n), *cos = angles(dtype, halves[n], n);
            guarded *sin = angles(dtype, halves[n], 0), *first = tensor(dtype, HEADS, 2 * halves[n], 0);
            for (int i = from; i < count; i++) {
                library l = library_open("rotary", isas[i]);
                guarded *out = tensor(dtype, HEADS, 2 * halves[n], 3);
                call(&l, i > from ? out : first, x, cos, sin);
                if (i > from) ck_assert(guarded_equal(first, out));
                guarded_free(out);
            }
            check(first, x, cos, sin);
            library l = library_open("rotary", k == 2 ? emulated : NULL);
            call(&l, x, x, cos, sin); /* in place */
            ck_assert(guarded_equal(first, x));
            guarded_free(x), guarded_free(cos), guarded_free(sin), guarded_free(first);
        }
}
END_TEST

/* rotary_pos_emb is rotary of q and of k, and of each token alone. */
static void both_and_single(const char *isa)
{
    library l = library_open("rotary", isa);
    guarded *q = tensor(f32, HEADS, 20, 0), *k = tensor(f32, GROUPS, 20, 0), *cos = angles(f32, 10, 0),
            *sin = angles(f32, 10, 0);
    guarded *q_out = tensor(f32, HEADS, 20, 0), *k_out = tensor(f32, GROUPS, 20, 0);
    guarded *q_one = tensor(f32, HEADS, 20, 0), *k_one = tensor(f32, GROUPS, 20, 0);
    call(&l, q_out, q, cos, sin);
    call(&l, k_out, k, cos, sin);
    for (int64_t t = 0; t < TOKENS; t++) {
        guarded *all[6] = {q_one, k_one, q, k, cos, sin};
        khub_tensor part[6];
        int64_t shapes[6][3];
        khub_value args[6];
        char words[1024];
        for (int i = 0; i < 6; i++) {
            part[i] = all[i]->t;
            memcpy(shapes[i], all[i]->shape, sizeof(shapes[i]));
            shapes[i][0] = 1;
            part[i].shape = shapes[i];
            part[i].byte_offset += (uint64_t)(t * all[i]->strides[0] * 4);
            args[i] = khub_arg_tensor(&part[i]);
        }
        ck_assert_msg(call_kernel(&l, "rotary_pos_emb", args, 6, words) == 0, "%s", words);
    }
    ck_assert(guarded_equal(q_one, q_out));
    ck_assert(guarded_equal(k_one, k_out));
    guarded *all[8] = {q, k, cos, sin, q_out, k_out, q_one, k_one};
    for (int i = 0; i < 8; i++)
        guarded_free(all[i]);
}
START_TEST(both_at_once_and_token_by_token)
{
    both_and_single(NULL);
    both_and_single(emulated);
}
END_TEST

UNIT("kernels_rotary", right_and_the_same_everywhere, both_at_once_and_token_by_token)
