/* Text to token ids (libkhub-model): WordPiece with BERT's normalization. */
#ifndef KHUB_TOKENIZER_H
#define KHUB_TOKENIZER_H

#include <khub/error.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct khub_tokenizer khub_tokenizer;

/* Opens the tokenizer in a model's directory: tokenizer.json, or vocab.txt with tokenizer_config.json where
 * that stands. *out is the caller's. KHUB_E_NOTFOUND (neither is there), KHUB_E_FORMAT (file and fact),
 * KHUB_E_UNSUPPORTED (another kind of tokenizer, by its name), KHUB_E_NOMEM. */
KHUB_API int khub_tokenizer_open(khub_tokenizer **out, const char *directory, khub_error *err);
KHUB_API void khub_tokenizer_close(khub_tokenizer *tokenizer); /* NULL is a no-op */

/* Number of ids, so that each id is below it. */
KHUB_API int32_t khub_tokenizer_size(const khub_tokenizer *tokenizer);
/* The text of a token, borrowed; NULL for an id that isn't used. */
KHUB_API const char *khub_tokenizer_token(const khub_tokenizer *tokenizer, int32_t id);

/* The ids of one text with the special tokens around it. */
typedef struct khub_tokens {
    int32_t *ids; /* freed with khub_tokens_free */
    size_t count;
    int truncated;    /* 1: the text was longer than max_tokens and was cut */
    int invalid_utf8; /* 1: broken UTF-8 was read as U+FFFD */
} khub_tokens;

/* Tokenizes `length` bytes of text; broken UTF-8 is read as U+FFFD, as the Unicode standard recommends.
 * max_tokens (0: no limit) cuts the end of the text; the special tokens around it stay. Any thread at once.
 * *out is zeroed on failure. KHUB_E_NOMEM, KHUB_E_INVAL (max_tokens too small for the special tokens). */
KHUB_API int khub_tokenizer_encode(khub_tokens *out, const khub_tokenizer *tokenizer, const char *text,
                                   size_t length, size_t max_tokens, khub_error *err);
KHUB_API void khub_tokens_free(khub_tokens *tokens); /* NULL and zeroed are no-ops */

#ifdef __cplusplus
}
#endif

#endif
