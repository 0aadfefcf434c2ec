/* A file, or a part of it, read by offsets that it names itself. */
#ifndef PUBLISH_VIEW_H
#define PUBLISH_VIEW_H

#include <stddef.h>
#include <stdint.h>

typedef struct khub__view {
    const char *data;
    size_t length;
    int outside; /* something was asked for that lies outside; it read as 0 */
} khub__view;

/* 1: these bytes lie inside. */
int khub__view_has(const khub__view *view, uint64_t at, uint64_t bytes);

/* Numbers of 1 to 8 bytes at `at`, the lowest byte first; the other way round. */
uint64_t khub__view_little(khub__view *view, uint64_t at, size_t bytes);
uint64_t khub__view_big(khub__view *view, uint64_t at, size_t bytes);

/* The text at `at`; NULL when it doesn't end before `end`. */
const char *khub__view_text(khub__view *view, uint64_t at, uint64_t end);

#endif
