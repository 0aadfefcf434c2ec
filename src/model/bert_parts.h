/* A BERT encoder's layers and memory, for what opens it and what runs it. */
#ifndef MODEL_BERT_PARTS_H
#define MODEL_BERT_PARTS_H

#include "model/bert.h"
#include "model/cut.h"
#include "model/weights.h"

#define COUNT(array) (sizeof(array) / sizeof(*(array)))

/* The Linear layers of one encoder layer. */
enum { QUERY, KEY, VALUE, ATTENTION_DENSE, UP, DOWN, LINEARS };
enum { ATTENTION_NORM, OUTPUT_NORM, NORMS };

struct linear {
    khub_slot *slot;
    khub_tensor weight, bias; /* (out, in), (out) */
};

struct norm {
    khub_slot *slot;
    khub_slot *add, *fused;   /* of what is added before, and the run of both; NULL: nothing is added */
    khub_tensor weight, bias; /* (hidden) */
};

struct layer {
    struct linear linears[LINEARS];
    struct norm norms[NORMS];
    khub_slot *attention, *activation;
    khub_slot *fused; /* the run of UP and the activation; NULL: no layer is both */
};

/* The tables whose rows are added, and the norm behind them. */
struct embeddings {
    khub_slot *sum, *fused; /* the run of the sum and the norm */
    struct norm norm;
    const khub__stored *stored; /* the words as they lie in their file */
    khub_tensor words;          /* (vocabulary, hidden); its data is NULL where they don't lie as floats */
    khub_tensor types, positions;
};

/* Sentences of equal length that follow one another: what one call of Attention works on. */
struct group {
    int64_t shape[4], strides[4]; /* (sentences, tokens, heads, head size) */
    khub_tensor out, q, k, v;
};

struct khub__bert {
    khub__config config;
    khub__weights weights;
    khub__threads *threads; /* borrowed */
    struct embeddings embeddings;
    struct layer *layers; /* config.layers of them */

    int64_t capacity;           /* tokens */
    void *memory;               /* all that follows lies in it */
    float *hidden, *other;      /* (tokens, hidden) */
    int32_t *places, *numbers;  /* (tokens): of a token in its sentence, and in the run */
    float *q, *k, *v, *context; /* (tokens, hidden) */
    float
        *wide; /* (tokens, intermediate): the same memory as q, k, v, context, which are done with by then */
    struct group *groups; /* as many as tokens */
    khub__calls calls;
};

#endif
