#include "layer/shelf.h"

#include "base/memory.h"
#include "base/pages.h"

/* A block's bytes, unless one weight has more: what isn't touched costs nothing. */
enum { BLOCK = 8 * KHUB__HUGE_PAGE, ALIGNMENT = 64 };

struct khub__shelf {
    size_t uses, size, used;
    char *start;
    void *memory;
};

static size_t round_up(size_t bytes, size_t unit)
{
    return (bytes + unit - 1) / unit * unit;
}

static khub__shelf *make(size_t bytes)
{
    if (bytes > SIZE_MAX / 2) return NULL;
    khub__shelf *shelf = khub__calloc(1, sizeof(*shelf));
    if (!shelf) return NULL;
    shelf->uses = 1;
    shelf->size = round_up(bytes > BLOCK ? bytes : BLOCK, KHUB__HUGE_PAGE);
    shelf->memory = khub__malloc(shelf->size + KHUB__HUGE_PAGE);
    if (!shelf->memory) return khub__free(shelf), NULL;
    shelf->start = (char *)round_up((uintptr_t)shelf->memory, KHUB__HUGE_PAGE);
    khub__pages_be_huge(shelf->start, shelf->size);
    return shelf;
}

void *khub__shelf_take(khub__shelf **on, khub__shelf **last, size_t bytes)
{
    khub__shelf *shelf = *last;
    if (!shelf || bytes > shelf->size - shelf->used) {
        shelf = make(bytes);
        if (!shelf) return NULL;
        khub__shelf_give_up(*last);
        *last = shelf;
    }
    void *memory = shelf->start + shelf->used;
    shelf->used = round_up(shelf->used + bytes, ALIGNMENT);
    if (shelf->used > shelf->size) shelf->used = shelf->size;
    shelf->uses++;
    *on = shelf;
    return memory;
}

void khub__shelf_give_up(khub__shelf *shelf)
{
    if (!shelf || --shelf->uses) return;
    khub__free(shelf->memory);
    khub__free(shelf);
}
