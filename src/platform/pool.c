#include "platform/pool.h"

#include "base/memory.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

enum { BLOCK_BYTES = 4000, ALIGN = 16 };

struct khub__pool_block {
    struct khub__pool_block *next;
    size_t used, size; /* of the bytes behind this header */
    _Alignas(ALIGN) char bytes[];
};

static struct khub__pool_block *new_block(khub__pool *pool, size_t need)
{
    size_t size = need > BLOCK_BYTES ? need : BLOCK_BYTES;
    struct khub__pool_block *block = khub__malloc(sizeof(*block) + size);
    if (!block) return NULL;
    block->used = 0;
    block->size = size;
    block->next = pool->blocks;
    pool->blocks = block;
    return block;
}

void *khub__pool_room(khub__pool *pool, size_t count, size_t size)
{
    size_t limit = SIZE_MAX / 2;
    struct khub__pool_block *block = pool->blocks;
    if (!size || count > limit / size) {
        pool->failed |= count != 0;
        return NULL;
    }
    size_t need = (count * size + ALIGN - 1) / ALIGN * ALIGN;
    if (!block || block->size - block->used < need) block = new_block(pool, need);
    if (!block) {
        pool->failed = 1;
        return NULL;
    }
    void *taken = block->bytes + block->used;
    block->used += need;
    return taken;
}

void *khub__pool_take(khub__pool *pool, size_t count, size_t size)
{
    void *taken = khub__pool_room(pool, count, size);
    return taken ? memset(taken, 0, count * size) : NULL;
}

const char *khub__pool_text(khub__pool *pool, const char *text)
{
    if (!text) return NULL;
    size_t bytes = strlen(text) + 1;
    char *copy = khub__pool_room(pool, bytes, 1);
    return copy ? memcpy(copy, text, bytes) : NULL;
}

const char *khub__pool_textf(khub__pool *pool, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vsnprintf(NULL, 0, format, args);
    va_end(args);
    char *text = n < 0 ? NULL : khub__pool_room(pool, (size_t)n + 1, 1);
    if (!text) {
        pool->failed = 1;
        return NULL;
    }
    va_start(args, format);
    vsnprintf(text, (size_t)n + 1, format, args);
    va_end(args);
    return text;
}

void khub__pool_free(khub__pool *pool)
{
    while (pool->blocks) {
        struct khub__pool_block *next = pool->blocks->next;
        khub__free(pool->blocks);
        pool->blocks = next;
    }
    pool->failed = 0;
}
