/* khub embed --shadow: what kernels change, in each slot and in the embeddings. */
#ifndef CLI_SHADOW_H
#define CLI_SHADOW_H

#include "cli.h"

#include <khub/model.h>

/* Shadow mode of one command. {0} is off. */
typedef struct cli_shadow {
    const char *pattern; /* of the slots' paths; "": all; NULL: off */
    khub_model *model;
    khub_comparison output; /* of embeddings: with the kernels in these slots (a), without (b) */
    float *rows;            /* with the kernels */
    size_t capacity;        /* in texts */
} cli_shadow;

/* Switches shadow mode on in the slots of `pattern`, once kernels are in them. */
int cli_shadow_begin(cli_shadow *shadow, khub_model *model, khub_error *err);

/* Embeds the texts again with the kernels, and compares with what shadow mode gave: (count, width) rows. */
int cli_shadow_embed(cli_shadow *shadow, const char *const *texts, const size_t *lengths, size_t count,
                     const float *standard, khub_error *err);

/* A line for all slots that are alike but for numbers in their paths, and one for the embeddings. */
void cli_shadow_table(FILE *to, const cli_shadow *shadow);

/* One line of JSON with every slot. */
void cli_shadow_json(FILE *to, const cli_shadow *shadow);

void cli_shadow_end(cli_shadow *shadow);

#endif
