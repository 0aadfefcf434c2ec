/* The tensors of a model, in one file or in several. */
#ifndef MODEL_CHECKPOINT_H
#define MODEL_CHECKPOINT_H

#include "model/safetensors.h"
#include "model/shards.h"

/* {0} is closed. */
typedef struct khub__checkpoint {
    char *path;                /* of model.safetensors, or of the index; owned */
    khub__shards shards;       /* empty for one file */
    khub__safetensors **files; /* each mapped once, by the number that the index gives it; owned */
    size_t count;
} khub__checkpoint;

/* Opens DIRECTORY/model.safetensors; where there is none, model.safetensors.index.json and the files that it
 * names, each of which must hold the tensors that the index says it holds. KHUB_E_NOTFOUND (no such file, or
 * one that the index names), KHUB_E_FORMAT (file, tensor, fact), and as khub__safetensors_open. */
int khub__checkpoint_open(khub__checkpoint *out, const char *directory, khub_error *err);
void khub__checkpoint_close(khub__checkpoint *checkpoint);

/* NULL when there is none of that name: with an index, what the index doesn't name. *path (may be NULL) is
 * the file that holds it, or whose word it is that it isn't there. */
const khub__stored *khub__checkpoint_find(const khub__checkpoint *checkpoint, const char *name,
                                          const char **path);

/* khub__safetensors_relax for all files. */
void khub__checkpoint_relax(const khub__checkpoint *checkpoint);

#endif
