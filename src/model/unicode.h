/* What a character is to BERT's tokenizer. utf8proc knows Unicode 15; the peer that every model was trained
 * with, Hugging Face tokenizers, classifies by the tables of Unicode 8.0, orders marks by those of 9.0 and
 * lower-cases by those of 17.0. Where they differ, the tables in unicode.c say what the peer does. */
#ifndef MODEL_UNICODE_H
#define MODEL_UNICODE_H

#include <stdint.h>

/* White_Space of Unicode. */
int khub__char_is_space(uint32_t c);

/* ASCII punctuation and symbols, and category P. */
int khub__char_is_punctuation(uint32_t c);

/* What cleaning drops: U+0000, U+FFFD, categories Cc, Cf and Co but for tab, newline and carriage return. */
int khub__char_is_dropped(uint32_t c);

/* The ideographs that stand as words of their own. */
int khub__char_is_ideograph(uint32_t c);

/* Category Mn. */
int khub__char_is_mark(uint32_t c);

/* Canonical_Combining_Class: 0 for what marks are ordered behind. */
int khub__char_combining(uint32_t c);

/* \w of regular expressions: Alphabetic, M, Nd, Pc, Join_Control. */
int khub__char_is_word(uint32_t c);

/* The lower case of a character by itself, one or two characters; returns how many. */
int khub__char_lower(uint32_t out[2], uint32_t c);

/* The canonical decomposition, one to four characters; returns how many. */
int khub__char_decompose(uint32_t out[4], uint32_t c);

#endif
