/* A tokenizer from the inside: its parts, and the readers that fill them. */
#ifndef MODEL_TOKENIZER_H
#define MODEL_TOKENIZER_H

#include <khub/tokenizer.h>

#include "base/file.h"
#include "model/added.h"
#include "model/normalize.h"
#include "model/wordpiece.h"

/* The text goes down this list: added tokens as they are written are taken out; what is between them is
 * normalized; added tokens in normalized form are taken out; what is left is cut into words, and those into
 * pieces. */
struct khub_tokenizer {
    khub__added raw;
    khub__normalizer normalizer;
    khub__added normalized;
    khub__wordpiece wordpiece;
    khub__ids before, after;  /* special tokens around every text */
    uint8_t ascii_class[128]; /* khub__word_class of ASCII */
    khub__bytes file;         /* holds the vocabulary's tokens */
    char **owned;             /* texts from elsewhere that the parts borrow */
    size_t owned_count, owned_capacity;
};

/* What separates words. Punctuation is a word by itself. */
enum khub__word_class { KHUB__WORD_LETTER, KHUB__WORD_SPACE, KHUB__WORD_PUNCTUATION };

enum { KHUB__TOKENIZER_FILE_MAX = 16 << 20 }; /* bytes of tokenizer.json or vocab.txt that we read */

/* An empty tokenizer; NULL: no memory. */
khub_tokenizer *khub__tokenizer_new(void);

/* Reads tokenizer.json; *json becomes the tokenizer's, also when it fails. `file` is for messages. */
int khub__tokenizer_read_json(khub_tokenizer *tokenizer, khub__bytes *json, const char *file,
                              khub_error *err);

/* Reads vocab.txt, which becomes the tokenizer's, also when it fails, and tokenizer_config.json (NULL: there
 * is none). */
int khub__tokenizer_read_vocab(khub_tokenizer *tokenizer, khub__bytes *vocab, const char *vocab_file,
                               const khub__bytes *config, const char *config_file, khub_error *err);

/* A token to be found in the text, as the files describe it. `order` settles which of two counts. */
typedef struct khub__special {
    const char *content;
    int64_t id;
    size_t order;
    int normalized, single_word, lstrip, rstrip;
} khub__special;
int khub__tokenizer_add(khub_tokenizer *tokenizer, const khub__special *special, const char *file,
                        khub_error *err);

/* To be called once everything is read: makes the tables that follow from it. */
int khub__tokenizer_finish(khub_tokenizer *tokenizer, const char *file, khub_error *err);

/* A copy of a text that lives as long as the tokenizer; NULL: no memory. */
const char *khub__tokenizer_keep(khub_tokenizer *tokenizer, const char *text);

/* vocabulary_json.c: fills the vocabulary from "model": {"vocab": {TOKEN: ID, …}} of a tokenizer.json and
 * unescapes its tokens in place. *rest (khub_free) is the JSON with an empty "vocab" and the same number of
 * lines. *found: 0 when there is none. */
int khub__vocabulary_read_json(khub__vocabulary *vocabulary, char **rest, int *found, khub__bytes *json,
                               const char *file, khub_error *err);

#endif
