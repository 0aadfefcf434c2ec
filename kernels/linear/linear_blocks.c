/* Linear, compiled once per instruction set.
 *
 * The work goes in blocks: BLOCK_ROWS rows of x by BLOCK_PANELS panels of the weight, over chains of CHAIN. A
 * panel's share stays in the nearest cache while all rows of the block pass it, tile by tile; the rows' share
 * of x and the sums (48 and 144 KB) in the second. So the weight, which comes from afar, is read once for as
 * many rows as fit, fetched a panel ahead; what comes next of x and what is written are fetched too. x is
 * copied (bfloat16 is widened) so that it lies without gaps; the weight is read where it is when it is packed
 * float32, else panels are made of it just before they are used. An element of the result is
 *     ((chain 0 + chain 1) + chain 2) + … + bias + residual,
 * chain i being one chain of fused multiply-adds over k = 128 i … 128 i + 127 in order, started at 0: nothing
 * else has a say in its bits. Against one chain over all of k this halves the error (k = 1536, normal
 * x: 2.1e-7 of the result's size in the mean instead of 7.0e-7; MiniLM's embeddings: 0.7e-7 at most instead
 * of 1.4e-7), and the sums have to leave the registers at the end of a block anyway.
 *
 * With a norm, x is normalized while it is copied: the numbers that khub/norm stores, rounded to their type.
 */
#include "linear.h"

#include "activation.h"
#include "parts.h"
#include "rms.h"
#include "tile.h"

enum { CHAIN = 128, BLOCK_ROWS = 96, BLOCK_PANELS = 24, PANEL = LINEAR_PANEL };

/* A block's share of everything, float32. 230 KB of stack, of which few rows touch little. */
typedef struct block {
    _Alignas(64) float x[BLOCK_ROWS][CHAIN];
    _Alignas(64) float w[TILE_PANELS][CHAIN * PANEL];          /* panels that have to be made */
    _Alignas(64) float sum[BLOCK_PANELS * BLOCK_ROWS * PANEL]; /* (panels, rows, PANEL) without gaps */
    _Alignas(64) float scale[BLOCK_ROWS][PANEL];               /* of each row's norm, in all lanes */
} block;

/* Where the work is: rows i0 … of x and out, panels g … of the weight, chains over k0 … k0 + count - 1. */
typedef struct place {
    int64_t i0, rows, g, panels, k0, count;
} place;

TILE_FUNCTION(tile_1, 1, CHAIN, 1, 1)
TILE_FUNCTION(tile_2, 2, CHAIN, 1, 1)
TILE_FUNCTION(tile_4, 4, CHAIN, 1, 1)
/* For a single row: the weight is read once and in order, as fast as it comes; the processor sees what is
 * read next better than we do. */
TILE_FUNCTION(tile_row, 4, CHAIN, 1, 0)

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* What the norm multiplies each row by. */
VEC_LONG void measure_rows(block *b, const linear_call *c, int type, place at)
{
    for (int64_t r = 0; r < at.rows; r++) {
        const char *row = c->x + (at.i0 + r) * c->x_step;
        float squares = rms_squares(row, c->k, type, 1), scale = rms_scale(squares, c->k, c->eps, 0);
        if (!rms_fits(squares))
            scale = RMS_SHRUNK * rms_scale(rms_squares(row, c->k, type, RMS_SHRUNK), c->k, c->eps, 1);
        v_store(b->scale[r], v_set(scale));
    }
}

VEC const char *x_at(const linear_call *c, int type, int64_t i, int64_t k)
{
    return c->x + i * c->x_step + k * ELEMENT_BYTES(type);
}

/* As copy_x, what khub/norm makes of it. */
VEC_LONG void copy_normalized(block *b, const linear_call *c, int type, place at)
{
    const char *weight = c->norm_weight + at.k0 * ELEMENT_BYTES(type);
    for (int64_t r = 0; r < at.rows; r++) {
        const char *row = x_at(c, type, at.i0 + r, at.k0);
        v16 scale = v_load(b->scale[r]);
        for (int64_t k = 0; k < at.count; k += PANEL) {
            v16 v = v_mul(v_mul(v_read(row, k, at.count, type), scale), v_read(weight, k, at.count, type));
            v_store(b->x[r] + k, v_rounded(v, type));
        }
    }
}

