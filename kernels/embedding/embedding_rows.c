/* Rows of tables added up, and LayerNorm of the sum; once for each path. */
#include "embedding.h"

#include "norm_row.h"

/* Rounded once, when the sum is stored where the result will be. */
VEC void add_rows(char *out, const char *const from[TABLES], int64_t n, int type)
{
    for (int64_t i = 0; i < n; i += 16) {
        v16 v = v_read(from[0], i, n, type);
        for (int table = 1; table < TABLES; table++)
            if (from[table]) v = v_add(v, v_read(from[table], i, n, type));
        v_write(out, i, n, type, v);
    }
}

VEC void look_up(const char *from[TABLES], const khub__rows *rows, int64_t row, const embedding_params *p)
{
    for (int table = 0; table < TABLES; table++)
        from[table] =
            p->table[table]
                ? p->table[table] + embedding_index(rows, row, table, p->index_bytes[table]) * p->step[table]
                : NULL;
}

VEC void embed_rows(const khub__rows *rows, const embedding_params *p, int type)
{
    for (int64_t row = 0; row < rows->count; row++) {
        char *out = rows->data[EMBEDDING_OUT] + row * rows->step[EMBEDDING_OUT];
        const char *from[TABLES];
        look_up(from, rows, row, p);
        add_rows(out, from, p->norm.n, type);
        norm_one one = {.out = out, .x = out, .sum = out, .p = &p->norm};
        if (!norm_row(one, type, 0, 1, 0)) huge_row(one, type, 1);
    }
}

static void layer_norm_f32(const khub__rows *rows, const embedding_params *params)
{
    embed_rows(rows, params, F32);
}
static void layer_norm_bf16(const khub__rows *rows, const embedding_params *params)
{
    embed_rows(rows, params, BF16);
}

extern const embedding_path PATH(embedding);
const embedding_path PATH(embedding) = {.layer_norm = {layer_norm_f32, layer_norm_bf16}};
