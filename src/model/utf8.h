/* UTF-8 as bytes: what is valid, what stands for what isn't, and single characters. */
#ifndef MODEL_UTF8_H
#define MODEL_UTF8_H

#include <stddef.h>
#include <stdint.h>

enum { KHUB__REPLACEMENT = 0xFFFD };

/* How many bytes from the start are valid UTF-8; `length` when all are. */
size_t khub__utf8_valid(const char *text, size_t length);

/* A copy of the text in which every maximal subpart of an ill-formed sequence is U+FFFD (Unicode 15.0, 3.9
 * "U+FFFD Substitution"; Python's errors="replace" does the same). 0; -1: no memory. *out is freed with
 * khub__free. */
int khub__utf8_repair(char **out, size_t *out_length, const char *text, size_t length);

/* The character at *text, which must be valid and not empty; moves *text behind it. */
uint32_t khub__utf8_next(const char **text);

/* The character that ends at `end`; valid text, start < end. */
uint32_t khub__utf8_last(const char *start, const char *end);

/* Writes a character (at most 4 bytes) and returns what follows it. */
char *khub__utf8_put(char *to, uint32_t character);

#endif
