#include "model/wordpiece.h"

#include "base/memory.h"

void khub__wordpiece_prepare(khub__wordpiece *wordpiece, const char *prefix)
{
    wordpiece->prefix = prefix;
    wordpiece->prefix_length = strlen(prefix);
    wordpiece->prefix_hash = khub__hash(KHUB__HASH_START, prefix, wordpiece->prefix_length);
}

int khub__ids_add(khub__ids *ids, int32_t id)
{
    if (khub__grow((void **)&ids->items, &ids->capacity, ids->count + 1, sizeof(*ids->items), SIZE_MAX) != 0)
        return -1;
    ids->items[ids->count++] = id;
    return 0;
}

/* The longest token that is `head` and a start of `text`; -1: none. *taken is the length of that start. The
 * longest token bounds the search, so the work for a word is linear whatever max_characters is. */
static int32_t longest_start(const khub__vocabulary *vocabulary, uint32_t hash, const char *head,
                             size_t head_length, const char *text, size_t length, size_t *taken)
{
    int32_t found = -1;
    size_t room = vocabulary->longest > head_length ? vocabulary->longest - head_length : 0;
    size_t most = length < room ? length : room;
    for (size_t n = 1; n <= most; n++) {
        hash = khub__hash_byte(hash, text[n - 1]);
        if (n < length && ((unsigned char)text[n] & 0xC0) == 0x80) continue; /* within a character */
        int32_t id = khub__vocabulary_find(vocabulary, hash, head, head_length, text, n);
        if (id < 0) continue;
        found = id;
        *taken = n;
    }
    return found;
}

int khub__wordpiece_add(khub__ids *ids, const khub__wordpiece *wordpiece, const char *word, size_t length,
                        size_t characters)
{
    const khub__vocabulary *vocabulary = &wordpiece->vocabulary;
    if (characters > wordpiece->max_characters) return khub__ids_add(ids, wordpiece->unknown);
    int32_t whole = khub__vocabulary_id(vocabulary, word, length);
    if (whole >= 0) return khub__ids_add(ids, whole);
    size_t before = ids->count;
    for (size_t done = 0, taken = 0; done < length; done += taken) {
        int32_t id = done ? longest_start(vocabulary, wordpiece->prefix_hash, wordpiece->prefix,
                                          wordpiece->prefix_length, word + done, length - done, &taken)
                          : longest_start(vocabulary, KHUB__HASH_START, "", 0, word, length, &taken);
        if (id < 0) {
            ids->count = before;
            return khub__ids_add(ids, wordpiece->unknown);
        }
        if (khub__ids_add(ids, id) != 0) return -1;
    }
    return 0;
}
