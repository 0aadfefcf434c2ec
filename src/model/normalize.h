/* BERT's normalization: cleaning, spaces around ideographs, accents away, lower case. */
#ifndef MODEL_NORMALIZE_H
#define MODEL_NORMALIZE_H

#include <stddef.h>
#include <stdint.h>

typedef struct khub__normalizer {
    int clean, ideographs, strip, lower; /* which of the four steps, in this order */
    uint8_t ascii[128];                  /* what an ASCII byte becomes; 0xFF: nothing. Set by _prepare */
} khub__normalizer;

/* Makes the table that belongs to the four choices. */
void khub__normalizer_prepare(khub__normalizer *normalizer);

/* Normalized text; {0} is empty. */
typedef struct khub__normalized {
    char *data;
    size_t length, capacity;
    uint32_t *marks; /* that wait to be put in order */
    size_t marks_count, marks_capacity;
} khub__normalized;

/* Replaces what is in *out by the normalized form of valid UTF-8. 0; -1: no memory. */
int khub__normalize(khub__normalized *out, const khub__normalizer *normalizer, const char *text,
                    size_t length);

void khub__normalized_free(khub__normalized *text);

#endif
