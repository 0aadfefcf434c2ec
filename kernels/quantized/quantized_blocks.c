/* Linear on quantized weights, compiled once per instruction set.
 *
 * x becomes integers qx of a scale sx (range.h): of 8 bits, a scale for the whole row (Int8, Int4), or of 16
 * bits, a scale for each 32 elements, its group g (Int8Weight, Int4Weight). Their products with the weight's
 * integers qw are summed up exactly. An element of the result is, s being the weight's scale for its column
 * (with 4 bits: and group g),
 *     Int8         float32(Σ qx qw) · (sx · s)
 *     Int4         total · sx,   total: fma(float32(Σ qx qw over g), s, total so far), from 0 on, g in order
 *     Int8Weight, Int4Weight   fma(float32(Σ qx qw over g), sx · s, total so far)
 * then + bias, then the activation: nothing else has a say in its bits. The work goes in blocks: up to
 * BLOCK_ROWS rows of x, as much of them as X_ROOM holds, by BLOCK_PANELS panels of the weight. */
#include "quantized.h"

#include "activation.h"
#if defined(KHUB_ISA_AVX512)
#include "amx.h"
#define HAS_AMX
#endif
#include "lanes.h"
#include "range.h"
#include "tile.h"

enum { PANEL = LINEAR_PANEL, GROUP = QUANTIZED_GROUP };
enum { BLOCK_ROWS = 24, BLOCK_PANELS = 16, X_ROOM = 24576, X_GROUPS = X_ROOM / GROUP };
/* Of AMX a block has two tiles of rows, and of their elements along k 64 to a tile. */
enum { TILE = 16, TILED_ROWS = 2 * TILE, TILED_ROOM = 32768, TILED_GROUPS = 2 };

/* 72 KB of stack. Rows of x beside each other, groups of a row beside each other. */
typedef struct block {
    _Alignas(64) char x[TILED_ROOM];                     /* integers, as dot_… take them */
    _Alignas(64) char sum[BLOCK_PANELS][TILED_ROWS][64]; /* w16 of Int8, totals of the others */
    int32_t x_sum[X_GROUPS]; /* 4 bits: -8 · the sum of the group, as 8 is in qw */
    float x_scale[X_GROUPS]; /* of 16 bits */
    range range[TILED_ROWS]; /* of 8 bits */
} block;

/* ---- what the forms differ in; `form` and `how` are constants wherever they are looked at ---- */

VEC int weight_bits(int form)
{
    return form == QUANTIZED_INT4 || form == QUANTIZED_INT4_WEIGHT ? 4 : 8;
}
VEC int is_wide(int form) /* 16 bits of x, scales for groups */
{
    return form == QUANTIZED_INT8_WEIGHT || form == QUANTIZED_INT4_WEIGHT;
}
/* How an integer of x lies: 2 bytes, those of four in the order 0, 2, 1, 3; 1 byte. */
VEC int x_bytes(int form, int how)
{
    return is_wide(form) || (form == QUANTIZED_INT8 && how == DOT_WIDE) ? 2 : 1;
}
/* How many operands a lane of the weight makes: each goes with 4 bytes of x. */
VEC int steps_of(int form, int how)
{
    return 32 / weight_bits(form) * x_bytes(form, how) / 4;
}

VEC w16 operand(w16 w, int step, int form, int how)
{
    if (form == QUANTIZED_INT4) return w_nibbles(w, step);
    if (form == QUANTIZED_INT4_WEIGHT) return w_quarters(w, step % 2 * 2 + step / 2);
    return how == DOT_VNNI && form == QUANTIZED_INT8 ? w : w_pairs(w, step);
}

VEC w16 dot(w16 sum, const char *x, w16 w, int form, int how)
{
    if (form == QUANTIZED_INT4) return dot_nibbles(sum, x, w, how);
    return how == DOT_VNNI && form == QUANTIZED_INT8 ? dot_bytes(sum, x, w) : dot_pairs(sum, x, w);
}

/* ---- tiles ---- */

/* Rows of x by panels of a record; distances are in bytes, but those of groups. */
typedef struct job {
    const char *x, *w, *scale;
    char *sum;
    const int32_t *x_sum;
    const float *x_scale;
    ptrdiff_t x_row, w_panel, sum_panel, x_groups;
    int64_t count; /* of elements: whole groups */
} job;

