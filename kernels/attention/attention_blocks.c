/* Attention, once for each path.
 *
 * Lanes are queries: a panel is 16 of them, and scores, their maximum, their exponentials and sums, and the
 * sums of values all stand as (…, 16), so that nothing is ever summed across lanes and a query's result can't
 * depend on its neighbours. Keys come in blocks of KEYS from the first on. For a query, the keys of a block
 * that it sees give scores   chains of fused multiply-adds over DIMS dims, in order, added in order; times
 * scale weights  exp(score - largest so far) total    the weights in order, every fourth, (0 + 1) + (2 + 3)
 *     sums     one chain of fused multiply-adds over the keys in order
 * and total and sums of the keys before are first scaled by exp(largest before - largest so far). Only the
 * query and the keys it sees have a say in its bits; values of keys it doesn't see are never touched for it,
 * be they NaN. */
#include "attention.h"

#include "tile.h"
#include "vmath.h"

#include <math.h>

enum { LANES = 16, PANELS = 2, KEYS = 64, DIMS = 64, MAX_DIMS = 256 };

/* 93 KB of stack. */
typedef struct scratch {
    _Alignas(64) float q[PANELS][MAX_DIMS][LANES];
    _Alignas(64) float sum[PANELS][MAX_DIMS][LANES];
    _Alignas(64) float weight[PANELS][KEYS][LANES]; /* scores first */
    _Alignas(64) float chain[DIMS][LANES];
    _Alignas(64) float kv[KEYS][DIMS];
    _Alignas(64) float limit[PANELS][LANES]; /* keys seen, from the block's first on, -1 … KEYS */
    _Alignas(64) float largest[PANELS][LANES], total[PANELS][LANES], fade[PANELS][LANES];
    int64_t sees[PANELS][LANES]; /* keys seen */
    int64_t first, count; /* the queries: first … first + count - 1 of queries · heads, head by head */
} scratch;

TILE_FUNCTION(tile_scores_1, 1, DIMS, 1, 0)
TILE_FUNCTION(tile_scores_2, 2, DIMS, 1, 0)
TILE_FUNCTION(tile_values, 1, 1, DIMS, 0)

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t panels_in(const scratch *s)
{
    return (s->count + LANES - 1) / LANES;
}

/* How many keys each query sees; lanes without one, in panels without one too, are the last query again.
 * Returns the most. */
static int64_t look(scratch *s, const attention_call *c)
{
    int64_t most = 0;
    for (int64_t i = 0; i < PANELS * LANES; i++) {
        int64_t query = (s->first + least(i, s->count - 1)) % c->queries;
        int64_t sees = c->causal ? least(c->keys, c->first + query) : c->keys;
        if (sees < 0) sees = 0;
        s->sees[i / LANES][i % LANES] = sees;
        if (sees > most) most = sees;
    }
    return most;
}

/* Rows (count, n) at `step` as (count, DIMS), n ≤ DIMS. */
VEC_LONG void copy_rows(float (*to)[DIMS], const char *from, int64_t step, int64_t count, int64_t n, int type)
{
    for (int64_t j = 0; j < count; j++)
        for (int64_t i = 0; i < n; i += 16)
            v_store(to[j] + i, v_read(from + j * step, i, n, type));
}

/* Dims d0 … d0 + n - 1 of the queries, a query a lane. */
VEC_LONG void load_queries(scratch *s, const attention_call *c, int64_t d0, int64_t n, int type)
{
    _Alignas(64) float row[MAX_DIMS];
    for (int64_t i = 0; i < panels_in(s) * LANES; i++) {
        int64_t u = s->first + least(i, s->count - 1);
        const char *q =
            c->q + u % c->queries * c->q_step + u / c->queries * c->q_head + d0 * ELEMENT_BYTES(type);
        for (int64_t d = 0; d < n; d += 16)
            v_store(row + d, v_read(q, d, n, type));
        for (int64_t d = 0; d < n; d++)
            s->q[i / LANES][d][i % LANES] = row[d];
    }
}

