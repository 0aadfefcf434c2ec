/* Between the front of attention (attention.c) and its loops (attention_blocks.c, once for each path). */
#ifndef KHUB_KERNELS_ATTENTION_H
#define KHUB_KERNELS_ATTENTION_H

#include "type.h"

#include <stdint.h>

/* Sequences: their key heads, and the query heads that use them, `heads` for each. Steps are bytes; a row's
 * `dims` elements lie side by side. out and q are NULL only where there are no sequences, k and v also where
 * there are no keys. */
typedef struct attention_call {
    char *out;              /* (sequences, queries, key_heads · heads, dims) */
    const char *q, *k, *v;  /* as out, (sequences, keys, key_heads, dims), as k */
    const int32_t *lengths; /* (sequences): how many keys count, where it isn't all of them; NULL: all */
    int64_t sequences, out_sequence, q_sequence, k_sequence, v_sequence;
    int64_t out_step, out_head, q_step, q_head, k_step, k_head, v_step, v_head;
    int64_t queries, heads, key_heads, dims, keys;
    int64_t from, until; /* query i sees keys i + from … i + until - 1, as far as they are among 0 … keys - 1;
                            beyond ±ATTENTION_FAR: no limit */
    float scale;         /* times log2 e */
} attention_call;

#define ATTENTION_FAR (INT64_MAX / 4)

/* By type (type.h). */
typedef struct attention_path {
    void (*attend[TYPES])(const attention_call *);
} attention_path;

#endif
