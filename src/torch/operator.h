/* What this folder knows of an operator. */
#ifndef TORCH_OPERATOR_H
#define TORCH_OPERATOR_H

#include "torch/operators.h"
#include "torch/schema.h"
#include "torch/stack.h"

struct khub__torch_operator {
    char *key;      /* "aten::silu.out" */
    char *name;     /* "aten::silu" */
    char *overload; /* "out"; "": none */
    char *text;     /* the schema as libtorch wrote it */
    char *keys;     /* "CPU Meta ": dispatch keys, with a space behind each */
    char *refusal;  /* why it can't be called; NULL: it can */
    khub__schema schema;
    khub__stack_slot *arguments, *results; /* of the schema's, in one piece of memory */
    size_t places;                         /* that a call needs on the stack */
};

/* Decides why an operator can't be called, and how its values are passed; 0, or -1: no memory. call.c. */
int khub__torch_prepare(khub__torch_operator *op);

#endif
