#include "model/added.h"

#include "base/memory.h"
#include "model/unicode.h"
#include "model/utf8.h"

#include <stdlib.h>

int khub__added_put(khub__added *added, khub__added_token token)
{
    if (khub__grow((void **)&added->tokens, &added->capacity, added->count + 1, sizeof(*added->tokens),
                   SIZE_MAX) != 0) {
        khub__free(token.text);
        return -1;
    }
    added->tokens[added->count++] = token;
    return 0;
}

static int compare(const void *one, const void *other)
{
    const khub__added_token *a = one, *b = other;
    int difference = memcmp(a->text, b->text, a->length < b->length ? a->length : b->length);
    if (difference) return difference;
    if (a->length != b->length) return a->length < b->length ? -1 : 1;
    return a->order < b->order ? -1 : 1;
}

static int same_text(const khub__added_token *a, const khub__added_token *b)
{
    return a->length == b->length && !memcmp(a->text, b->text, a->length);
}

void khub__added_index(khub__added *added)
{
    if (added->count) qsort(added->tokens, added->count, sizeof(*added->tokens), compare);
    size_t kept = 0;
    for (size_t i = 0; i < added->count; i++) {
        if (kept && same_text(&added->tokens[kept - 1], &added->tokens[i]))
            khub__free(added->tokens[i].text);
        else
            added->tokens[kept++] = added->tokens[i];
    }
    added->count = kept;
    for (size_t byte = 0, i = 0; byte <= 256; byte++) {
        while (i < kept && (unsigned char)added->tokens[i].text[0] < byte)
            i++;
        added->first[byte] = i;
    }
}

/* The first of the sorted tokens from `low` to `high` (all longer than `at`) whose byte there isn't less. */
static size_t lower_bound(const khub__added_token *tokens, size_t low, size_t high, size_t at, unsigned byte)
{
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if ((unsigned char)tokens[middle].text[at] < byte)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The longest token at the start of the text; NULL: none. Narrows the sorted tokens byte by byte. */
static const khub__added_token *longest_start(const khub__added *added, const char *text, size_t length)
{
    const khub__added_token *found = NULL;
    unsigned byte = (unsigned char)text[0];
    size_t low = added->first[byte], high = added->first[byte + 1];
    for (size_t at = 1; low < high; at++) {
        if (added->tokens[low].length == at) found = &added->tokens[low++]; /* the shortest stands first */
        if (at == length) break;
        byte = (unsigned char)text[at];
        low = lower_bound(added->tokens, low, high, at, byte);
        high = lower_bound(added->tokens, low, high, at, byte + 1);
    }
    return found;
}

/* The first token at or after *at, which becomes its place; NULL: none. */
static const khub__added_token *find(const khub__added *added, const char *text, size_t length, size_t *at)
{
    for (size_t i = *at; i < length; i++) {
        unsigned byte = (unsigned char)text[i];
        if (added->first[byte] == added->first[byte + 1]) continue;
        const khub__added_token *token = longest_start(added, text + i, length - i);
        if (!token) continue;
        *at = i;
        return token;
    }
    return NULL;
}

static int stands_alone(const char *text, size_t length, size_t start, size_t stop)
{
    const char *next = text + stop;
    return (start == 0 || !khub__char_is_word(khub__utf8_last(text, text + start))) &&
           (stop == length || !khub__char_is_word(khub__utf8_next(&next)));
}

/* Where the white space begins that ends at `stop`, not before `from`. */
static size_t space_before(const char *text, size_t from, size_t stop)
{
    const char *at = text + stop;
    while (at > text + from) {
        const char *last = at - 1;
        while (last > text + from && ((unsigned char)*last & 0xC0) == 0x80)
            last--;
        const char *next = last;
        if (!khub__char_is_space(khub__utf8_next(&next))) break;
        at = last;
    }
    return (size_t)(at - text);
}

static size_t space_after(const char *text, size_t start, size_t length)
{
    const char *at = text + start;
    while (at < text + length) {
        const char *next = at;
        if (!khub__char_is_space(khub__utf8_next(&next))) break;
        at = next;
    }
    return (size_t)(at - text);
}

/* The search goes on behind a match even where the token took white space along: a token that starts with
 * white space is found in it, as Hugging Face's tokenizers find it. `from` is where the text begins that no
 * token has. */
int khub__added_split(const khub__added *added, const char *text, size_t length,
                      const khub__added_visitor *visitor)
{
    size_t from = 0, at = 0;
    int rc = 0;
    for (const khub__added_token *token; rc == 0 && (token = find(added, text, length, &at));) {
        size_t start = at, stop = at + token->length;
        at = stop;
        if (token->single_word && !stands_alone(text, length, start, stop)) continue;
        if (token->lstrip) start = space_before(text, from < start ? from : start, start);
        if (token->rstrip) stop = space_after(text, stop, length);
        if (from < start) rc = visitor->piece(visitor->user, text + from, start - from);
        if (rc == 0) rc = visitor->token(visitor->user, token->id);
        from = stop;
    }
    if (rc == 0 && from < length) rc = visitor->piece(visitor->user, text + from, length - from);
    return rc;
}

void khub__added_free(khub__added *added)
{
    for (size_t i = 0; i < added->count; i++)
        khub__free(added->tokens[i].text);
    khub__free(added->tokens);
    memset(added, 0, sizeof(*added));
}
