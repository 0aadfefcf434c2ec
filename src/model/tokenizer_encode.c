/* From a text to its ids. */
#include "model/tokenizer.h"

#include "base/error.h"
#include "base/memory.h"
#include "model/unicode.h"
#include "model/utf8.h"

/* Bytes of text, at least, that are normalized at once: what is beyond max_tokens costs nothing. */
enum { CHUNK = 4096 };

enum { STOP_ENOUGH = 1, STOP_MEMORY = -1 };

typedef struct encoder {
    const khub_tokenizer *tokenizer;
    khub__ids ids;
    size_t limit; /* more ids than that needn't be found */
    khub__normalized text;
} encoder;

static int go_on(const encoder *e)
{
    return e->ids.count > e->limit ? STOP_ENOUGH : 0;
}

static int take_token(void *user, int32_t id)
{
    encoder *e = user;
    return khub__ids_add(&e->ids, id) != 0 ? STOP_MEMORY : go_on(e);
}

static int class_of(const khub_tokenizer *tokenizer, const char **at)
{
    unsigned char byte = (unsigned char)**at;
    if (byte < 0x80) {
        ++*at;
        return tokenizer->ascii_class[byte];
    }
    uint32_t c = khub__utf8_next(at);
    return khub__char_is_space(c)         ? KHUB__WORD_SPACE
           : khub__char_is_punctuation(c) ? KHUB__WORD_PUNCTUATION
                                          : KHUB__WORD_LETTER;
}

static int take_word(encoder *e, const char *word, const char *end, size_t characters)
{
    if (word == end) return 0;
    if (khub__wordpiece_add(&e->ids, &e->tokenizer->wordpiece, word, (size_t)(end - word), characters) != 0)
        return STOP_MEMORY;
    return go_on(e);
}

/* Normalized text without added tokens: words between white space, punctuation by itself. */
static int take_words(void *user, const char *text, size_t length)
{
    encoder *e = user;
    const char *end = text + length, *word = text;
    size_t characters = 0;
    int rc = 0;
    for (const char *at = text; rc == 0 && at < end;) {
        const char *here = at;
        int class = class_of(e->tokenizer, &at);
        if (class == KHUB__WORD_LETTER) {
            characters++;
            continue;
        }
        rc = take_word(e, word, here, characters);
        if (rc == 0 && class == KHUB__WORD_PUNCTUATION) rc = take_word(e, here, at, 1);
        word = at;
        characters = 0;
    }
    return rc ? rc : take_word(e, word, end, characters);
}

/* Where the chunk at the start of the text ends. White space of ASCII parts words, and marks that change
 * places too. Added tokens in normalized form may hold white space, so then the text stays whole. */
static size_t chunk_length(const encoder *e, const char *text, size_t length)
{
    if (e->tokenizer->normalized.count) return length;
    for (size_t n = CHUNK; n < length; n++)
        if (text[n] == ' ' || text[n] == '\n' || text[n] == '\t' || text[n] == '\r') return n;
    return length;
}

/* Text as it came, without the added tokens that are looked for in it. */
static int take_piece(void *user, const char *text, size_t length)
{
    encoder *e = user;
    const khub__added_visitor visitor = {take_words, take_token, e};
    int rc = 0;
    while (rc == 0 && length) {
        size_t n = chunk_length(e, text, length);
        if (khub__normalize(&e->text, &e->tokenizer->normalizer, text, n) != 0) return STOP_MEMORY;
        if (e->text.length)
            rc = khub__added_split(&e->tokenizer->normalized, e->text.data, e->text.length, &visitor);
        text += n;
        length -= n;
    }
    return rc;
}

static int add_all(khub__ids *to, const khub__ids *from)
{
    for (size_t i = 0; i < from->count; i++)
        if (khub__ids_add(to, from->items[i]) != 0) return -1;
    return 0;
}

/* Valid text. 0 or -1. */
static int encode(encoder *e, khub_tokens *out, const char *text, size_t length)
{
    const khub_tokenizer *tokenizer = e->tokenizer;
    const khub__added_visitor visitor = {take_piece, take_token, e};
    if (add_all(&e->ids, &tokenizer->before) != 0) return -1;
    if (khub__added_split(&tokenizer->raw, text, length, &visitor) == STOP_MEMORY) return -1;
    out->truncated = e->ids.count > e->limit;
    if (out->truncated) e->ids.count = e->limit;
    return add_all(&e->ids, &tokenizer->after);
}

int khub_tokenizer_encode(khub_tokens *out, const khub_tokenizer *tokenizer, const char *text, size_t length,
                          size_t max_tokens, khub_error *err)
{
    int missing = khub__given("khub_tokenizer_encode", out && tokenizer && (text || !length), err);
    if (out) memset(out, 0, sizeof(*out));
    if (missing != KHUB_OK) return missing;
    size_t around = tokenizer->before.count + tokenizer->after.count;
    if (max_tokens && max_tokens < around)
        return khub__fail(err, KHUB_E_INVAL, "max_tokens is %zu, the special tokens alone are %zu",
                          max_tokens, around);
    encoder e = {.tokenizer = tokenizer,
                 .limit = max_tokens ? max_tokens - tokenizer->after.count : SIZE_MAX};
    char *repaired = NULL;
    int rc = 0;
    if (khub__utf8_valid(text, length) < length) {
        rc = khub__utf8_repair(&repaired, &length, text, length);
        text = repaired;
        out->invalid_utf8 = 1;
    }
    if (rc == 0) rc = encode(&e, out, text, length);
    khub__free(repaired);
    khub__normalized_free(&e.text);
    if (rc == 0) {
        out->ids = e.ids.items;
        out->count = e.ids.count;
        return KHUB_OK;
    }
    khub__free(e.ids.items);
    memset(out, 0, sizeof(*out));
    return khub__fail_memory(err, "tokenizing a text");
}

void khub_tokens_free(khub_tokens *tokens)
{
    if (!tokens) return;
    khub__free(tokens->ids);
    memset(tokens, 0, sizeof(*tokens));
}
