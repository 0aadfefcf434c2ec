/* Attention, once for each path.
 *
 * Keys come in blocks of KEYS, counted from key 0. For a query, the keys of a block that it sees give
 *     scores   chains of fused multiply-adds over DIMS dims, in order, added in order
 *     weights  2^((score - largest so far) · scale · log2 e); 0 below 2^-126
 *     total    sixteen sums, by key modulo 16, of the weights in order
 *     sums     one chain of fused multiply-adds over the keys in order
 * and total and sums of the keys before are first multiplied by the weight of the largest before. In the
 * end the total's sixteen become one (v_sum), and the sums are divided by it. Only the query and the keys it
 * sees have a say in its bits, and where its first key stands in a block; values of keys it doesn't see are
 * never touched for it, be they NaN.
 *
 * That leaves open which of the elements stand side by side in a vector: no element waits for its neighbour.
 * Here it is keys for scores and weights, dims for sums, so that a single query fills the vectors as well as
 * many do. Keys of a block are transposed for it, values packed, unless there is one query of heads side by
 * side (block_in_order). A query that sees a part of a block only (the diagonal, a window's edge) has its
 * chain over that part and no mask. */
#include "attention.h"

#include "tile.h"
#include "weight.h"

enum {
    KEYS = 64,
    DIMS = 64,
    ROWS = 128,          /* the most queries at a time, of all heads */
    WIDE = 512,          /* the most dims at a time */
    STATE = ROWS * DIMS, /* floats for q and for sums: fewer queries where they have more than DIMS dims */
    PIECES = WIDE / DIMS
};

/* A query of a head is a row here. Rows of one key head follow one another, query by query. 124 KB of stack.
 */
typedef struct scratch {
    _Alignas(64) float q[STATE];           /* (pieces, rows, DIMS) */
    _Alignas(64) float sum[STATE];         /* as q */
    _Alignas(64) float weight[ROWS][KEYS]; /* scores first; of one key head */
    _Alignas(64) float kv[KEYS * DIMS];    /* keys (KEYS / 16, DIMS, 16), values (DIMS / 16, KEYS, 16) */
    _Alignas(64) float total[ROWS][16];
    float largest[ROWS + 16], most[ROWS + 16], fade[ROWS + 16]; /* most: in the block; both of one key head */
    int64_t from[ROWS], until[ROWS]; /* what the rows of a key head see: keys from … until - 1 */
    int64_t query[ROWS], sub[ROWS];  /* and which they are: a query, one of its heads for the key head */
    int64_t first, count;            /* a key head's rows: first … first + count - 1 of queries · heads */
    int64_t head, heads;             /* the key heads */
} scratch;

/* The rows of a key head that see any of some keys. */
typedef struct span {
    int64_t first, count;
} span;

