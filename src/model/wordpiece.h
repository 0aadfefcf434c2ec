/* A word as the pieces that a vocabulary has for it. */
#ifndef MODEL_WORDPIECE_H
#define MODEL_WORDPIECE_H

#include "model/vocabulary.h"

typedef struct khub__wordpiece {
    khub__vocabulary vocabulary;
    const char *prefix; /* of pieces that don't start a word: "##"; borrowed */
    size_t prefix_length;
    uint32_t prefix_hash;  /* set by _prepare */
    int32_t unknown;       /* id of the token for what has no pieces */
    size_t max_characters; /* a longer word is unknown */
} khub__wordpiece;

void khub__wordpiece_prepare(khub__wordpiece *wordpiece, const char *prefix);

/* Ids in a row; {0} is empty. */
typedef struct khub__ids {
    int32_t *items;
    size_t count, capacity;
} khub__ids;

/* 0; -1: no memory. */
int khub__ids_add(khub__ids *ids, int32_t id);

/* Adds the pieces of a word: from the left always the longest token that fits, or the unknown token when
 * something is left over. `characters` is the word's length in characters. 0; -1: no memory. */
int khub__wordpiece_add(khub__ids *ids, const khub__wordpiece *wordpiece, const char *word, size_t length,
                        size_t characters);

#endif
