/* Between the front of attention (attention.c) and its loops (attention_blocks.c, once for each path). */
#ifndef KHUB_KERNELS_ATTENTION_H
#define KHUB_KERNELS_ATTENTION_H

#include <stdint.h>

/* One key head of one sequence and the query heads that use it. Steps are bytes; a row's `dims` elements lie
 * side by side. */
typedef struct attention_call {
    char *out;             /* (queries, heads, dims) */
    const char *q, *k, *v; /* (queries, heads, dims), (keys, dims), (keys, dims) */
    int64_t out_step, out_head, q_step, q_head, k_step, v_step;
    int64_t queries, heads, dims;
    int64_t keys;  /* that any query may see */
    int64_t first; /* query i sees the first `first + i` keys, not more than `keys`, when causal */
    int causal;
    float scale;
} attention_call;

/* By type: F32, BF16 (vec.h). */
typedef struct attention_path {
    void (*attend[2])(const attention_call *);
} attention_path;

#endif
