/* khub/embedding: rows of tables, looked up and added, and LayerNorm of the sum. */
#include "embedding.h"

ISA_PATHS(embedding_path, embedding);

enum { OUT, IDS, TABLE = 4, WEIGHT = 7, BIAS, EPS };

static const khub__signature embedding_layer_norm_signature = {
    .name = "embedding_layer_norm",
    .doc =
        "LayerNorm of words[ids] + types[type_ids] + positions[position_ids], added in this order and "
        "rounded to their type; a table\n"
        "that is None adds nothing, indices that are None are 0. An index that the table doesn't have is an "
        "error, and nothing is written.",
    .not_empty = "n",
    .dtypes = KHUB__TAKES_F32 | KHUB__TAKES_BF16,
    .count = 10,
    .params = {{"out", KHUB__OUT, "*n"},
               {"ids", KHUB__TENSOR, "*", .indices = 1},
               {"type_ids", KHUB__TENSOR, "*", .indices = 1, .optional = 1},
               {"position_ids", KHUB__TENSOR, "*", .indices = 1, .optional = 1},
               {"words", KHUB__TENSOR, "vn"},
               {"types", KHUB__TENSOR, "un", .optional = 1},
               {"positions", KHUB__TENSOR, "pn", .optional = 1},
               {"weight", KHUB__TENSOR, "n"},
               {"bias", KHUB__TENSOR, "n", .optional = 1},
               {"eps", KHUB__FLOAT}}};

/* Raises an IndexError where an index of the rows, of which the first is out's row `first`, isn't one of the
 * table's. */
static int check_indices(const khub__call *c, const khub__rows *rows, int table, int bytes, int64_t first)
{
    const khub__param *names = c->signature->params;
    const DLTensor *t = c->arg[TABLE + table].tensor;
    for (int64_t row = 0; t && row < rows->count; row++) {
        int64_t index = embedding_index(rows, row, table, bytes);
        if (index >= 0 && index < t->shape[0]) continue;
        return khub__raise(c, "IndexError", "%s[%lld] is %lld, %s has %lld rows", names[IDS + table].name,
                           (long long)(first + row), (long long)index, names[TABLE + table].name,
                           (long long)t->shape[0]);
    }
    return 0;
}

static int check_all(const khub__call *c, const DLTensor *const t[], const embedding_params *p)
{
    khub__walk walk;
    int64_t first = 0;
    for (int more = khub__walk_first(&walk, t, 1 + TABLES, 1); more; more = khub__walk_next(&walk)) {
        for (int table = 0; table < TABLES; table++)
            if (check_indices(c, &walk.rows, table, p->index_bytes[table], first)) return -1;
        first += walk.rows.count;
    }
    return 0;
}

static int embedding_layer_norm_run(const khub__call *c)
{
    const DLTensor *const t[1 + TABLES] = {c->arg[OUT].tensor, c->arg[IDS].tensor, c->arg[IDS + 1].tensor,
                                           c->arg[IDS + 2].tensor};
    embedding_params p = {.norm = {c->extent['n'], khub__data(c->arg[WEIGHT].tensor),
                                   khub__data(c->arg[BIAS].tensor), (float)c->arg[EPS].f64}};
    for (int i = 0; i < TABLES; i++) {
        const DLTensor *table = c->arg[TABLE + i].tensor;
        p.table[i] = khub__data(table);
        p.step[i] = khub__step(table, 0);
        p.index_bytes[i] = t[1 + i] ? t[1 + i]->dtype.bits / 8 : 0;
    }
    if (check_all(c, t, &p)) return -1;
    khub__walk walk;
    for (int more = khub__walk_first(&walk, t, 1 + TABLES, 1); more; more = khub__walk_next(&walk))
        embedding_paths[c->isa]->layer_norm[c->type](&walk.rows, &p);
    return 0;
}
KHUB__EXPORT(embedding_layer_norm)