VEC char *sum_at(const job *j, int i, const int panels)
{
    return j->sum + i % panels * j->sum_panel + 64 * (i / panels);
}

VEC void take_step(w16 *sum, const job *j, const char *x, const char *w, const int rows, const int panels,
                   const int step, const int form, const int how)
{
    w16 weight[TILE_PANELS];
    UNROLLED for (int p = 0; p < panels; p++) weight[p] =
        operand(w_load(w + p * j->w_panel), step, form, how);
    UNROLLED for (int i = 0; i < rows * panels; i++) sum[i] =
        dot(sum[i], x + i / panels * j->x_row + 4 * step, weight[i % panels], form, how);
}

VEC void add_sums(const w16 *sum, const job *j, const int rows, const int panels)
{
    UNROLLED for (int i = 0; i < rows * panels; i++)
    {
        char *at = sum_at(j, i, panels);
        w_store(at, w_add(w_load(at), sum[i]));
    }
}

/* What a group's sums of a panel are multiplied by, but for x's scale where it is the row's. */
VEC v16 group_scale(const job *j, int64_t g, int panel, ptrdiff_t group, const int form)
{
    const char *at = j->scale + panel * j->w_panel;
    v16 scale = weight_bits(form) == 4 ? v_load_bf16(at + 2 * PANEL * g) : v_load(at);
    return is_wide(form) ? v_mul(v_set(j->x_scale[group]), scale) : scale;
}

/* A group's sums into the totals. */
VEC void add_group(const w16 *sum, const job *j, int64_t g, const int rows, const int panels, const int form,
                   const int how)
{
    UNROLLED for (int i = 0; i < rows * panels; i++)
    {
        char *at = sum_at(j, i, panels);
        ptrdiff_t group = i / panels * j->x_groups + g;
        w16 whole = form == QUANTIZED_INT4 ? dot_sums(sum[i], how) : sum[i];
        if (weight_bits(form) == 4) whole = w_add(whole, w_set(j->x_sum[group]));
        v_store(at, v_fma(w_floats(whole), group_scale(j, g, i % panels, group, form), v_load(at)));
    }
}

VEC_LONG void compute(const job *j, const int rows, const int panels, const int form, const int how)
{
    const int each = 32 / weight_bits(form), steps = steps_of(form, how);
    const int64_t group = form == QUANTIZED_INT8 ? j->count : GROUP;
    const char *x = j->x, *w = j->w;
    w16 sum[TILE_SUMS];
    for (int64_t k0 = 0; k0 < j->count; k0 += group) {
        UNROLLED for (int i = 0; i < rows * panels; i++) sum[i] = w_set(0);
        for (int64_t k = 0; k < group; k += each, w += 64, x += 4 * steps) {
            take_step(sum, j, x, w, rows, panels, 0, form, how);
            if (steps > 1) take_step(sum, j, x, w, rows, panels, 1, form, how);
            if (steps > 2) take_step(sum, j, x, w, rows, panels, 2, form, how);
            if (steps > 3) take_step(sum, j, x, w, rows, panels, 3, form, how);
        }
        if (form == QUANTIZED_INT8)
            add_sums(sum, j, rows, panels);
        else
            add_group(sum, j, k0 / GROUP, rows, panels, form, how);
    }
}

/* NAME_P(j, rows): a tile of P panels and as many rows as the registers hold. */
#define TILE_OF(R, PANELS, FORM, HOW)                                                                        \
    case (R):                                                                                                \
        if ((R) * (PANELS) <= TILE_SUMS && (R) <= TILE_ROWS) compute(j, R, PANELS, FORM, HOW);               \
        break;
#define TILES_OF(NAME, PANELS, FORM, HOW)                                                                    \
    static void NAME(const job *j, int rows)                                                                 \
    {                                                                                                        \
        switch (rows) {                                                                                      \
            TILE_OF(1, PANELS, FORM, HOW)                                                                    \
            TILE_OF(2, PANELS, FORM, HOW)                                                                    \
            TILE_OF(3, PANELS, FORM, HOW)                                                                    \
            TILE_OF(4, PANELS, FORM, HOW)                                                                    \
            TILE_OF(5, PANELS, FORM, HOW)                                                                    \
            TILE_OF(6, PANELS, FORM, HOW)                                                                    \
            TILE_OF(7, PANELS, FORM, HOW)                                                                    \
            TILE_OF(8, PANELS, FORM, HOW)                                                                    \
            TILE_OF(9, PANELS, FORM, HOW)                                                                    \
            TILE_OF(10, PANELS, FORM, HOW)                                                                   \
            TILE_OF(11, PANELS, FORM, HOW)                                                                   \
            TILE_OF(12, PANELS, FORM, HOW)                                                                   \
        }                                                                                                    \
    }

