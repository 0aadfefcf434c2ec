/* Attention on GPUs: a block for 32 rows, which are queries of heads of one key head, over all keys that they
 * see; the sums of attention_blocks.c, block of keys by block of keys, so that its bits come out. Sixteen
 * threads have two rows: each of them the keys and the dims whose index modulo 16 is its own (of dims in
 * fours), and so one of the sixteen sums of weights. */
#include "gpu.h"

#include "attention.h"

#include "weight.h"

enum {
    THREADS = 256,
    LANES = 16, /* threads of a row */
    MINE = 2,   /* rows of a thread: LANES apart */
    ROWS = THREADS / LANES * MINE,
    KEYS = 64,
    DIMS = 64,          /* of a chain, and at a time */
    PIECES = 2,         /* of DIMS dims, of the result at a time */
    STEP = DIMS + 4,    /* floats from row to row: no two of the rows that are read together in one bank */
    WEIGHTS = KEYS + 16 /* the same of weights */
};

/* Shared memory. */
typedef struct shared {
    float q[PIECES][ROWS * STEP], kv[KEYS * STEP], weight[ROWS * WEIGHTS];
} shared;

/* What a block computes: some of queries · heads rows of a key head. */
typedef struct tile {
    char *out;
    const char *q, *k, *v;
    int64_t first, rows, keys; /* the first row, how many there are in all, how many keys count */
} tile;

/* What a thread knows of its rows. */
typedef struct mine {
    int64_t from[MINE], until[MINE];              /* the keys that they see */
    int low[MINE], high[MINE];                    /* the same within the block of keys */
    float largest[MINE], fade[MINE], total[MINE]; /* total: the thread's of sixteen */
    float score[MINE][KEYS / LANES];              /* of keys LANES apart */
    float sum[PIECES][MINE][DIMS / LANES];        /* of dims side by side */
} mine;

