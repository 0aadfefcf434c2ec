/* Bytes that somebody else keeps. */
#ifndef BASE_SPAN_H
#define BASE_SPAN_H

#include <stddef.h>

typedef struct khub__span {
    const unsigned char *data;
    size_t length;
} khub__span;

#endif
