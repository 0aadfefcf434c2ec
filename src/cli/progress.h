/* The bar of a fetch: one line on a terminal, nothing elsewhere. */
#ifndef CLI_PROGRESS_H
#define CLI_PROGRESS_H

#include "cli.h"

/* Draws at most ten times a second, and only what lasts longer than a quarter of a second. */
void cli_progress_draw(const khub_progress *progress);

/* Takes the line away, if one was drawn. */
void cli_progress_clear(void);

#endif
