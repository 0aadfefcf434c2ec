/* What sentence-transformers adds to an encoder: where it is, how long a text may be, how tokens become one
 * vector. */
#ifndef MODEL_SENTENCE_H
#define MODEL_SENTENCE_H

#include <khub/error.h>

typedef enum khub__pooling { KHUB__POOL_MEAN, KHUB__POOL_CLS } khub__pooling;

typedef struct khub__sentence {
    char *encoder; /* directory of the encoder; owned */
    khub__pooling pooling;
    int normalize;      /* 1: the vector is divided by its length */
    int64_t width;      /* that the pooling expects; 0: doesn't say */
    int64_t max_tokens; /* 0: doesn't say */
} khub__sentence;

/* Reads modules.json and the files it names in `directory`; without a modules.json the model is an encoder
 * alone, whose tokens are averaged, as sentence-transformers does. KHUB_E_UNSUPPORTED (a module or pooling,
 * by its name), KHUB_E_FORMAT, KHUB_E_NOTFOUND (the directory, a file that modules.json needs), KHUB_E_IO,
 * KHUB_E_NOMEM. */
int khub__sentence_read(khub__sentence *out, const char *directory, khub_error *err);
void khub__sentence_free(khub__sentence *sentence); /* zeroed is a no-op */

#endif
