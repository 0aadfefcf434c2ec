/* The name of a build, taken apart. docs/variants.md has the grammar. */
#ifndef VARIANT_NAME_H
#define VARIANT_NAME_H

#include "platform/version.h"

/* What a build was made against, the most preferred first. */
typedef enum khub__framework {
    KHUB__TORCH_STABLE, /* torch-stable-abiXY: the stable ABI of Torch X.Y and later */
    KHUB__TORCH,        /* torchXY: that Torch alone */
    KHUB__TVM_FFI,      /* tvm-ffiXY */
    KHUB__NOARCH        /* torch-NAME: Python files, no library */
} khub__framework;

/* A part of the name, inside the text that was parsed. */
typedef struct khub__word {
    const char *text;
    int length;
} khub__word;

typedef struct khub__variant_name {
    khub__framework framework;
    khub__version version;        /* of the framework; unknown for KHUB__NOARCH */
    int cxx11_abi;                /* 1, 0; -1: no tag, any ABI */
    const khub__backend *backend; /* NULL for KHUB__NOARCH */
    khub__version backend_version;
    khub__word arch, os; /* empty for KHUB__NOARCH */
    khub__word noarch;   /* the backend's name or "universal"; empty for the others */
} khub__variant_name;

/* Takes `text` apart; *out points into it. 1, or 0 for a name outside the grammar, which is no error: a
 * later version may know it. */
int khub__variant_name_parse(khub__variant_name *out, const char *text);

/* 1 when the word is exactly `text`; 0 for NULL. */
int khub__word_is(khub__word word, const char *text);

/* Below, equal or above 0 as a build named `a` is preferred to, as good as, or worse than one named `b`, if
 * both fit. */
int khub__variant_name_compare(const khub__variant_name *a, const khub__variant_name *b);

#endif
