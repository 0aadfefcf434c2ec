/* Which token has which id, both ways. */
#ifndef MODEL_VOCABULARY_H
#define MODEL_VOCABULARY_H

#include <khub/error.h>

/* How many ids a file of that many bytes may use. It has room for fewer tokens, and an id far beyond their
 * number would only make us reserve memory for nothing. */
size_t khub__vocabulary_limit(size_t file_bytes);

typedef struct khub__vocabulary_token {
    const char *text; /* NUL-terminated, borrowed; NULL: the id isn't used */
    uint32_t length;
} khub__vocabulary_token;

typedef struct khub__vocabulary_slot {
    uint32_t hash;
    int32_t id; /* -1: empty */
} khub__vocabulary_slot;

/* {.limit = n} is empty. Tokens are set first, then indexed, then found; tokens set after that have an id and
 * can't be found. */
typedef struct khub__vocabulary {
    khub__vocabulary_token *tokens; /* by id */
    size_t size, capacity;          /* size: the highest id and 1 */
    size_t limit;                   /* ids are below it */
    size_t longest;                 /* bytes, of the tokens that can be found */
    khub__vocabulary_slot *slots;   /* a power of two, at most half full */
    uint32_t mask;
} khub__vocabulary;

/* Gives an id its token; `text` stays the caller's and must outlive the vocabulary. `file` is for messages.
 * KHUB_E_FORMAT (the id is taken, or too high), KHUB_E_NOMEM. */
int khub__vocabulary_set(khub__vocabulary *vocabulary, const char *text, size_t length, int64_t id,
                         const char *file, khub_error *err);

/* Makes the tokens set so far findable. Of equal ones the last counts when `repeats` is set. KHUB_E_FORMAT: a
 * token twice when it isn't, or so many with one hash that it must be on purpose. */
int khub__vocabulary_index(khub__vocabulary *vocabulary, int repeats, const char *file, khub_error *err);

/* Hash of a text that is given in pieces: start with this, then one call per piece. */
enum { KHUB__HASH_START = 0x3C6EF372 };
static inline uint32_t khub__hash_byte(uint32_t hash, char byte)
{
    hash = (hash ^ (unsigned char)byte) * 0x9E3779B1u; /* 2^32 divided by the golden ratio, a prime near it */
    return hash ^ hash >> 15;
}
uint32_t khub__hash(uint32_t hash, const char *text, size_t length);

/* The id of the token that is `head` and then `text`, whose hash is given; -1: there is none. */
int32_t khub__vocabulary_find(const khub__vocabulary *vocabulary, uint32_t hash, const char *head,
                              size_t head_length, const char *text, size_t length);

/* The id of a token; -1: there is none. */
int32_t khub__vocabulary_id(const khub__vocabulary *vocabulary, const char *token, size_t length);

void khub__vocabulary_free(khub__vocabulary *vocabulary);

#endif
