/* An operator's schema as data: "silu.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)". Knows no libtorch.
 */
#ifndef TORCH_SCHEMA_H
#define TORCH_SCHEMA_H

#include "base/text.h"

#include <khub/error.h>

/* A piece of the schema's own text; not NUL-terminated. `at` NULL: there is none. */
typedef struct khub__piece {
    const char *at;
    size_t length;
} khub__piece;

typedef enum khub__schema_kind {
    KHUB__SCHEMA_OTHER, /* Scalar, Dict(…), a class, …: no value of khub's stands for it */
    KHUB__SCHEMA_TENSOR,
    KHUB__SCHEMA_INT, /* int, SymInt */
    KHUB__SCHEMA_FLOAT,
    KHUB__SCHEMA_BOOL,
    KHUB__SCHEMA_STR,
    KHUB__SCHEMA_DTYPE, /* ScalarType */
    KHUB__SCHEMA_DEVICE,
    KHUB__SCHEMA_LAYOUT,
    KHUB__SCHEMA_MEMORY_FORMAT,
    KHUB__SCHEMA_GENERATOR
} khub__schema_kind;

/* What a type is wrapped in: "?" or "[]". Tensor?[] has the optional inside, int[2]? has it outside. */
typedef struct khub__schema_wrap {
    int is_list;  /* 0: optional */
    int64_t size; /* of a list; -1: any */
} khub__schema_wrap;

enum { KHUB__SCHEMA_WRAPS = 4 };

typedef struct khub__schema_type {
    khub__schema_kind kind;
    khub__piece name;  /* "SymInt", "Dict(str, Tensor)" */
    khub__piece alias; /* "a!", "a -> *": what shares memory with what */
    int alias_after;   /* how many wraps stand before it: Tensor(a!)[] is 0 */
    int writes;        /* 1: "!" */
    int wrap_count;
    khub__schema_wrap wraps[KHUB__SCHEMA_WRAPS]; /* the innermost first */
} khub__schema_type;

typedef enum khub__schema_value_kind {
    KHUB__SCHEMA_NO_VALUE,
    KHUB__SCHEMA_NONE,
    KHUB__SCHEMA_VALUE_INT,
    KHUB__SCHEMA_VALUE_FLOAT,
    KHUB__SCHEMA_VALUE_BOOL,
    KHUB__SCHEMA_VALUE_TEXT,
    KHUB__SCHEMA_VALUE_LIST, /* of the other kinds */
    KHUB__SCHEMA_VALUE_OTHER /* a word that isn't any of these */
} khub__schema_value_kind;

/* A default. */
typedef struct khub__schema_value {
    khub__schema_value_kind kind;
    int64_t i; /* VALUE_INT, VALUE_BOOL; VALUE_LIST: index of the first item in khub__schema.items */
    double f;
    size_t count;     /* VALUE_LIST: of items */
    khub__piece text; /* VALUE_TEXT: without quotes and escapes (with a NUL behind it); VALUE_OTHER: as it is
                         written */
} khub__schema_value;

typedef struct khub__schema_argument {
    khub__schema_type type;
    khub__piece name; /* of a result: may be missing */
    khub__schema_value value;
} khub__schema_argument;

typedef struct khub__schema {
    char *text;
    khub__piece name;     /* "aten::silu": with the namespace */
    khub__piece overload; /* "out"; empty: none */
    khub__schema_argument *arguments, *results;
    size_t argument_count, argument_capacity, result_count, result_capacity;
    khub__schema_value *items; /* of all lists */
    size_t item_count, item_capacity;
    char *texts;                      /* of all VALUE_TEXT */
    size_t keyword_at;                /* arguments from here on stand behind "*"; argument_count: none */
    int more_arguments, more_results; /* "...": any number of any type follows */
} khub__schema;

/* Reads a schema as libtorch writes it, at most 64 KiB. KHUB_E_FORMAT says where it stops to be one,
 * KHUB_E_NOMEM. After a failure *out is empty. */
int khub__schema_parse(khub__schema *out, const char *text, khub_error *err);
void khub__schema_free(khub__schema *schema); /* zeroes it; an empty one is a no-op */

/* The schema, or one type or default of it, as libtorch writes it. */
void khub__schema_write(khub__text *text, const khub__schema *schema);
void khub__schema_write_type(khub__text *text, const khub__schema_type *type);

#endif