/* The products of the queries with keys j0 … j0 + keys - 1. */
VEC_LONG void scores(scratch *s, const attention_call *c, int64_t j0, int64_t keys, int fresh, int type)
{
    for (int64_t d = 0; d < c->dims; d += DIMS) {
        int64_t n = least(DIMS, c->dims - d);
        if (d % MAX_DIMS == 0 && (fresh || c->dims > MAX_DIMS))
            load_queries(s, c, d, least(MAX_DIMS, c->dims - d), type);
        copy_rows(s->kv, c->k + j0 * c->k_step + d * ELEMENT_BYTES(type), c->k_step, keys, n, type);
        for (int64_t p = 0, wide; p < panels_in(s); p += wide) {
            wide = panels_in(s) - p >= 2 && TILE_SUMS >= 2 * TILE_ROWS ? 2 : 1;
            tile_call t = {.x = s->kv[0],
                           .w = s->q[p][d % MAX_DIMS],
                           .w_panel = MAX_DIMS * LANES,
                           .sum = s->weight[p][0],
                           .sum_panel = KEYS * LANES,
                           .count = n,
                           .add = d > 0};
            tile_rows(&t, wide == 2 ? tile_scores_2 : tile_scores_1, keys, (int)wide, DIMS);
        }
    }
}

/* Scores become weights; `all`: every lane sees all keys of the block. */
VEC_LONG void weigh(scratch *s, int64_t p, float scale, int64_t keys, int all)
{
    const v16 nothing = v_set(-INFINITY), zero = v_set(0), limit = v_load(s->limit[p]);
    v16 before = v_load(s->largest[p]), largest = before, part[4] = {zero, zero, zero, zero};
    for (int64_t j = 0; j < keys; j++) {
        v16 score = v_mul(v_load(s->weight[p][j]), v_set(scale));
        if (!all) score = v_less(v_set((float)j), limit, score, nothing);
        v_store(s->weight[p][j], score);
        largest = v_max(largest, score);
    }
    v16 from = v_less(nothing, largest, largest, zero); /* with every score -∞, the weights are 0 */
    for (int64_t j = 0; j < keys; j++) {
        v16 weight = v_exp(v_sub(v_load(s->weight[p][j]), from));
        if (!all) weight = v_less(v_set((float)j), limit, weight, zero);
        v_store(s->weight[p][j], weight);
        part[j % 4] = v_add(part[j % 4], weight);
    }
    v16 fade = v_exp(v_sub(before, from)), total = v_load(s->total[p]);
    v16 sum = v_add(v_add(part[0], part[1]), v_add(part[2], part[3]));
    v_store(s->fade[p], fade);
    v_store(s->largest[p], largest);
    v_store(s->total[p], all ? v_fma(total, fade, sum) : v_less(zero, limit, v_fma(total, fade, sum), total));
}

/* Goes on with the chains over keys `from` … `to`, each lane as far as it sees. */
VEC_LONG void chain_seen(scratch *s, int64_t p, int64_t n, int64_t from, int64_t to)
{
    v16 limit = v_load(s->limit[p]);
    for (int64_t j = from; j < to; j++) {
        v16 weight = v_load(s->weight[p][j]);
        for (int64_t d = 0; d < n; d++) {
            v16 sum = v_load(s->chain[d]);
            v16 next = v_fma(v_set(s->kv[j][d]), weight, sum);
            v_store(s->chain[d], v_less(v_set((float)j), limit, next, sum));
        }
    }
}

/* The least and the most that lanes of a panel see of the block at j0, into limit, *least_seen and
 * *most_seen. */
static void look_at_block(scratch *s, int64_t p, int64_t j0, int64_t *least_seen, int64_t *most_seen)
{
    *least_seen = KEYS;
    *most_seen = 0;
    for (int i = 0; i < LANES; i++) {
        int64_t sees = s->sees[p][i] - j0;
        sees = sees < 0 ? 0 : least(sees, KEYS);
        s->limit[p][i] = (float)sees;
        *least_seen = least(*least_seen, sees);
        if (sees > *most_seen) *most_seen = sees;
    }
}

