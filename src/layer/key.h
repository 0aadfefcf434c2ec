/* A key of a mapping: a layer, a layer at some paths, or a run of layers that one kernel serves. */
#ifndef LAYER_KEY_H
#define LAYER_KEY_H

#include <khub/error.h>

#include <stdint.h>

enum { KHUB__MAX_RUN = 8 };

typedef struct khub__key_part {
    const char *layer;
    const char *pattern; /* of paths: segments between ".", "*" any one, "**" any number; NULL: every path */
    uint32_t first;      /* khub__first_segment of the pattern */
} khub__key_part;

/* "Linear(encoder.*.dense) + GeLU": one part, or a run of them. One allocation. */
typedef struct khub__key {
    const char *text; /* written in the one way that keys are compared in */
    size_t part_count;
    khub__key_part part[KHUB__MAX_RUN];
} khub__key;

/* *out is the caller's (khub__free). KHUB_E_FORMAT: "WHERE: fact"; KHUB_E_NOMEM. */
int khub__key_parse(khub__key **out, const char *text, const char *where, khub_error *err);

/* A number for the first segment, the same for the same text; 0: it is "*" or "**". Where those of a pattern
 * and a path are other numbers and neither is 0, the pattern doesn't take the path. */
uint32_t khub__first_segment(const char *path);

/* 1 when the pattern takes the path; NULL takes every path. */
int khub__pattern_takes(const char *pattern, const char *path);

/* How special a key is among those that take a slot: a longer run, then the literal segments of its
 * patterns, then their "*"; more comes first. */
int khub__key_compare(const khub__key *a, const khub__key *b);

#endif
