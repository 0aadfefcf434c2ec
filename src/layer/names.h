/* The layers of docs/layers.md: their names, their arguments in order, and what each argument is. */
#ifndef LAYER_NAMES_H
#define LAYER_NAMES_H

#include <khub/layer.h>

enum { KHUB__MAX_ARGS = 10 };

typedef enum khub__arg_kind {
    KHUB__ARG_TENSOR,
    KHUB__ARG_MAYBE_TENSOR,  /* a tensor or None */
    KHUB__ARG_MAYBE_LENGTHS, /* an int32 tensor or None */
    KHUB__ARG_INDEX,         /* an int32 or int64 tensor */
    KHUB__ARG_MAYBE_INDEX,   /* the same or None */
    KHUB__ARG_FLOAT,
    KHUB__ARG_BOOL,
    KHUB__ARG_MAYBE_COUNT /* an integer from 0 on, or None, which is 0 */
} khub__arg_kind;

typedef struct khub__layer_arg {
    const char *name;
    khub__arg_kind kind;
    int32_t inner; /* axes behind the leading ones, the table's "…"; 0: none, or nothing is leading */
    int is_output;
} khub__layer_arg;

typedef struct khub__layer_def {
    const char *name;
    int32_t arg_count;
    khub__layer_arg args[KHUB__MAX_ARGS];
} khub__layer_def;

/* 1 for an argument that is a number or a switch, no tensor. */
static inline int khub__arg_is_number(khub__arg_kind kind)
{
    return kind == KHUB__ARG_FLOAT || kind == KHUB__ARG_BOOL || kind == KHUB__ARG_MAYBE_COUNT;
}

static inline int khub__arg_is_index(khub__arg_kind kind)
{
    return kind == KHUB__ARG_INDEX || kind == KHUB__ARG_MAYBE_INDEX;
}

/* 1 for an argument that may be None. */
static inline int khub__arg_is_optional(khub__arg_kind kind)
{
    return kind == KHUB__ARG_MAYBE_TENSOR || kind == KHUB__ARG_MAYBE_LENGTHS ||
           kind == KHUB__ARG_MAYBE_INDEX || kind == KHUB__ARG_MAYBE_COUNT;
}

/* Static; NULL for a name that isn't in docs/layers.md. */
const khub__layer_def *khub__layer_find(const char *name);

/* KHUB_E_FORMAT for such a name: "WHERE: there is no layer ...". */
int khub__layer_check(const char *name, const char *where, khub_error *err);

/* Position of an argument in the layer's own order; -1 when it has none of that name. */
int32_t khub__layer_position(const khub__layer_def *layer, const char *arg);

/* How many layers there are, and the number of one of them: 0 … KHUB__LAYERS - 1. */
enum { KHUB__LAYERS = 24 };
size_t khub__layer_number(const khub__layer_def *layer);
const khub__layer_def *khub__layer_at(size_t number);

#endif