/* Adds dims d … d + n - 1 of the values in kv to the sums of panel p. */
VEC_LONG void add_values(scratch *s, int64_t p, int64_t d, int64_t n, int64_t all_see, int64_t some_see)
{
    tile_call t = {.x = s->kv[0], .w = s->weight[p][0], .sum = s->chain[0], .count = all_see};
    tile_rows(&t, tile_values, n, 1, 1);
    chain_seen(s, p, n, all_see, some_see);
    v16 fade = v_load(s->fade[p]), limit = v_load(s->limit[p]);
    for (int64_t i = 0; i < n; i++) {
        v16 sum = v_load(s->sum[p][d + i]), next = v_fma(sum, fade, v_load(s->chain[i]));
        v_store(s->sum[p][d + i], v_less(v_set(0), limit, next, sum));
    }
}

/* Keys j0 … j0 + keys - 1, for dims e … e + n - 1 of the result. */
VEC_LONG void block(scratch *s, const attention_call *c, int64_t j0, int64_t keys, int64_t e, int64_t n,
                    int type)
{
    const int64_t panels = panels_in(s);
    int64_t all_see[PANELS], some_see[PANELS];
    scores(s, c, j0, keys, j0 == 0 && e == 0, type);
    for (int64_t p = 0; p < panels; p++) {
        look_at_block(s, p, j0, &all_see[p], &some_see[p]);
        if (all_see[p] >= keys)
            weigh(s, p, c->scale, keys, 1);
        else
            weigh(s, p, c->scale, some_see[p], 0);
    }
    for (int64_t d = 0; d < n; d += DIMS) {
        int64_t some = least(DIMS, n - d);
        copy_rows(s->kv, c->v + j0 * c->v_step + (e + d) * ELEMENT_BYTES(type), c->v_step, keys, some, type);
        for (int64_t p = 0; p < panels; p++)
            add_values(s, p, d, some, least(all_see[p], keys), some_see[p]);
    }
}

/* Dims e … e + n - 1 of the result; zeros for a query that sees nothing. */
VEC_LONG void store(scratch *s, const attention_call *c, int64_t e, int64_t n, int type)
{
    _Alignas(64) float row[MAX_DIMS];
    for (int64_t p = 0; p < panels_in(s); p++) {
        v16 total = v_load(s->total[p]);
        for (int64_t d = 0; d < n; d++)
            v_store(s->sum[p][d], v_div(v_load(s->sum[p][d]), total));
    }
    for (int64_t i = 0; i < s->count; i++) {
        int64_t u = s->first + i;
        char *out =
            c->out + u % c->queries * c->out_step + u / c->queries * c->out_head + e * ELEMENT_BYTES(type);
        for (int64_t d = 0; d < n; d++)
            row[d] = s->sees[i / LANES][i % LANES] ? s->sum[i / LANES][d][i % LANES] : 0;
        for (int64_t d = 0; d < n; d += 16)
            v_write(out, d, n, type, v_load(row + d));
    }
}

VEC_LONG void clear(scratch *s, int64_t n)
{
    for (int64_t p = 0; p < panels_in(s); p++) {
        for (int64_t d = 0; d < n; d++)
            v_store(s->sum[p][d], v_set(0));
        v_store(s->largest[p], v_set(-INFINITY));
        v_store(s->total[p], v_set(0));
    }
}

VEC_LONG void attend(const attention_call *c, int type)
{
    scratch s;
    int64_t all = c->queries * c->heads;
    for (s.first = 0; s.first < all; s.first += s.count) {
        s.count = least(PANELS * LANES, all - s.first);
        int64_t sees = look(&s, c);
        for (int64_t e = 0; e < c->dims; e += MAX_DIMS) { /* once, but for very wide heads */
            int64_t n = least(MAX_DIMS, c->dims - e);
            clear(&s, n);
            for (int64_t j = 0; j < sees; j += KEYS)
                block(&s, c, j, least(KEYS, sees - j), e, n, type);
            store(&s, c, e, n, type);
        }
    }
}

static void attend_f32(const attention_call *c)
{
    attend(c, F32);
}
static void attend_bf16(const attention_call *c)
{
    attend(c, BF16);
}

extern const attention_path PATH(attention);
const attention_path PATH(attention) = {{attend_f32, attend_bf16}};
