/* Linear, compiled once per instruction set.
 *
 * The work goes in blocks that stay in the nearest cache: BLOCK_ROWS rows of x by BLOCK_PANELS panels of the
 * weight, over chains of CHAIN. x is copied (bfloat16 is widened) so that it lies without gaps; the weight is
 * read where it is when it is packed float32, else a block of panels is made of it just before it is used. An
 * element of the result is
 *     ((chain 0 + chain 1) + chain 2) + … + bias,
 * chain i being one chain of fused multiply-adds over k = 128 i … 128 i + 127 in order, started at 0: nothing
 * else has a say in its bits. Against one chain over all of k this halves the error (k = 1536, normal
 * x: 2.1e-7 of the result's size in the mean instead of 7.0e-7; MiniLM's embeddings: 0.7e-7 at most instead
 * of 1.4e-7), and the sums have to leave the registers at the end of a block anyway.
 *
 * With a norm, x is normalized while it is copied: the numbers that khub/norm stores, rounded to their type.
 */
#include "linear.h"

#include "activation.h"
#include "rms.h"
#include "tile.h"

enum { CHAIN = 128, BLOCK_ROWS = 24, BLOCK_PANELS = 8, PANEL = LINEAR_PANEL };

/* A block's share of everything, float32. 56 KB of stack. */
typedef struct block {
    _Alignas(64) float x[BLOCK_ROWS][CHAIN];
    _Alignas(64) float w[TILE_PANELS][CHAIN * PANEL]; /* panels that have to be made */
    _Alignas(64) float sum[BLOCK_PANELS][BLOCK_ROWS][PANEL];
    _Alignas(64) float scale[BLOCK_ROWS][PANEL]; /* of each row's norm, in all lanes */
} block;

TILE_FUNCTION(tile_1, 1, CHAIN, 1, 1)
TILE_FUNCTION(tile_2, 2, CHAIN, 1, 1)
TILE_FUNCTION(tile_4, 4, CHAIN, 1, 1)

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

VEC_LONG v16 squares_of(const char *row, int64_t n, int type, float by)
{
    v16 squares = v_set(0);
    for (int64_t k = 0; k < n; k += PANEL) {
        v16 v = v_mul(v_read(row, k, n, type), v_set(by));
        squares = v_fma(v, v, squares);
    }
    return squares;
}

/* What the norm of rows i0 … multiplies them by. */
VEC_LONG void measure_rows(block *b, const linear_call *c, int type, int64_t i0, int64_t rows)
{
    for (int64_t r = 0; r < rows; r++) {
        const char *row = c->x + (i0 + r) * c->x_step;
        v16 squares = squares_of(row, c->k, type, 1), scale = rms_scale(squares, c->k, c->eps);
        if (!rms_fits(squares))
            scale = rms_scale_of_shrunk(squares_of(row, c->k, type, RMS_SHRUNK), c->k, c->eps);
        v_store(b->scale[r], scale);
    }
}

/* As copy_x, what khub/norm makes of it. */
VEC_LONG void copy_normalized(block *b, const linear_call *c, int type, int64_t i0, int64_t rows, int64_t k0,
                              int64_t count)
{
    const char *weight = c->norm_weight + k0 * ELEMENT_BYTES(type);
    for (int64_t r = 0; r < rows; r++) {
        const char *row = c->x + (i0 + r) * c->x_step + k0 * ELEMENT_BYTES(type);
        v16 scale = v_load(b->scale[r]);
        for (int64_t k = 0; k < count; k += PANEL) {
            v16 v = v_mul(v_mul(v_read(row, k, count, type), scale), v_read(weight, k, count, type));
            v_store(b->x[r] + k, v_rounded(v, type));
        }
    }
}

/* x[0 … rows)[k0 … k0 + count) of the call, from its row i0 on. */
VEC_LONG void copy_x(block *b, const linear_call *c, int type, int64_t i0, int64_t rows, int64_t k0,
                     int64_t count)
{
    for (int64_t r = 0; r < rows; r++) {
        const char *row = c->x + (i0 + r) * c->x_step + k0 * ELEMENT_BYTES(type);
        for (int64_t k = 0; k < count; k += PANEL)
            v_store(b->x[r] + k, v_read(row, k, count, type));
    }
}

/* How the weight lies. */
enum { PLAIN, PACKED };

VEC void widen_panel(float *to, const char *from, int64_t count)
{
    for (int64_t k = 0; k < count; k++)
        v_store(to + k * PANEL, v_load_bf16(from + k * PANEL * 2));
}

/* Rows of the weight become columns of the panel; rows past the last are 0. */
VEC_LONG void make_panel(float *to, const linear_call *c, int type, int64_t panel, int64_t k0, int64_t count)
{
    float row[CHAIN];
    for (int64_t j = 0; j < PANEL; j++) {
        int64_t n = panel * PANEL + j;
        for (int64_t k = 0; k < count; k += PANEL) {
            const char *from = c->weight + n * c->weight_step + k0 * ELEMENT_BYTES(type);
            v_store(row + k, n < c->n ? v_read(from, k, count, type) : v_set(0));
        }
        for (int64_t k = 0; k < count; k++)
            to[k * PANEL + j] = row[k];
    }
}

/* Where panel `panel` lies, chains from k0 on. */
VEC const char *packed_at(const linear_call *c, int type, int64_t panel, int64_t k0)
{
    return c->weight + (panel * c->k + k0) * PANEL * ELEMENT_BYTES(type);
}