VEC int my_lane(void)
{
    return (int)threadIdx.x % LANES;
}
VEC int my_row(int i)
{
    return (int)threadIdx.x / LANES + i * (THREADS / LANES);
}
VEC int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}
VEC int64_t greatest(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Where row `row` of the key head begins in q; in out by out's steps. */
VEC int64_t row_at(const attention_call *c, int64_t row, int64_t step, int64_t head)
{
    return row / c->heads * step + row % c->heads * head;
}

/* What row `row` sees; nothing, if there is no such row. */
VEC void look(const attention_call *c, const tile *t, int64_t row, int64_t *from, int64_t *until)
{
    int64_t query = row / c->heads;
    *until = row < t->rows ? greatest(0, least(t->keys, query + c->until)) : 0;
    *from = least(greatest(0, query + c->from), *until);
}

/* Four dims from d on of a row of n, times `by`; zeros past its end. */
VEC void fetch_four(float *to, const char *row, int64_t d, int64_t n, float by, int type)
{
    for (int k = 0; k < 4; k++)
        to[k] = d + k < n ? v_mul(get(row, d + k, type), by) : 0;
}

/* DIMS dims from d on of KEYS keys from j on; zeros where there are none. */
VEC void fetch_keys(float *to, const char *at, int64_t step, int64_t j, int64_t keys, int64_t d, int64_t n,
                    int type)
{
    const int per = PER_CHUNK(type);
    UNROLL(2)
    for (int i = (int)threadIdx.x; i < KEYS * DIMS / per; i += THREADS) {
        int key = i / (DIMS / per), dim = i % (DIMS / per) * per;
        const char *row = at + (j + key) * step;
        float v[CHUNK] = {0, 0, 0, 0, 0, 0, 0, 0};
        if (j + key < keys) {
            if (d + dim + per <= n && chunks_fit(row + d * ELEMENT_BYTES(type)))
                get_chunk(v, row, d + dim, type);
            else
                for (int k = 0; k < per; k += 4)
                    fetch_four(v + k, row, d + dim + k, n, 1, type);
        }
        for (int k = 0; k < per; k++)
            to[key * STEP + dim + k] = v[k];
    }
}

VEC void fetch_queries(float *to, const attention_call *c, const tile *t, int64_t d, int type)
{
    const float sign = c->scale < 0 ? -1 : 1; /* so that the largest score has the largest weight */
    UNROLL(1)
    for (int i = (int)threadIdx.x; i < ROWS * DIMS / 4; i += THREADS) {
        int row = i / (DIMS / 4), dim = i % (DIMS / 4) * 4;
        float v[4] = {0, 0, 0, 0};
        if (t->first + row < t->rows)
            fetch_four(v, t->q + row_at(c, t->first + row, c->q_step, c->q_head), d + dim, c->dims, sign,
                       type);
        for (int k = 0; k < 4; k++)
            to[row * STEP + dim + k] = v[k];
    }
}

/* Chains over `count` dims, a multiple of 4. */
VEC void score(mine *m, const float *q, const float *kv, int count, int add)
{
    float chain[MINE][KEYS / LANES] = {{0}};
    UNROLL(1)
    for (int d = 0; d < count; d += 4)
        for (int k = d; k < d + 4; k++)
            for (int i = 0; i < MINE; i++)
                for (int j = 0; j < KEYS / LANES; j++)
                    chain[i][j] =
                        v_fma(q[my_row(i) * STEP + k], kv[(my_lane() + j * LANES) * STEP + k], chain[i][j]);
    for (int i = 0; i < MINE; i++)
        for (int j = 0; j < KEYS / LANES; j++)
            m->score[i][j] = add ? v_add(m->score[i][j], chain[i][j]) : chain[i][j];
}

VEC int sees(const mine *m, int i, int key)
{
    return key >= m->low[i] && key < m->high[i];
}

/* Scores of row i become weights, its largest so far what it is now. */
VEC void weigh(mine *m, float *weight, scaling by, int i)
{
    float most = -INFINITY, sum = 0;
    for (int j = 0; j < KEYS / LANES; j++)
        if (sees(m, i, my_lane() + j * LANES)) most = v_max(m->score[i][j], most);
    for (int apart = LANES / 2; apart; apart /= 2)
        most = v_max(most, __shfl_xor_sync(0xffffffffu, most, apart));
    if (m->low[i] >= m->high[i]) return;
    float now = v_max(most, m->largest[i]), base = v_less(-INFINITY, now, now, 0);
    m->fade[i] = v_weight(v_sub(m->largest[i], base), by);
    m->largest[i] = now;
    for (int j = 0; j < KEYS / LANES; j++) {
        int key = my_lane() + j * LANES;
        float w = sees(m, i, key) ? v_weight(v_sub(m->score[i][j], base), by) : 0;
        weight[my_row(i) * WEIGHTS + key] = w;
        sum = v_add(sum, w);
    }
    m->total[i] = v_fma(m->total[i], m->fade[i], sum);
}

/* Goes on with the sums of a piece of dims. What a row doesn't see isn't touched: it may be NaN. */
VEC void add_values(float sum[MINE][DIMS / LANES], const mine *m, const float *weight, const float *kv)
{
    float chain[MINE][DIMS / LANES] = {{0}};
    int low = (int)least(m->low[0], m->low[1]), high = (int)greatest(m->high[0], m->high[1]);
    UNROLL(2)
    for (int j = low; j < high; j++)
        for (int i = 0; i < MINE; i++)
            if (sees(m, i, j))
                for (int d = 0; d < DIMS / LANES; d++)
                    chain[i][d] =
                        v_fma(weight[my_row(i) * WEIGHTS + j], kv[j * STEP + my_lane() * 4 + d], chain[i][d]);
    for (int i = 0; i < MINE; i++)
        for (int d = 0; d < DIMS / LANES; d++)
            if (m->low[i] < m->high[i]) sum[i][d] = v_fma(sum[i][d], m->fade[i], chain[i][d]);
}

/* Keys j … j + KEYS - 1, for dims e … of the result; `first` of them. */
VEC void block(shared *s, mine *m, const attention_call *c, const tile *t, int64_t j, int64_t e, int first,
               int type)
{
    for (int64_t d = 0; d < c->dims; d += DIMS) {
        float *q = s->q[d / DIMS % PIECES];
        fetch_keys(s->kv, t->k, c->k_step, j, t->keys, d, c->dims, type);
        if (first || c->dims > PIECES * DIMS) fetch_queries(q, c, t, d, type);
        __syncthreads();
        score(m, q, s->kv, (int)(least(DIMS, c->dims - d) + 3) / 4 * 4, d > 0);
        __syncthreads();
    }
    UNROLL(MINE)
    for (int i = 0; i < MINE; i++) {
        m->low[i] = (int)least(KEYS, greatest(0, m->from[i] - j));
        m->high[i] = (int)least(KEYS, greatest(0, m->until[i] - j));
        weigh(m, s->weight, scaling_by(fabsf(c->scale)), i);
    }
    UNROLL(PIECES)
    for (int p = 0; p < PIECES; p++)
        if (e + p * DIMS < c->dims) {
            fetch_keys(s->kv, t->v, c->v_step, j, t->keys, e + p * DIMS, c->dims, type);
            __syncthreads();
            add_values(m->sum[p], m, s->weight, s->kv);
            __syncthreads();
        }
}

VEC void clear(mine *m)
{
    for (int i = 0; i < MINE; i++) {
        m->largest[i] = -INFINITY;
        m->total[i] = 0;
        for (int p = 0; p < PIECES; p++)
            for (int d = 0; d < DIMS / LANES; d++)
                m->sum[p][i][d] = 0;
    }
}

/* Dims e … of the result; zeros for a query that sees nothing. */
VEC void finish(const mine *m, const attention_call *c, const tile *t, int64_t e, int type)
{
    UNROLL(MINE)
    for (int i = 0; i < MINE; i++) {
        int64_t row = t->first + my_row(i);
        int any = m->from[i] < m->until[i];
        float total = warp_sum(m->total[i], LANES);
        if (row >= t->rows) continue;
        char *out = t->out + row_at(c, row, c->out_step, c->out_head);
        for (int p = 0; p < PIECES; p++)
            for (int d = 0; d < DIMS / LANES; d++) {
                int64_t at = e + p * DIMS + my_lane() * 4 + d;
                if (at < c->dims) put(out, at, any ? v_div(m->sum[p][i][d], total) : 0, type);
            }
    }
}

VEC void attend_tile(const attention_call *c, const tile *t, int type)
{
    __shared__ shared memory;
    mine m;
    int64_t from, until, last;
    look(c, t, t->first, &from, &last);
    look(c, t, least(t->first + ROWS, t->rows) - 1, &last, &until);
    for (int i = 0; i < MINE; i++)
        look(c, t, t->first + my_row(i), &m.from[i], &m.until[i]);
    from = from / KEYS * KEYS;
    for (int64_t e = 0; e < c->dims; e += PIECES * DIMS) { /* once, but for wide heads */
        clear(&m);
        for (int64_t j = from; j < until; j += KEYS)
            block(&memory, &m, c, t, j, e, j == from, type);
        finish(&m, c, t, e, type);
    }
}

/* How many tiles a key head has. */
#define TILES(c) (((c)->queries * (c)->heads + ROWS - 1) / ROWS)

VEC void attend(const attention_call *c, int type)
{
    int64_t tiles = TILES(c);
    for (int64_t at = blockIdx.x; at < tiles * c->key_heads * c->sequences; at += gridDim.x) {
        int64_t head = at / tiles % c->key_heads, sequence = at / tiles / c->key_heads;
        tile t;
        t.out = c->out + sequence * c->out_sequence + head * c->heads * c->out_head;
        t.q = c->q + sequence * c->q_sequence + head * c->heads * c->q_head;
        t.k = c->k + sequence * c->k_sequence + head * c->k_head;
        t.v = c->v + sequence * c->v_sequence + head * c->v_head;
        t.first = at % tiles * ROWS;
        t.rows = c->queries * c->heads;
        t.keys = attention_keys(c->keys, c->lengths, sequence);
        attend_tile(c, &t, type);
    }
}

#define DEFINE(name, type)                                                                                   \
    KERNEL(name##_kernel, THREADS, 2, attention_call)                                                        \
    {                                                                                                        \
        attend(&job, type);                                                                                  \
    }                                                                                                        \
    static void name(const attention_call *c)                                                                \
    {                                                                                                        \
        int64_t tiles = TILES(c) * c->key_heads * c->sequences;                                              \
        if (tiles) name##_kernel_launch(c, grid_of(tiles), THREADS, 0);                                      \
    }
DEFINE(attend_f32, F32)
DEFINE(attend_bf16, BF16)
DEFINE(attend_f16, F16)

GPU_BEGIN
extern const attention_path attention_cuda;
const attention_path attention_cuda = {{attend_f32, attend_bf16, attend_f16}};
GPU_END
