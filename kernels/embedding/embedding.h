/* What embedding.c, which knows tvm-ffi, asks of embedding_rows.c, which knows vectors. */
#ifndef KHUB_KERNELS_EMBEDDING_H
#define KHUB_KERNELS_EMBEDDING_H

#include "norm_params.h"
#include "rows.h"

/* The tables, in the order in which their rows are added. */
enum { WORDS, TYPES_OF_TOKENS, POSITIONS, TABLES };

/* The tensors of rows->data: the output, and the indices into table i at EMBEDDING_IDS + i. */
enum { EMBEDDING_OUT, EMBEDDING_IDS };

typedef struct embedding_params {
    norm_params norm;
    const char *table[TABLES]; /* NULL: adds nothing */
    int64_t step[TABLES];      /* bytes from a row of the table to the next */
    int index_bytes[TABLES];   /* 4 or 8; of None any */
} embedding_params;

typedef void embedding_function(const khub__rows *rows, const embedding_params *params);

/* One path: functions by dtype (type.h). */
typedef struct embedding_path {
    embedding_function *layer_norm[TYPES];
} embedding_path;

/* The index of a row: int32 or int64 at any alignment; 0 of None. */
static inline int64_t embedding_index(const khub__rows *rows, int64_t row, int table, int bytes)
{
    const char *at = rows->data[EMBEDDING_IDS + table];
    int32_t narrow;
    int64_t wide;
    if (!at) return 0;
    at += row * rows->step[EMBEDDING_IDS + table];
    __builtin_memcpy(&narrow, at, sizeof(narrow));
    if (bytes == 4) return narrow;
    __builtin_memcpy(&wide, at, sizeof(wide));
    return wide;
}

#endif
