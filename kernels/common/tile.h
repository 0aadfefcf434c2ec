/* The inner loop of linear and attention: a tile of `rows` rows and `panels` panels of 16 columns, whose sums
 * of products stay in registers. One element of a tile is one chain of fused multiply-adds over k in order,
 * started at 0, so it doesn't depend on the tile it is computed in. */
#ifndef KHUB_KERNELS_TILE_H
#define KHUB_KERNELS_TILE_H

#include <stddef.h>

#include "vec.h"

/* How many v16 of sums leave room in the registers for a v16 of weights for each panel and one of x. */
#if defined(KHUB_ISA_AVX512)
#define TILE_SUMS 24
#define TILE_ROWS 12 /* the most rows of a tile: two panels go with them */
#elif defined(KHUB_ISA_AVX2) || defined(KHUB_ISA_NEON)
#define TILE_SUMS 6
#define TILE_ROWS 6
#else
#define TILE_SUMS 2 /* a v16 is an array */
#define TILE_ROWS 2
#endif
#define TILE_PANELS 4 /* the most panels of a tile */
/* How many panels a tile of these rows has room for, when `left` are left. */
static inline int tile_panels(int64_t rows, int64_t left)
{
    int panels = TILE_PANELS;
    while (panels > 1 && (panels > left || rows * panels > TILE_SUMS))
        panels /= 2;
#if defined(KHUB_ISA_AVX512)
    if (panels < 2 && left >= 2) panels = 2; /* 12 rows by 2 panels fill the registers */
#endif
    return panels;
}

/* TILE_STEPS steps over k are written out one after the other, so that counting them costs less. */
#define TILE_STEPS (UNROLLS ? 4 : 1)

/* The operands of a tile. Distances are in floats, those of `ahead` in bytes. */
typedef struct tile_call {
    const float *x; /* (rows, count) */
    const float *w; /* (panels, count, 16), w_panel from panel to panel */
    float *sum;     /* (panels, rows, 16), sum_panel from panel to panel, sum_row from row to row */
    ptrdiff_t w_panel, sum_panel, sum_row;
    int64_t count;     /* length of the chains; 0: they are 0 */
    int add;           /* 0: the chains replace `sum`; 1: they are added to it */
    const float *fade; /* (rows): with `add`, what stands in `sum` is first multiplied by it, in one
                          multiply-add. NULL: it isn't */
    const char *ahead; /* of each panel, what is read next: each step fetches `ahead_step` more of it. NULL:
                          nothing, where nothing is fetched */
    ptrdiff_t ahead_panel, ahead_step;
} tile_call;

/* One step over k: x and w at it, from what is read next at `ahead`. */
VEC void tile_step(v16 *sum, const tile_call *c, const float *x, const float *w, const char *ahead,
                   const int rows, const int panels, const ptrdiff_t x_row, const int fetch)
{
    v16 weight[TILE_PANELS];
    UNROLLED for (int p = 0; p < panels; p++) weight[p] = v_load(w + p * c->w_panel);
    if (fetch) {
        UNROLLED for (int p = 0; p < panels; p++) __builtin_prefetch(ahead + p * c->ahead_panel);
    }
    UNROLLED for (int i = 0; i < rows * panels; i++) sum[i] =
        v_fma(v_set(x[i / panels * x_row]), weight[i % panels], sum[i]);
}

/* All but `c` are constants: the shape of the tile, how x lies, whether to look ahead. */
VEC_LONG void tile_compute(const tile_call *c, const int rows, const int panels, const ptrdiff_t x_row,
                           const ptrdiff_t x_step, const int fetch)
{
    v16 sum[TILE_SUMS];
    const float *x = c->x, *w = c->w;
    const char *ahead = c->ahead;
    int64_t k = c->count;
    UNROLLED for (int i = 0; i < rows * panels; i++) sum[i] = v_set(0);
    for (; k >= TILE_STEPS; k -= TILE_STEPS) {
        UNROLLED for (int i = 0; i < TILE_STEPS; i++)
        {
            tile_step(sum, c, x + i * x_step, w + 16 * i, ahead, rows, panels, x_row, fetch);
            if (fetch) ahead += c->ahead_step;
        }
        x += TILE_STEPS * x_step;
        w += TILE_STEPS * 16;
    }
    for (; k > 0; k--) {
        tile_step(sum, c, x, w, ahead, rows, panels, x_row, fetch);
        if (fetch) ahead += c->ahead_step;
        x += x_step;
        w += 16;
    }
    UNROLLED for (int i = 0; i < rows * panels; i++)
    {
        float *at = c->sum + i % panels * c->sum_panel + i / panels * c->sum_row;
        if (c->add && c->fade)
            sum[i] = v_fma(v_load(at), v_set(c->fade[i / panels]), sum[i]);
        else if (c->add)
            sum[i] = v_add(v_load(at), sum[i]);
        v_store(at, sum[i]);
    }
}

/* NAME(c, rows): a tile of `rows` rows, 1 … TILE_ROWS, as many as leave room for PANELS panels. */
#define TILE_CASE(R, PANELS, ...)                                                                            \
    case (R):                                                                                                \
        if ((R) * (PANELS) <= TILE_SUMS && (R) <= TILE_ROWS) tile_compute(c, R, PANELS, __VA_ARGS__);        \
        break;
#define TILE_FUNCTION(NAME, ...)                                                                             \
    static void NAME(const tile_call *c, int rows)                                                           \
    {                                                                                                        \
        switch (rows) {                                                                                      \
            TILE_CASE(1, __VA_ARGS__)                                                                        \
            TILE_CASE(2, __VA_ARGS__)                                                                        \
            TILE_CASE(3, __VA_ARGS__)                                                                        \
            TILE_CASE(4, __VA_ARGS__)                                                                        \
            TILE_CASE(5, __VA_ARGS__)                                                                        \
            TILE_CASE(6, __VA_ARGS__)                                                                        \
            TILE_CASE(7, __VA_ARGS__)                                                                        \
            TILE_CASE(8, __VA_ARGS__)                                                                        \
            TILE_CASE(9, __VA_ARGS__)                                                                        \
            TILE_CASE(10, __VA_ARGS__)                                                                       \
            TILE_CASE(11, __VA_ARGS__)                                                                       \
            TILE_CASE(12, __VA_ARGS__)                                                                       \
        }                                                                                                    \
    }

/* How many of `rows` rows the next tile takes, in even parts: 13 are 5, 4 and 4, since a tile of one row
 * would wait for itself. */
VEC int tile_share(int64_t rows, int panels)
{
    int64_t most = TILE_SUMS / panels < TILE_ROWS ? TILE_SUMS / panels : TILE_ROWS;
    int64_t parts = (rows + most - 1) / most;
    return (int)((rows + parts - 1) / parts);
}

typedef void tile_function(const tile_call *, int rows);

/* A tile of `rows` rows; c->x, c->sum, c->fade and c->ahead move on. */
VEC void tile_next(tile_call *c, tile_function *tile, int rows, ptrdiff_t x_row)
{
    tile(c, rows);
    c->x += rows * x_row;
    c->sum += rows * c->sum_row;
    if (c->fade) c->fade += rows;
    if (c->ahead) c->ahead += c->count * c->ahead_step;
}

/* Any number of rows. */
VEC_LONG void tile_rows(tile_call *c, tile_function *tile, int64_t rows, int panels, ptrdiff_t x_row)
{
    for (int share; rows > 0; rows -= share) {
        share = tile_share(rows, panels);
        tile_next(c, tile, share, x_row);
    }
}

#endif