#define ANY_X KEYS, 1, 0 /* weights and q have rows of as many floats */
_Static_assert(KEYS == DIMS, "one kind of tile for both products");
TILE_FUNCTION(tile_1, 1, ANY_X)
TILE_FUNCTION(tile_2, 2, ANY_X)
TILE_FUNCTION(tile_4, 4, ANY_X)

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}
static int64_t greatest(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Where dim d of a row of q or of sums is, from its dim 0 on; where its dim d is, d being a multiple of DIMS.
 */
static int64_t piece_at(const scratch *s, int64_t d)
{
    return d / DIMS * s->count * s->heads * DIMS + d % DIMS;
}
static float *piece(float *state, const scratch *s, int64_t d, int64_t row)
{
    return state + piece_at(s, d) + row * DIMS;
}

/* Products of `rows` rows with `panels` panels, as wide tiles as few rows leave room for. */
VEC_LONG void multiply(const tile_call *c, int64_t rows, int64_t panels)
{
    int64_t room = TILE_SUMS / least(rows, TILE_ROWS);
    for (int64_t p = 0, wide; p < panels; p += wide) {
        tile_call t = *c;
        t.w += p * t.w_panel;
        t.sum += p * t.sum_panel;
        wide = least(panels - p, room) >= 4 ? 4 : least(panels - p, room) >= 2 ? 2 : 1;
        tile_rows(&t, wide == 4 ? tile_4 : wide == 2 ? tile_2 : tile_1, rows, (int)wide, KEYS);
    }
}

/* Which the rows are and what they see. Both ends grow from row to row. Where nothing is seen they are the
 * same. */
static void look(scratch *s, const attention_call *c)
{
    for (int64_t i = 0; i < s->count; i++) {
        int64_t query = (s->first + i) / c->heads;
        s->query[i] = query;
        s->sub[i] = (s->first + i) % c->heads;
        int64_t until = greatest(0, least(c->keys, query + c->until));
        s->from[i] = least(greatest(0, query + c->from), until);
        s->until[i] = until;
    }
}

static span who_sees(const scratch *s, int64_t from, int64_t until)
{
    int64_t first = 0, last = s->count;
    while (first < last && s->until[first] <= from)
        first++;
    while (first < last && s->from[last - 1] >= until)
        last--;
    return (span){first, last - first};
}

/* The head, of all, of row r of the h-th key head. */
static int64_t head_of(const scratch *s, const attention_call *c, int64_t h, int64_t r)
{
    return (s->head + h) * c->heads + s->sub[r];
}

/* Dims d0 … d0 + n - 1 of the queries. */
VEC_LONG void load_queries(scratch *s, const attention_call *c, int64_t d0, int64_t n, int type)
{
    const v16 sign = v_set(c->scale < 0 ? -1 : 1); /* so that the largest score has the largest weight */
    for (int64_t h = 0; h < s->heads; h++)
        for (int64_t r = 0; r < s->count; r++) {
            const char *q = c->q + s->query[r] * c->q_step + head_of(s, c, h, r) * c->q_head;
            float *to = piece(s->q, s, 0, h * s->count + r);
            for (int64_t d = 0; d < n; d += 16)
                v_store(to + piece_at(s, d), v_mul(v_read(q, d0 + d, d0 + n, type), sign));
        }
}

/* What is packed, and what of the same form is packed next: asked for meanwhile, so that memory never rests.
 */
typedef struct rows_of {
    const char *at, *next;
    int64_t step, next_step;
} rows_of;

static rows_of part_of(const rows_of *rows, int64_t bytes)
{
    return (rows_of){rows->at + bytes, rows->next + bytes, rows->step, rows->next_step};
}

VEC void ask_for(const rows_of *rows, int64_t row, int64_t byte)
{
    __builtin_prefetch((const void *)((uintptr_t)rows->next + (uintptr_t)(row * rows->next_step + byte)));
}

/* Keys as panels of sixteen, a key a lane; lanes and dims to the next multiple of 16 get zeros. */
VEC_LONG void pack_keys(float *to, const rows_of *k, int64_t keys, int64_t n, int type)
{
    _Alignas(64) float rows[16][16];
    for (int64_t j = 0; j < keys; j += 16)
        for (int64_t d = 0; d < n; d += 16) {
            const char *from = k->at + j * k->step + d * ELEMENT_BYTES(type);
            int64_t from_step = k->step;
            for (int64_t i = 0; i < 16; i++)
                ask_for(k, j + i, d * ELEMENT_BYTES(type));
            if (type != F32 || keys - j < 16 || n - d < 16) {
                for (int64_t i = 0; i < 16; i++)
                    v_store(rows[i], i < keys - j ? v_read(from + i * k->step, 0, n - d, type) : v_set(0));
                from = (const char *)rows;
                from_step = sizeof(rows[0]);
            }
            v_transpose(to + (j / 16 * DIMS + d) * 16, from, from_step);
        }
}

/* Values as panels of sixteen dims, a dim a lane. */
VEC_LONG void pack_values(float *to, const rows_of *v, int64_t keys, int64_t n, int type)
{
    for (int64_t j = 0; j < keys; j++)
        for (int64_t d = 0; d < n; d += 16) {
            ask_for(v, j, d * ELEMENT_BYTES(type));
            v_store(to + (d / 16 * KEYS + j) * 16, v_read(v->at + j * v->step, d, n, type));
        }
}

/* Products of the rows from `base` on, a key head's, with its keys j0 … j0 + keys - 1. */
VEC_LONG void score(scratch *s, const attention_call *c, const rows_of *k, int64_t base, int64_t j0,
                    int64_t keys, int type)
{
    for (int64_t d = 0; d < c->dims; d += DIMS) {
        int64_t n = least(DIMS, c->dims - d);
        if (c->dims > WIDE && d % WIDE == 0) load_queries(s, c, d, least(WIDE, c->dims - d), type);
        rows_of part = part_of(k, d * ELEMENT_BYTES(type));
        pack_keys(s->kv, &part, keys, n, type);
        for (int64_t j = 0; j < keys; j += 16) {
            span rows = who_sees(s, j0 + j, j0 + j + 16);
            tile_call t = {.x = piece(s->q, s, d % WIDE, base + rows.first),
                           .w = s->kv + j * DIMS,
                           .w_panel = DIMS * 16,
                           .sum = s->weight[rows.first] + j,
                           .sum_panel = 16,
                           .sum_row = KEYS,
                           .count = n,
                           .add = d > 0};
            int64_t panels = 1;
            if (rows.count) multiply(&t, rows.count, panels);
        }
    }
}

/* Lanes of keys from … until - 1 of a block, v being its keys j … j + 15; `rest` in the others. */
VEC v16 seen(v16 v, int64_t j, int64_t from, int64_t until, float rest)
{
    v = v_first(v, greatest(0, until - j), rest);
    if (from <= j) return v;
    v16 before = v_first(v_set(0), from - j, 1); /* 0 where it isn't seen */
    return v_less(v_set(0), before, v, v_set(rest));
}

/* The largest score of each row. What a row doesn't see gets -∞, as far as a panel of what it sees goes. */
VEC_LONG void find_most(scratch *s, int64_t at, span rows, int64_t j0)
{
    for (int64_t r = rows.first; r < rows.first + rows.count; r++) {
        float *row = s->weight[at + r];
        int64_t from = greatest(0, s->from[r] - j0), until = least(KEYS, s->until[r] - j0);
        v16 most = v_set(-INFINITY);
        if (from || until < KEYS)
            for (int64_t j = from / 16 * 16; j < until; j += 16)
                v_store(row + j, seen(v_load(row + j), j, from, until, -INFINITY));
        for (int64_t j = from / 16 * 16; j < until; j += 16)
            most = v_max(v_load(row + j), most);
        s->most[at + r] = v_largest(most);
    }
}

/* The largest score so far, of which most is the block's, and what the rows have lost by it. With every score
 * -∞, weights are those of -∞ - 0. */
VEC_LONG void raise(float *largest, float *most, float *fade, scaling by, int64_t rows)
{
    const v16 nothing = v_set(-INFINITY);
    for (int64_t i = 0; i < rows; i += 16) {
        v16 before = v_load(largest + i);
        v16 now = v_max(v_first(v_load(most + i), rows - i, -INFINITY), before);
        v16 from = v_less(nothing, now, now, v_set(0));
        v_store(largest + i, now);
        v_store(most + i, from);
        v_store(fade + i, v_weight(v_sub(before, from), by));
    }
}

/* Scores become weights: those of the rows at `at`. */
VEC_LONG void weigh(scratch *s, int64_t base, int64_t at, span rows, scaling by, int64_t j0)
{
    find_most(s, at, rows, j0);
    raise(s->largest + base + rows.first, s->most + at + rows.first, s->fade + at + rows.first, by,
          rows.count);
    for (int64_t r = rows.first; r < rows.first + rows.count; r++) {
        int64_t from = greatest(0, s->from[r] - j0), until = least(KEYS, s->until[r] - j0);
        float *row = s->weight[at + r], *total = s->total[base + r];
        v16 sum = v_set(0), most = v_set(s->most[at + r]);
        for (int64_t j = from / 16 * 16; j < until; j += 16) {
            v16 weight = v_weight(v_sub(v_load(row + j), most), by);
            if (j < from || until < j + 16) weight = seen(weight, j, from, until, 0);
            v_store(row + j, weight);
            sum = v_add(sum, weight);
        }
        v_store(total, v_fma(v_load(total), v_set(s->fade[at + r]), sum));
    }
}

static int see_alike(const scratch *s, int64_t r, int64_t q, int64_t j0)
{
    return greatest(j0, s->from[r]) == greatest(j0, s->from[q]) &&
           least(j0 + KEYS, s->until[r]) == least(j0 + KEYS, s->until[q]);
}

/* Rows from r on that see the same of the block. Both ends grow: all do, if the last does. */
static int64_t alike(const scratch *s, span rows, int64_t r, int64_t j0)
{
    int64_t end = rows.first + rows.count, q = r + 1;
    if (see_alike(s, r, end - 1, j0)) return end - r;
    while (see_alike(s, r, q, j0))
        q++;
    return q - r;
}

/* Goes on with the sums of dims e … e + n - 1 of the result. */
VEC_LONG void add_values(scratch *s, const rows_of *v, int64_t base, span rows, int64_t j0, int64_t keys,
                         int64_t n, int type)
{
    for (int64_t d = 0; d < n; d += DIMS) {
        int64_t some = least(DIMS, n - d);
        rows_of part = part_of(v, d * ELEMENT_BYTES(type));
        pack_values(s->kv, &part, keys, some, type);
        for (int64_t r = rows.first, many; r < rows.first + rows.count; r += many) {
            many = alike(s, rows, r, j0);
            int64_t from = greatest(0, s->from[r] - j0), until = least(KEYS, s->until[r] - j0);
            tile_call t = {.x = s->weight[r] + from,
                           .w = s->kv + from * 16,
                           .w_panel = KEYS * 16,
                           .sum = piece(s->sum, s, d, base + r),
                           .sum_panel = 16,
                           .sum_row = DIMS,
                           .count = until - from,
                           .add = 1,
                           .fade = s->fade + r};
            if (from < until) multiply(&t, many, (some + 15) / 16);
        }
    }
}

/* A single query of heads that lie side by side: K and V are read once for one row, so that nothing costs but
 * reading, and memory likes to be read in the order it lies in. Sixteen keys at a time for all heads, then
 * FEW values. */
enum { FEW = 4 };
static int in_order(const scratch *s, const attention_call *c)
{
    int64_t pieces = (c->dims + DIMS - 1) / DIMS;
    return s->count == 1 && s->heads > 1 && c->dims <= WIDE && pieces * s->heads <= KEYS;
}

VEC_LONG void score_in_order(scratch *s, const attention_call *c, int64_t j0, int64_t j, int64_t keys,
                             int type)
{
    for (int64_t h = 0; h < s->heads; h++) {
        const char *k = c->k + (s->head + h) * c->k_head + (j0 + j) * c->k_step;
        rows_of all = {k, j0 + j + 32 <= c->keys ? k + 16 * c->k_step : k, c->k_step, c->k_step};
        for (int64_t d = 0; d < c->dims; d += DIMS) {
            rows_of part = part_of(&all, d * ELEMENT_BYTES(type));
            tile_call t = {.x = piece(s->q, s, d, h),
                           .w = s->kv,
                           .sum = s->weight[h] + j,
                           .count = least(DIMS, c->dims - d),
                           .add = d > 0};
            pack_keys(s->kv, &part, least(16, keys - j), t.count, type);
            tile_1(&t, 1);
        }
    }
}

/* Goes on with `groups` v16 of chains, over `keys` keys. */
VEC void values_of(float *chain, const float *weight, const char *v, int64_t step, int64_t d, int64_t n,
                   const int groups, const int keys, int type)
{
    v16 sum[DIMS / 16];
    UNROLLED for (int p = 0; p < groups; p++) sum[p] = v_load(chain + 16 * p);
    UNROLLED for (int i = 0; i < groups * keys; i++) sum[i % groups] =
        v_fma(v_set(weight[i / groups]), v_read(v + i / groups * step, d + 16 * (i % groups), n, type),
              sum[i % groups]);
    UNROLLED for (int p = 0; p < groups; p++) v_store(chain + 16 * p, sum[p]);
}

VEC_LONG void add_in_order(scratch *s, const attention_call *c, int64_t j0, int64_t j, const int keys,
                           int type)
{
    for (int64_t h = 0; h < s->heads; h++) {
        const char *v = c->v + (s->head + h) * c->v_head + (j0 + j) * c->v_step;
        int64_t d = 0;
        for (; d + DIMS <= c->dims; d += DIMS)
            values_of(piece(s->kv, s, d, h), s->weight[h] + j, v, c->v_step, d, c->dims, DIMS / 16, keys,
                      type);
        for (; d < c->dims; d += 16)
            values_of(piece(s->kv, s, d, h), s->weight[h] + j, v, c->v_step, d, c->dims, 1, keys, type);
    }
}

VEC_RARE void block_in_order(scratch *s, const attention_call *c, int64_t j0, int64_t keys, int type)
{
    int64_t from = greatest(0, s->from[0] - j0), until = least(KEYS, s->until[0] - j0), j;
    for (j = from / 16 * 16; j < until; j += 16)
        score_in_order(s, c, j0, j, keys, type);
    for (int64_t h = 0; h < s->heads; h++)
        weigh(s, h, h, (span){0, 1}, scaling_by(fabsf(c->scale)), j0);
    memset(s->kv, 0, sizeof(s->kv));
    for (j = from; j + FEW <= until; j += FEW)
        add_in_order(s, c, j0, j, FEW, type);
    for (; j < until; j++)
        add_in_order(s, c, j0, j, 1, type);
    for (int64_t h = 0; h < s->heads; h++)
        for (int64_t d = 0; d < c->dims; d += 16) {
            float *sum = piece(s->sum, s, d, h);
            v_store(sum, v_fma(v_load(sum), v_set(s->fade[h]), v_load(piece(s->kv, s, d, h))));
        }
}

/* Keys j0 … j0 + keys - 1 of all key heads, for dims e … e + n - 1 of the result. */
VEC_LONG void block(scratch *s, const attention_call *c, int64_t j0, int64_t keys, int64_t e, int64_t n,
                    int type)
{
    span rows = who_sees(s, j0, j0 + keys);
    if (in_order(s, c)) {
        block_in_order(s, c, j0, keys, type);
        return;
    }
    for (int64_t h = 0; h < s->heads; h++) {
        int64_t head = s->head + h, base = h * s->count, last = h + 1 == s->heads;
        int64_t next_j = !last ? j0 : j0 + KEYS < c->keys ? j0 + KEYS : 0;
        const char *v = c->v + head * c->v_head + j0 * c->v_step + e * ELEMENT_BYTES(type),
                   *k = c->k + head * c->k_head + j0 * c->k_step,
                   *next = c->k + (last ? s->head : head + 1) * c->k_head + next_j * c->k_step;
        score(s, c, &(rows_of){k, v, c->k_step, c->v_step}, base, j0, keys, type);
        weigh(s, base, 0, rows, scaling_by(fabsf(c->scale)), j0);
        add_values(s, &(rows_of){v, next, c->v_step, c->k_step}, base, rows, j0, keys, n, type);
    }
}

/* Dims e … e + n - 1 of the result; zeros for a query that sees nothing. */
VEC_LONG void store(scratch *s, const attention_call *c, int64_t e, int64_t n, int type)
{
    for (int64_t h = 0; h < s->heads; h++)
        for (int64_t r = 0; r < s->count; r++) {
            char *out = c->out + s->query[r] * c->out_step + head_of(s, c, h, r) * c->out_head;
            const float *from = piece(s->sum, s, 0, h * s->count + r);
            int sees = s->from[r] < s->until[r];
            v16 total = v_set(sees ? v_sum(v_load(s->total[h * s->count + r])) : 1);
            for (int64_t d = 0; d < n; d += 16) {
                v16 sum = sees ? v_load(from + piece_at(s, d)) : v_set(0);
                v_write(out, e + d, e + n, type, v_div(sum, total));
            }
        }
}

VEC_LONG void clear(scratch *s, int64_t n)
{
    int64_t rows = s->count * s->heads;
    memset(s->sum, 0, (size_t)((n + DIMS - 1) / DIMS * rows * DIMS) * sizeof(float));
    memset(s->total, 0, (size_t)rows * sizeof(s->total[0]));
    for (int64_t i = 0; i < rows + 16; i += 16)
        v_store(s->largest + least(i, ROWS), v_set(-INFINITY));
}

/* The result for the rows that the scratch names. */
VEC_LONG void attend_rows(scratch *s, const attention_call *c, int type)
{
    look(s, c);
    int64_t from = s->from[0] / KEYS * KEYS, until = s->until[s->count - 1];
    if (c->dims <= WIDE) load_queries(s, c, 0, c->dims, type);
    for (int64_t e = 0; e < c->dims; e += WIDE) { /* once, but for very wide heads */
        int64_t n = least(WIDE, c->dims - e);
        clear(s, n);
        for (int64_t j = from; j < until; j += KEYS)
            block(s, c, j, least(KEYS, until - j), e, n, type);
        store(s, c, e, n, type);
    }
}

/* As many rows at a time as there is room for, in even parts: rows of one key head, or, where these are few
 * and the same key of several heads lies side by side, all rows of some: memory is read in order. */
VEC_LONG void attend(const attention_call *c, int type)
{
    scratch s;
    int64_t rows = c->queries * c->heads, room = ROWS / least(PIECES, (c->dims + DIMS - 1) / DIMS);
    int interleaved = c->k_head < c->k_step;
    int64_t parts = (rows + room - 1) / room, share = (rows + parts - 1) / parts;
    for (s.head = 0; s.head < c->key_heads; s.head += s.heads) {
        s.heads = interleaved ? greatest(1, least(room / rows, c->key_heads - s.head)) : 1;
        for (s.first = 0; s.first < rows; s.first += s.count) {
            s.count = least(share, rows - s.first);
            attend_rows(&s, c, type);
        }
    }
}

/* Sequence by sequence. */
VEC_LONG void attend_all(const attention_call *c, int type)
{
    attention_call one = *c;
    for (int64_t b = 0; b < c->sequences; b++) {
        one.keys = attention_keys(c->keys, c->lengths, b);
        attend(&one, type);
        one.out += c->out_sequence;
        one.q += c->q_sequence;
        one.k += c->k_sequence;
        one.v += c->v_sequence;
    }
}

static void attend_f32(const attention_call *c)
{
    attend_all(c, F32);
}
static void attend_bf16(const attention_call *c)
{
    attend_all(c, BF16);
}

extern const attention_path PATH(attention);
const attention_path PATH(attention) = {{attend_f32, attend_bf16}};
