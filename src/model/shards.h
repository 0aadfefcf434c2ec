/* The index of weights in several files, "model.safetensors.index.json": which file holds which tensor. */
#ifndef MODEL_SHARDS_H
#define MODEL_SHARDS_H

#include "base/index.h"

#include <khub/error.h>

#include <jansson.h>

/* An index; {0} is empty. Names are the index's, in the order in which it mentions them first. */
typedef struct khub__shards {
    json_t *root;
    const json_t *map;   /* tensor -> name of its file; of root */
    const char **names;  /* of the files: one plain name each, never a path */
    const char **tensor; /* the first that the file is said to hold, for messages */
    size_t count;
    khub__index numbers; /* of the files by name */
} khub__shards;

/* The index at `path`. KHUB_E_NOTFOUND, KHUB_E_IO, KHUB_E_FORMAT (the field and the fact), KHUB_E_NOMEM;
 * nothing is to be freed then. */
int khub__shards_read(khub__shards *out, const char *path, khub_error *err);

/* The same from `length` bytes of text; `path` stands in messages. */
int khub__shards_parse(khub__shards *out, const char *text, size_t length, const char *path, khub_error *err);

void khub__shards_free(khub__shards *shards);

/* The number of the file that holds a tensor; -1: the index doesn't name it. */
int64_t khub__shards_find(const khub__shards *shards, const char *tensor);

#endif
