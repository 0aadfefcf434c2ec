/* A growing string. */
#ifndef BASE_TEXT_H
#define BASE_TEXT_H

#include <khub/export.h>

/* {0} is an empty text. Always NUL-terminated once something was added. */
typedef struct khub__text {
    char *data;
    size_t length, capacity;
    int failed; /* an addition found no memory (or the 64 MiB limit); later ones do nothing */
} khub__text;

void khub__text_add(khub__text *text, const char *piece);
void khub__text_add_bytes(khub__text *text, const char *piece, size_t length);
void khub__text_addf(khub__text *text, const char *format, ...) KHUB_PRINTF(2, 3);

/* 1: the same bytes, whatever the case of ASCII's letters. */
int khub__same_letters(const char *a, const char *b, size_t length);

/* 1: the `length` bytes at `text` are `word`, whatever the case of ASCII's letters. */
int khub__is_word(const char *text, size_t length, const char *word);

/* Copies `text` into an array of `size` bytes; what doesn't fit is cut off. */
void khub__copy(char *out, size_t size, const char *text);

/* The string, now the caller's (khub_free); NULL if any addition failed. *text is empty afterwards. */
char *khub__text_take(khub__text *text);
void khub__text_free(khub__text *text);

/* NUL-separated names, `count` of them, as a sorted array (by bytes) of pointers with the text behind it: one
 * allocation, freed with khub_free. NULL: no memory. */
char **khub__text_names(const khub__text *text, size_t count);

/* Length of the valid UTF-8 character at `s` (of `left` bytes, at least one), 0 when it isn't one. */
size_t khub__utf8_length(const unsigned char *s, size_t left);

int khub__is_utf8(const char *text); /* 1: all of it */

/* Writes bytes as lower-case hex digits: 2 * count of them and a NUL; or adds them. */
void khub__hex(char *out, const unsigned char *bytes, size_t count);
void khub__text_add_hex(khub__text *text, const unsigned char *bytes, size_t count);

#endif