/* The block's share of x. */
VEC_LONG void copy_x(block *b, const linear_call *c, int type, place at)
{
    for (int64_t r = 0; r < at.rows; r++) {
        const char *row = x_at(c, type, at.i0 + r, at.k0);
        for (int64_t k = 0; k < at.count; k += PANEL)
            v_store(b->x[r] + k, v_read(row, k, at.count, type));
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

/* The place whose x is copied after this one: the next chains, the next panels, the next rows. */
static place next_place(const linear_call *c, place at)
{
    at.k0 += CHAIN;
    if (at.k0 >= c->k) {
        at.k0 = 0;
        at.g += at.panels;
    }
    if (at.g * PANEL >= c->n) {
        at.g = 0;
        at.i0 += at.rows;
    }
    at.count = least(CHAIN, c->k - at.k0);
    at.rows = least(at.rows, c->m - at.i0);
    return at;
}

/* Fetches rows of the next place's x, `from` to `to` of `of` parts of them. */
VEC void fetch_x(const linear_call *c, int type, place next, int64_t from, int64_t to, int64_t of)
{
    for (int64_t r = next.rows * from / of; r < next.rows * to / of; r++)
        for (int64_t k = 0; k < next.count; k += 64 / ELEMENT_BYTES(type))
            __builtin_prefetch(x_at(c, type, next.i0 + r, next.k0 + k));
}

/* The sums of rows r … r + rows - 1, panels p … p + width - 1 of the block become results. */
VEC_LONG void finish(const block *b, const linear_call *c, int type, place at, int64_t r, int64_t rows,
                     int64_t p, int64_t width)
{
    for (int64_t end = p + width; p < end; p++) {
        int64_t n = (at.g + p) * PANEL;
        const float *sums = b->sum + (p * at.rows + r) * PANEL;
        char *out = c->out + (at.i0 + r) * c->out_step;
        const char *residual = c->residual ? c->residual + (at.i0 + r) * c->residual_step : NULL;
        v16 bias = c->bias ? v_read(c->bias, n, c->n, type) : v_set(0);
        for (int64_t i = 0; i < rows; i++) {
            v16 sum = v_load(sums + i * PANEL);
            if (c->bias) sum = v_add(sum, bias);
            if (residual) sum = v_add(sum, v_read(residual + i * c->residual_step, n, c->n, type));
            v_write(out + i * c->out_step, n, c->n, type, v_activated_by(sum, c->activation));
        }
    }
}

/* Fetches what finish will read and write. */
VEC void fetch_results(const linear_call *c, int type, place at, int64_t r, int64_t rows, int64_t p)
{
    int64_t column = (at.g + p) * PANEL * ELEMENT_BYTES(type);
    for (int64_t i = at.i0 + r; i < at.i0 + r + rows; i++) {
        __builtin_prefetch(c->out + i * c->out_step + column, 1);
        if (c->residual) __builtin_prefetch(c->residual + i * c->residual_step + column);
    }
}

/* Packed: where the weights lie that come after panels … p - 1. */
VEC const char *next_panels(const linear_call *c, int type, place at, place next, int64_t p)
{
    if (p < at.panels) return packed_at(c, type, at.g + p, at.k0);
    return packed_at(c, type, next.g, next.k0);
}

/* Where panel p of the block lies for a tile; `width` panels from p on are made, where they have to be. */
VEC void give_panels(tile_call *t, block *b, const linear_call *c, int type, int form, place at, int64_t p,
                     int64_t width)
{
    if (form == PACKED && type == F32) {
        t->w = (const float *)(const void *)packed_at(c, type, at.g + p, at.k0);
        t->w_panel = c->k * PANEL;
        return;
    }
    t->w = b->w[0];
    t->w_panel = CHAIN * PANEL;
    for (int64_t i = 0; i < width; i++) {
        if (form == PLAIN)
            make_panel(b->w[i], c, type, at.g + p + i, at.k0, at.count);
        else
            widen_panel(b->w[i], packed_at(c, type, at.g + p + i, at.k0), at.count);
    }
}

/* The block's chains are added to its sums, which after the last chains become results: tile by tile, so that
 * the next tile is computed while they are written. */
VEC_LONG void add_chains(block *b, const linear_call *c, int type, int form, place at)
{
    place next = next_place(c, at);
    int last = at.k0 + at.count >= c->k;
    for (int64_t p = 0, width; p < at.panels; p += width) {
        width = tile_panels(at.rows, at.panels - p);
        tile_function *tile = width == 4 ? at.rows == 1 ? tile_row : tile_4 : width == 2 ? tile_2 : tile_1;
        tile_call t = {.x = b->x[0],
                       .sum = b->sum + p * at.rows * PANEL,
                       .sum_panel = at.rows * PANEL,
                       .sum_row = PANEL,
                       .count = at.count,
                       .add = at.k0 > 0,
                       .ahead = (const char *)b->x};
        if (form == PACKED) {
            int64_t tiles = (at.rows + TILE_ROWS - 1) / TILE_ROWS; /* together they fetch what one would */
            t.ahead = next_panels(c, type, at, next, p + width);
            t.ahead_panel = c->k * PANEL * ELEMENT_BYTES(type);
            t.ahead_step = PANEL * ELEMENT_BYTES(type) / tiles;
        }
        give_panels(&t, b, c, type, form, at, p, width);
        fetch_x(c, type, next, p, p + width, at.panels);
        for (int64_t r = 0, share; r < at.rows; r += share) {
            share = tile_share(at.rows - r, (int)width);
            if (last) fetch_results(c, type, at, r, share, p);
            tile_next(&t, tile, (int)share, CHAIN);
            if (last) finish(b, c, type, at, r, share, p, width);
        }
    }
}

/* The next part when `left` is dealt out in even parts of at most `most`, all but the last a multiple of
 * `unit`. */
static int64_t part_of(int64_t left, int64_t most, int64_t unit)
{
    int64_t parts = (left + most - 1) / most, even = (left + parts - 1) / parts;
    return least(left, (even + unit - 1) / unit * unit);
}

VEC_LONG void linear(const linear_call *c, int type, int form, int normed)
{
    block b;
    place at;
    int64_t all = (c->n + PANEL - 1) / PANEL, most = c->m == 1 ? TILE_PANELS : BLOCK_PANELS;
    for (at.i0 = 0; at.i0 < c->m; at.i0 += at.rows) {
        at.rows = part_of(c->m - at.i0, BLOCK_ROWS, TILE_ROWS);
        if (normed) measure_rows(&b, c, type, at);
        for (at.g = 0; at.g < all; at.g += at.panels) {
            at.panels = part_of(all - at.g, most, 1);
            at.k0 = 0;
            do { /* once for k = 0: it sets the sums to 0 */
                at.count = least(CHAIN, c->k - at.k0);
                if (normed)
                    copy_normalized(&b, c, type, at);
                else
                    copy_x(&b, c, type, at);
                add_chains(&b, c, type, form, at);
                at.k0 += CHAIN;
            } while (at.k0 < c->k);
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