typedef void job_function(const job *j, int rows);
typedef struct tiles {
    job_function *one, *two, *four; /* panels */
} tiles;

/* ---- x ---- */

/* How many elements of a row of k a block has: whole groups, the same number for all blocks but the last. */
VEC int64_t block_count(int64_t rows, int64_t k, int form, int how)
{
    int64_t all = quantized_groups(k), fit = X_GROUPS / (rows * x_bytes(form, how));
    if (how == DOT_AMX) {
        all = (all + 1) / TILED_GROUPS * TILED_GROUPS;
        fit = TILED_ROOM / GROUP / (rows > TILE ? TILED_ROWS : TILE);
    }
    return (all < fit ? all : fit) * GROUP;
}

/* Where elements k … k + 15 of a row are in a block that has `room` of each. */
VEC char *x_at(block *b, int64_t r, int64_t k, int64_t room, int form, int how)
{
    const int64_t tile = TILED_GROUPS * GROUP;
    if (how != DOT_AMX) return b->x + (r * room + k) * x_bytes(form, how);
    return b->x + ((r / TILE * (room / tile) + k / tile) * TILE + r % TILE) * tile + k % tile;
}

/* Elements k … of a block of which `count` are in the row, zeros behind. */
VEC v16 read_x(const char *row, int64_t k, int64_t count, int type)
{
    return k < count ? v_read(row, k, count, type) : v_set(0);
}

/* Sixteen integers, given as V_ROUNDER + n, in the form that the tiles take. */
VEC void put_x(char *to, v16 rounded, int form, int how)
{
    if (x_bytes(form, how) == 2)
        w_store_wide(to, rounded);
    else if (form == QUANTIZED_INT8 && how == DOT_VNNI)
        w_store_bytes(to, v_add(rounded, v_set(128)));
    else
        w_store_bytes(to, rounded);
}

VEC range range_of_group(v16 low, v16 high)
{
    v16 nan = v_fma(high, v_set(0), v_mul(low, v_set(0)));
    return range_by(v_max(v_abs(high), v_max(v_abs(low), v_set(0))), nan, RANGE_WIDE);
}

/* `room` elements of each row are in the block, `count` of this one, which is row r of it. */
VEC_LONG void quantize_row(block *b, int64_t r, const char *row, int64_t count, int64_t room, int type,
                           int form, int how)
{
    for (int64_t k = 0; k < count; k += GROUP) {
        v16 low = read_x(row, k, count, type), high = read_x(row, k + PANEL, count, type);
        range own = is_wide(form) ? range_of_group(low, high) : b->range[r];
        int64_t group = (r * room + k) / GROUP;
        low = range_round(&own, low);
        high = range_round(&own, high);
        put_x(x_at(b, r, k, room, form, how), low, form, how);
        put_x(x_at(b, r, k + PANEL, room, form, how), high, form, how);
        v16 sum = v_add(v_sub(low, v_set(V_ROUNDER)), v_sub(high, v_set(V_ROUNDER)));
        if (weight_bits(form) == 4) b->x_sum[group] = -8 * (int32_t)v_sum(sum);
        if (is_wide(form)) b->x_scale[group] = own.scale;
    }
}

/* ---- blocks ---- */

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Any number of rows, in even parts. */
static void all_rows(job j, job_function *tile, int64_t rows, int panels)
{
    int64_t most = least(TILE_SUMS / panels, TILE_ROWS);
    for (int64_t parts = (rows + most - 1) / most; parts > 0; parts--) {
        int64_t share = (rows + parts - 1) / parts;
        tile(&j, (int)share);
        j.x += share * j.x_row;
        j.x_sum += share * j.x_groups;
        j.x_scale += share * j.x_groups;
        j.sum += share * 64;
        rows -= share;
    }
}

