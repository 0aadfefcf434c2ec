/* Tokens that are found in the text as a whole, before it is cut into words: "[SEP]", "[MASK]". */
#ifndef MODEL_ADDED_H
#define MODEL_ADDED_H

#include <stddef.h>
#include <stdint.h>

typedef struct khub__added_token {
    char *text;           /* what is looked for; owned */
    size_t length, order; /* of two with the same text the lower order counts */
    int32_t id;
    unsigned single_word : 1;        /* only where no word goes on before or after it */
    unsigned lstrip : 1, rstrip : 1; /* takes the white space before or after it along */
} khub__added_token;

/* {0} is empty. */
typedef struct khub__added {
    khub__added_token *tokens; /* sorted by their bytes once indexed */
    size_t count, capacity;
    size_t first[257]; /* tokens whose first byte is b: first[b] to first[b + 1] */
} khub__added;

/* Takes over token->text, also when it fails. 0; -1: no memory. */
int khub__added_put(khub__added *added, khub__added_token token);

/* Sorts; call it once, after the last _put. */
void khub__added_index(khub__added *added);

/* What a text is made of. Both return 0 to go on; anything else ends the split, which returns it. */
typedef struct khub__added_visitor {
    int (*piece)(void *user, const char *text, size_t length); /* without added tokens; not empty */
    int (*token)(void *user, int32_t id);
    void *user;
} khub__added_visitor;

/* Takes valid UTF-8 apart: of the tokens that match, the one that starts first, of these the longest. */
int khub__added_split(const khub__added *added, const char *text, size_t length,
                      const khub__added_visitor *visitor);

void khub__added_free(khub__added *added);

#endif
