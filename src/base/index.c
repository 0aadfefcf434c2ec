#include "base/index.h"

#include "base/memory.h"

enum { FIRST_PLACES = 16, MAX_PLACES = 1 << 30 };

/* FNV-1a: its two constants are those of its authors. */
static uint32_t hash_of(const char *text)
{
    uint32_t hash = UINT32_C(2166136261);
    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * UINT32_C(16777619);
    return hash;
}

/* Where the text is, or the free place where it belongs. There is always one. */
static struct khub__index_place *place_of(const khub__index *index, const char *text, uint32_t hash)
{
    size_t at = hash & (index->capacity - 1);
    while (index->places[at].text &&
           (index->places[at].hash != hash || strcmp(index->places[at].text, text) != 0))
        at = (at + 1) & (index->capacity - 1);
    return &index->places[at];
}

int64_t khub__index_find(const khub__index *index, const char *text)
{
    if (!index->count) return -1;
    const struct khub__index_place *place = place_of(index, text, hash_of(text));
    return place->text ? (int64_t)place->number : -1;
}

static int make_room(khub__index *index)
{
    if (2 * (index->count + 1) <= index->capacity) return 0;
    khub__index wider = {.capacity = index->capacity ? 2 * index->capacity : FIRST_PLACES,
                         .count = index->count};
    if (wider.capacity > MAX_PLACES) return -1;
    wider.places = khub__calloc(wider.capacity, sizeof(*wider.places));
    if (!wider.places) return -1;
    for (size_t i = 0; i < index->capacity; i++)
        if (index->places[i].text)
            *place_of(&wider, index->places[i].text, index->places[i].hash) = index->places[i];
    khub__free(index->places);
    *index = wider;
    return 0;
}

int khub__index_add(khub__index *index, const char *text, uint32_t number)
{
    if (make_room(index) != 0) return -1;
    uint32_t hash = hash_of(text);
    *place_of(index, text, hash) = (struct khub__index_place){text, hash, number};
    index->count++;
    return 0;
}

void khub__index_free(khub__index *index)
{
    khub__free(index->places);
    memset(index, 0, sizeof(*index));
}
