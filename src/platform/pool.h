/* Memory that belongs to one object and is freed with it, in one go. */
#ifndef PLATFORM_POOL_H
#define PLATFORM_POOL_H

#include <khub/export.h>

struct khub__pool_block;

/* {0} is an empty pool. */
typedef struct khub__pool {
    struct khub__pool_block *blocks;
    int failed; /* a request found no memory: check it once, at the end */
} khub__pool;

/* Zeroed and aligned for anything; NULL and `failed` set when there is no memory. */
void *khub__pool_take(khub__pool *pool, size_t count, size_t size);

/* The same, of any content. */
void *khub__pool_room(khub__pool *pool, size_t count, size_t size);

/* Copies; NULL for NULL. */
const char *khub__pool_text(khub__pool *pool, const char *text);
const char *khub__pool_textf(khub__pool *pool, const char *format, ...) KHUB_PRINTF(2, 3);

void khub__pool_free(khub__pool *pool);

#endif