/* Elements k0 … k0 + count of all rows of the block, by `panels` panels from g on. */
VEC_LONG void add_block(block *b, const linear_call *c, const tiles *t, int form, int how, int64_t rows,
                        int64_t room, int64_t g, int64_t panels, int64_t k0, int64_t count)
{
    for (int64_t p = 0, width; p < panels; p += width) {
        const char *record = c->weight + (g + p) * c->weight_step,
                   *scales = record + quantized_scales(weight_bits(form), c->k);
        width = tile_panels(rows, panels - p);
        job j = {.x = b->x,
                 .w = record + k0 * PANEL * weight_bits(form) / 8,
                 .scale = weight_bits(form) == 4 ? scales + k0 / GROUP * 2 * PANEL : scales,
                 .sum = b->sum[p][0],
                 .x_sum = b->x_sum,
                 .x_scale = b->x_scale,
                 .x_row = room * x_bytes(form, how),
                 .w_panel = c->weight_step,
                 .sum_panel = sizeof(b->sum[0]),
                 .x_groups = room / GROUP,
                 .count = quantized_groups(count) * GROUP};
        all_rows(j, width == 4 ? t->four : width == 2 ? t->two : t->one, rows, (int)width);
    }
}

#if defined(HAS_AMX)
AMX_FUNCTION(multiply_tiles, amx_dot_bytes)

/* The same by AMX. The last of an odd number of groups makes a tile with zeros of the weight. What stands in
 * x for rows and elements that aren't there doesn't matter: integers, times those zeros, or in sums that
 * nobody reads. */
VEC_LONG void add_tiles(block *b, const linear_call *c, int64_t rows, int64_t room, int64_t g, int64_t panels,
                        int64_t k0, int64_t count)
{
    _Alignas(64) char rest[2][AMX_BYTES];
    const int64_t groups = quantized_groups(count), whole = groups / TILED_GROUPS;
    memset(rest, 0, sizeof(rest));
    for (int64_t p = 0; p < panels; p += 2) {
        const int two_rows = rows > TILE, two_panels = p + 1 < panels;
        const char *w = c->weight + (g + p) * c->weight_step + k0 * PANEL, *beside = w + c->weight_step;
        amx_call call = {
            .sum = {b->sum[p][0], b->sum[p + two_panels][0], b->sum[p][TILE], b->sum[p + two_panels][TILE]},
            .x = b->x,
            .below = two_rows ? b->x + room * TILE : NULL,
            .w = w,
            .beside = two_panels ? beside : NULL,
            .steps = whole,
            .add = 1};
        multiply_tiles(&call);
        if (groups % TILED_GROUPS == 0) continue;
        memcpy(rest[0], w + whole * AMX_BYTES, AMX_BYTES / 2);
        if (two_panels) memcpy(rest[1], beside + whole * AMX_BYTES, AMX_BYTES / 2);
        call.x += whole * AMX_BYTES;
        if (two_rows) call.below += whole * AMX_BYTES;
        call.w = rest[0];
        if (two_panels) call.beside = rest[1];
        call.steps = 1;
        multiply_tiles(&call);
    }
}
#else
VEC void add_tiles(block *b, const linear_call *c, int64_t rows, int64_t room, int64_t g, int64_t panels,
                   int64_t k0, int64_t count)
{
    (void)b, (void)c, (void)rows, (void)room, (void)g, (void)panels, (void)k0, (void)count; /* never called */
}
#endif

/* A sum times the scales that it lacks; `scales` are those of 8 bits. */
VEC v16 scaled(const char *sum, const char *scales, const range *r, int form, int how)
{
    if (is_wide(form)) return v_load(sum);
    if (form == QUANTIZED_INT4) return v_mul(v_load(sum), v_set(r->scale));
    w16 whole = w_load(sum);
    if (how == DOT_VNNI) whole = w_add(whole, w_load(scales + 64)); /* 128 was added to each of x */
    return v_mul(w_floats(whole), v_mul(v_set(r->scale), v_load(scales)));
}

VEC_LONG void finish(const block *b, const linear_call *c, int type, int form, int how, int64_t i0,
                     int64_t rows, int64_t g, int64_t panels)
{
    for (int64_t p = 0; p < panels; p++) {
        int64_t n = (g + p) * PANEL;
        const char *scales = c->weight + (g + p) * c->weight_step + quantized_scales(8, c->k);
        v16 bias = c->bias ? v_read(c->bias, n, c->n, type) : v_set(0);
        for (int64_t r = 0; r < rows; r++) {
            v16 v = scaled(b->sum[p][r], scales, &b->range[r], form, how);
            if (c->bias) v = v_add(v, bias);
            v_write(c->out + (i0 + r) * c->out_step, n, c->n, type, v_activated_by(v, c->activation));
        }
    }
}

