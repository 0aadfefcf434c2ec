#include "model/vocabulary.h"

#include "base/error.h"
#include "base/memory.h"

/* Steps of one search while indexing; a vocabulary at most half full needs a dozen. */
enum { PROBES_MAX = 1000 };

size_t khub__vocabulary_limit(size_t file_bytes)
{
    enum { LEAST = 1 << 16, MOST = 1 << 22 };
    return file_bytes < LEAST ? LEAST : file_bytes < MOST ? file_bytes : MOST;
}

int khub__vocabulary_set(khub__vocabulary *vocabulary, const char *text, size_t length, int64_t id,
                         const char *file, khub_error *err)
{
    if (id < 0 || (uint64_t)id >= vocabulary->limit)
        return khub__fail(err, KHUB_E_FORMAT, "%s: token \"%s\" has id %lld, ids are 0 to %zu", file, text,
                          (long long)id, vocabulary->limit - 1);
    size_t before = vocabulary->capacity;
    if (khub__grow((void **)&vocabulary->tokens, &vocabulary->capacity, (size_t)id + 1,
                   sizeof(*vocabulary->tokens), vocabulary->limit) != 0)
        return khub__fail_memory(err, "reading a vocabulary");
    memset(vocabulary->tokens + before, 0, (vocabulary->capacity - before) * sizeof(*vocabulary->tokens));
    khub__vocabulary_token *token = &vocabulary->tokens[id];
    if (token->text)
        return khub__fail(err, KHUB_E_FORMAT, "%s: tokens \"%s\" and \"%s\" both have id %lld", file,
                          token->text, text, (long long)id);
    token->text = text;
    token->length = (uint32_t)length;
    if ((size_t)id >= vocabulary->size) vocabulary->size = (size_t)id + 1;
    return KHUB_OK;
}

uint32_t khub__hash(uint32_t hash, const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++)
        hash = khub__hash_byte(hash, text[i]);
    return hash;
}

static int is_token(const khub__vocabulary_token *token, const char *head, size_t head_length,
                    const char *text, size_t length)
{
    return token->length == head_length + length && !memcmp(token->text, head, head_length) &&
           !memcmp(token->text + head_length, text, length);
}

/* The slot that has the token or is free for it; NULL after too many steps. */
static khub__vocabulary_slot *slot_for(const khub__vocabulary *vocabulary,
                                       const khub__vocabulary_token *token, uint32_t hash)
{
    for (uint32_t i = 0; i < PROBES_MAX; i++) {
        khub__vocabulary_slot *slot = &vocabulary->slots[(hash + i) & vocabulary->mask];
        if (slot->id < 0) return slot;
        if (slot->hash == hash && is_token(&vocabulary->tokens[slot->id], "", 0, token->text, token->length))
            return slot;
    }
    return NULL;
}

static int index_token(khub__vocabulary *vocabulary, int32_t id, int repeats, const char *file,
                       khub_error *err)
{
    const khub__vocabulary_token *token = &vocabulary->tokens[id];
    uint32_t hash = khub__hash(KHUB__HASH_START, token->text, token->length);
    khub__vocabulary_slot *slot = slot_for(vocabulary, token, hash);
    if (!slot)
        return khub__fail(err, KHUB_E_FORMAT, "%s: more than %d tokens collide with \"%s\"", file, PROBES_MAX,
                          token->text);
    if (slot->id >= 0 && !repeats)
        return khub__fail(err, KHUB_E_FORMAT, "%s: token \"%s\" has ids %d and %d", file, token->text,
                          (int)slot->id, (int)id);
    *slot = (khub__vocabulary_slot){hash, id};
    if (token->length > vocabulary->longest) vocabulary->longest = token->length;
    return KHUB_OK;
}

int khub__vocabulary_index(khub__vocabulary *vocabulary, int repeats, const char *file, khub_error *err)
{
    size_t slots = 16;
    while (slots < 2 * vocabulary->size)
        slots *= 2;
    vocabulary->slots = khub__malloc(slots * sizeof(*vocabulary->slots));
    if (!vocabulary->slots) return khub__fail_memory(err, "reading a vocabulary");
    memset(vocabulary->slots, 0xFF, slots * sizeof(*vocabulary->slots)); /* every id -1 */
    vocabulary->mask = (uint32_t)(slots - 1);
    int rc = KHUB_OK;
    for (size_t id = 0; rc == KHUB_OK && id < vocabulary->size; id++)
        if (vocabulary->tokens[id].text) rc = index_token(vocabulary, (int32_t)id, repeats, file, err);
    return rc;
}

int32_t khub__vocabulary_find(const khub__vocabulary *vocabulary, uint32_t hash, const char *head,
                              size_t head_length, const char *text, size_t length)
{
    for (uint32_t i = hash;; i++) {
        khub__vocabulary_slot slot = vocabulary->slots[i & vocabulary->mask];
        if (slot.id < 0) return -1;
        if (slot.hash == hash && is_token(&vocabulary->tokens[slot.id], head, head_length, text, length))
            return slot.id;
    }
}

int32_t khub__vocabulary_id(const khub__vocabulary *vocabulary, const char *token, size_t length)
{
    return khub__vocabulary_find(vocabulary, khub__hash(KHUB__HASH_START, token, length), "", 0, token,
                                 length);
}

void khub__vocabulary_free(khub__vocabulary *vocabulary)
{
    khub__free(vocabulary->tokens);
    khub__free(vocabulary->slots);
    memset(vocabulary, 0, sizeof(*vocabulary));
}