/* How many panels a tile of these rows has room for, when `left` are left. */
static int panels_for(int64_t rows, int64_t left)
{
    int panels = TILE_PANELS;
    while (panels > 1 && (panels > left || rows * panels > TILE_SUMS))
        panels /= 2;
#if defined(KHUB_ISA_AVX512)
    if (panels < 2 && left >= 2) panels = 2; /* 12 rows by 2 panels fill the registers */
#endif
    return panels;
}

/* What is read after `width` panels from g + p on, whose chains start at k0. */
VEC const char *next_panels(const linear_call *c, int type, int64_t g, int64_t p, int64_t panels, int64_t k0,
                            int64_t count)
{
    if (p < panels) return packed_at(c, type, g + p, k0);
    if (k0 + count < c->k) return packed_at(c, type, g, k0 + count);
    return packed_at(c, type, (g + panels) * PANEL < c->n ? g + panels : 0, 0);
}

/* Adds the chains from k0 on to the sums of `panels` panels from g on, for all rows of the block. */
VEC_LONG void add_chains(block *b, const linear_call *c, int type, int form, int64_t g, int64_t panels,
                         int64_t rows, int64_t k0, int64_t count)
{
    for (int64_t p = 0, width; p < panels; p += width) {
        width = panels_for(rows, panels - p);
        tile_call t = {.x = b->x[0],
                       .w = b->w[0],
                       .sum = b->sum[p][0],
                       .w_panel = CHAIN * PANEL,
                       .sum_panel = BLOCK_ROWS * PANEL,
                       .sum_row = PANEL,
                       .count = count,
                       .add = k0 > 0};
        t.ahead = (const char *)b->x;
        if (form == PACKED) {
            t.ahead = next_panels(c, type, g, p + width, panels, k0, count);
            t.ahead_panel = c->k * PANEL * ELEMENT_BYTES(type);
            t.ahead_step = PANEL * ELEMENT_BYTES(type);
        }
        if (form == PACKED && type == F32) {
            t.w = (const float *)(const void *)packed_at(c, type, g + p, k0);
            t.w_panel = c->k * PANEL;
        }
        for (int64_t i = 0; i < width; i++) {
            if (form == PLAIN)
                make_panel(b->w[i], c, type, g + p + i, k0, count);
            else if (type == BF16)
                widen_panel(b->w[i], packed_at(c, type, g + p + i, k0), count);
        }
        tile_rows(&t, width == 4 ? tile_4 : width == 2 ? tile_2 : tile_1, rows, (int)width, CHAIN);
    }
}

VEC_LONG v16 activate(v16 x, linear_activation activation)
{
    switch (activation) {
    case LINEAR_GELU:
        return v_gelu(x);
    case LINEAR_GELU_TANH:
        return v_gelu_tanh(x);
    case LINEAR_SILU:
        return v_silu(x);
    case LINEAR_RELU:
        return v_relu(x);
    case LINEAR_NONE:
        break;
    }
    return x;
}

VEC_LONG void finish(const block *b, const linear_call *c, int type, int64_t i0, int64_t rows, int64_t g,
                     int64_t panels)
{
    for (int64_t p = 0; p < panels; p++) {
        int64_t n = (g + p) * PANEL;
        v16 bias = c->bias ? v_read(c->bias, n, c->n, type) : v_set(0);
        for (int64_t r = 0; r < rows; r++) {
            v16 sum = v_load(b->sum[p][r]);
            if (c->bias) sum = v_add(sum, bias);
            v_write(c->out + (i0 + r) * c->out_step, n, c->n, type, activate(sum, c->activation));
        }
    }
}

VEC_LONG void linear(const linear_call *c, int type, int form, int normed)
{
    block b;
    int64_t all = (c->n + PANEL - 1) / PANEL;
    for (int64_t i0 = 0; i0 < c->m; i0 += BLOCK_ROWS) {
        int64_t rows = least(BLOCK_ROWS, c->m - i0);
        if (normed) measure_rows(&b, c, type, i0, rows);
        for (int64_t g = 0; g < all; g += BLOCK_PANELS) {
            int64_t panels = least(BLOCK_PANELS, all - g), k0 = 0;
            do { /* once for k = 0: it sets the sums to 0 */
                int64_t count = least(CHAIN, c->k - k0);
                if (normed)
                    copy_normalized(&b, c, type, i0, rows, k0, count);
                else
                    copy_x(&b, c, type, i0, rows, k0, count);
                add_chains(&b, c, type, form, g, panels, rows, k0, count);
                k0 += CHAIN;
            } while (k0 < c->k);
            finish(&b, c, type, i0, rows, g, panels);
        }
    }
}

#define DEFINE(name, type, form, normed)                                                                     \
    static void name(const linear_call *c)                                                                   \
    {                                                                                                        \
        linear(c, type, form, normed);                                                                       \
    }
DEFINE(plain_f32, F32, PLAIN, 0)
DEFINE(plain_bf16, BF16, PLAIN, 0)
DEFINE(packed_f32, F32, PACKED, 0)
DEFINE(packed_bf16, BF16, PACKED, 0)
DEFINE(normed_plain_f32, F32, PLAIN, 1)
DEFINE(normed_plain_bf16, BF16, PLAIN, 1)
DEFINE(normed_packed_f32, F32, PACKED, 1)
DEFINE(normed_packed_bf16, BF16, PACKED, 1)

extern const linear_path PATH(linear);
const linear_path PATH(linear) = {.plain = {plain_f32, plain_bf16},
                                  .packed = {packed_f32, packed_bf16},
                                  .normed_plain = {normed_plain_f32, normed_plain_bf16},
                                  .normed_packed = {normed_packed_f32, normed_packed_bf16}};
