/* config.json: the sizes of a BERT encoder. */
#ifndef MODEL_CONFIG_H
#define MODEL_CONFIG_H

#include <khub/error.h>

typedef struct khub__config {
    int64_t hidden, layers, heads, intermediate, vocabulary, positions, token_types;
    double eps;             /* of the LayerNorms */
    const char *activation; /* its layer of docs/layers.md: "GeLU" */
} khub__config;

/* Reads and checks `path`. KHUB_E_UNSUPPORTED (architecture, activation, kind of positions, by their names),
 * KHUB_E_FORMAT (missing or contradictory fields), KHUB_E_NOTFOUND, KHUB_E_IO, KHUB_E_NOMEM. */
int khub__config_read(khub__config *out, const char *path, khub_error *err);

#endif
