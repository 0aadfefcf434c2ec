/* What a layer is tried with: shapes, dtypes and classes of values. A case is named, and its name and a seed
 * make the same numbers again on every machine. docs/determinism.md describes the sweep. */
#ifndef MEASURE_CASES_H
#define MEASURE_CASES_H

#include "layer/names.h"

/* What the tensors that flow through a layer hold (x, residual, q, k, v); weights, biases and angles stay
 * normal but with KHUB__TIES. */
typedef enum khub__values {
    KHUB__NORMAL,     /* "normal": mean 0, deviation 1, all within 3.5 */
    KHUB__TINY,       /* "tiny": the 8 lowest binades of normal numbers */
    KHUB__HUGE,       /* "huge": the 8 highest binades */
    KHUB__SUBNORMAL,  /* "subnormal" */
    KHUB__ZEROS,      /* "zeros": half of them +0 or -0 */
    KHUB__INFINITIES, /* "infinities": one in 16, either sign, in every other row */
    KHUB__NAN,        /* "nan": one in 16, in every other row */
    KHUB__TIES,       /* "ties": sums and products land in the middle between two numbers of the dtype */
    KHUB__MIXED,      /* "mixed": any finite bits */
    KHUB__BITS, /* "bits0" … "bits7": of a 16-bit dtype all there are, in order; of a wider one, a random one
                 * of every stratum of equally many bit patterns; the parts have other strata */
    KHUB__VALUES
} khub__values;

enum { KHUB__BITS_PARTS = 8, KHUB__CASE_NAME = 96 };

typedef struct khub__case_arg {
    khub__arg_kind kind;
    int is_output;
    int is_none;      /* an optional argument that is left out */
    khub_dtype dtype; /* of a tensor, as are the next two */
    int32_t ndim;
    int64_t shape[KHUB_MAX_NDIM];
    double number; /* of what is no tensor */
} khub__case_arg;

typedef struct khub__case {
    const khub__layer_def *layer;
    khub_dtype dtype;
    khub__values values;
    int part;                       /* of KHUB__BITS, else 0 */
    int32_t ndim;                   /* how many extents the name has, and which: */
    int64_t extents[KHUB_MAX_NDIM]; /* norms, softmax, activations: x's shape; with a gate: out's;
                                     * rotary_pos_emb: t h g d; Attention: b t s h g d; Linear…: m n k;
                                     * Embedding…: m v n */
    unsigned with;                  /* bit i: the optional argument i is given, the bool i is true */
    int64_t window;                 /* of Attention, where it is given; 0: a third of its keys */
    uint64_t seed;
    khub__case_arg
        args[KHUB__MAX_ARGS]; /* layer->arg_count of them, in the layer's order; follows from the rest */
} khub__case;

/* Fills in out->args from layer, dtype, values, extents and with. KHUB_E_INVAL: extents that the layer can't
 * have (too few, too many, an empty row to normalize, an odd head dimension, heads that aren't a multiple of
 * k's, a tensor of more than 2^31
 * elements). */
int khub__case_complete(khub__case *out, khub_error *err);

/* The sweep: `count` cases of a layer in one dtype, the i-th of them with the seed. Static tables; never
 * fails for i below the count. */
size_t khub__case_count(const khub__layer_def *layer, khub_dtype dtype);
void khub__case_at(khub__case *out, const khub__layer_def *layer, khub_dtype dtype, size_t i, uint64_t seed);

/* "float32/normal/4x384/sum,bias": dtype, values, extents, what of the optional is there. */
const char *khub__case_name(char name[KHUB__CASE_NAME], const khub__case *c);

/* The case of that name, in the sweep or not. KHUB_E_INVAL: says what of the name can't be read. */
int khub__case_parse(khub__case *out, const khub__layer_def *layer, const char *name, uint64_t seed,
                     khub_error *err);

/* Fills compact memory (row-major, khub__case_bytes) with the numbers of an input; any thread. */
void khub__case_fill(const khub__case *c, int32_t arg, void *to);
/* Bytes of a tensor argument's elements; 0 for what is no tensor, or left out. */
size_t khub__case_bytes(const khub__case *c, int32_t arg);

/* Position of the input whose memory this output may have, by docs/layers.md; -1: none. */
int32_t khub__case_in_place(const khub__case *c, int32_t arg);

/* 1 when a batch is counted by axis 0 of this argument (out, x, q, …; not weights): rows of it are
 * independent of each other. 0 for everything when the case has one axis only. */
int khub__case_is_batched(const khub__case *c, int32_t arg);

#endif
