/* What this folder knows of an operator. */
#ifndef TORCH_OPERATOR_H
#define TORCH_OPERATOR_H

#include "torch/operators.h"
#include "torch/schema.h"

struct khub__torch_operator {
    char *key;      /* "aten::silu.out" */
    char *name;     /* "aten::silu" */
    char *overload; /* "out"; "": none */
    char *text;     /* the schema as libtorch wrote it */
    char *keys;     /* "CPU Meta ": dispatch keys, with a space behind each */
    char *refusal;  /* why it can't be called; NULL: it can */
    khub__schema schema;
    int gives_tensors; /* 1: a result may share an argument's memory */
};

/* Decides why an operator can't be called; 0, or -1: no memory. call.c. */
int khub__torch_judge(khub__torch_operator *op);

#endif