/* x is quantized once for all panels when the block holds all of its rows. */
VEC_LONG void linear(const linear_call *c, const tiles *t, int type, int form, int how)
{
    const int64_t most = how == DOT_AMX ? TILED_ROWS : BLOCK_ROWS;
    block b;
    int64_t all = (c->n + PANEL - 1) / PANEL;
    for (int64_t i0 = 0; i0 < c->m; i0 += most) {
        int64_t rows = least(most, c->m - i0), room = block_count(rows, c->k, form, how);
        const char *x = c->x + i0 * c->x_step;
        for (int64_t r = 0; r < rows && !is_wide(form); r++)
            b.range[r] = range_of_row(x + r * c->x_step, c->k, type);
        for (int64_t g = 0; g < all; g += BLOCK_PANELS) {
            int64_t panels = least(BLOCK_PANELS, all - g);
            memset(b.sum, 0, (size_t)panels * sizeof(b.sum[0]));
            for (int64_t k0 = 0; k0 < c->k; k0 += room) {
                int64_t count = least(room, c->k - k0);
                for (int64_t r = 0; r < rows && (g == 0 || room < c->k); r++)
                    quantize_row(&b, r, x + r * c->x_step + k0 * ELEMENT_BYTES(type), count, room, type, form,
                                 how);
                if (how == DOT_AMX)
                    add_tiles(&b, c, rows, room, g, panels, k0, count);
                else
                    add_block(&b, c, t, form, how, rows, room, g, panels, k0, count);
            }
            finish(&b, c, type, form, how, i0, rows, g, panels);
        }
    }
}

/* NAME_f32, NAME_bf16 */
#define DEFINE(NAME, FORM, HOW)                                                                              \
    TILES_OF(NAME##_1, 1, FORM, HOW)                                                                         \
    TILES_OF(NAME##_2, 2, FORM, HOW)                                                                         \
    TILES_OF(NAME##_4, 4, FORM, HOW)                                                                         \
    static const tiles NAME##_tiles = {NAME##_1, NAME##_2, NAME##_4};                                        \
    static void NAME##_f32(const linear_call *c)                                                             \
    {                                                                                                        \
        linear(c, &NAME##_tiles, F32, FORM, HOW);                                                            \
    }                                                                                                        \
    static void NAME##_bf16(const linear_call *c)                                                            \
    {                                                                                                        \
        linear(c, &NAME##_tiles, BF16, FORM, HOW);                                                           \
    }
DEFINE(int8, QUANTIZED_INT8, DOT_WIDE)
DEFINE(int4, QUANTIZED_INT4, DOT_WIDE)
DEFINE(int8_weight, QUANTIZED_INT8_WEIGHT, DOT_WIDE)
DEFINE(int4_weight, QUANTIZED_INT4_WEIGHT, DOT_WIDE)
#if defined(HAS_VNNI)
DEFINE(int8_vnni, QUANTIZED_INT8, DOT_VNNI)
DEFINE(int4_vnni, QUANTIZED_INT4, DOT_VNNI)
#endif

#if defined(HAS_AMX)
static void int8_tiles_f32(const linear_call *c)
{
    amx_configure(&amx_whole_tiles);
    linear(c, NULL, F32, QUANTIZED_INT8, DOT_AMX);
    amx_release();
}
static void int8_tiles_bf16(const linear_call *c)
{
    amx_configure(&amx_whole_tiles);
    linear(c, NULL, BF16, QUANTIZED_INT8, DOT_AMX);
    amx_release();
}
#endif

extern const quantized_path PATH(quantized);
const quantized_path PATH(quantized) = {
    .linear = {{int8_f32, int8_bf16},
               {int4_f32, int4_bf16},
               {int8_weight_f32, int8_weight_bf16},
               {int4_weight_f32, int4_weight_bf16}},
#if defined(HAS_VNNI)
    .vnni = {{int8_vnni_f32, int8_vnni_bf16}, {int4_vnni_f32, int4_vnni_bf16}},
#endif
#if defined(HAS_AMX)
    .tiles = {int8_tiles_f32, int8_tiles_bf16},
#endif
};
