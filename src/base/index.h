/* Texts and the numbers they stand for, found in constant time. */
#ifndef BASE_INDEX_H
#define BASE_INDEX_H

#include <stddef.h>
#include <stdint.h>

/* {0} is empty. */
typedef struct khub__index {
    struct khub__index_place {
        const char *text; /* NULL: free */
        uint32_t hash, number;
    } * places; /* a power of two of them, at most half taken */
    size_t capacity, count;
} khub__index;

/* The number of a text; -1: it isn't there. */
int64_t khub__index_find(const khub__index *index, const char *text);

/* Adds a text that isn't there yet; it stays the caller's and must outlive the index. 0, or -1 (memory, or
 * more than 2^30 texts) with everything as before. */
int khub__index_add(khub__index *index, const char *text, uint32_t number);

void khub__index_free(khub__index *index);

#endif
