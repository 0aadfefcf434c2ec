/* Which build of one repository each of many machines gets. */
#ifndef CLI_MATRIX_H
#define CLI_MATRIX_H

#include "hub.h"

typedef struct cli_matrix_row {
    const char *name; /* of the platform, as --platform takes it */
    khub_platform *platform;
    khub_choice *choice;
} cli_matrix_row;

typedef struct cli_matrix {
    const char *repository; /* as it was given */
    cli_matrix_row *rows;
    size_t count;
} cli_matrix;

/* Of a machine that gets none: the build that came furthest through the rules. NULL: there are no builds. */
const khub_decision *cli_matrix_nearest(const khub_choice *choice);

/* Machines that get a build. */
size_t cli_matrix_served(const cli_matrix *matrix);

/* A chart of a cli_matrix (svg.h): machines down, builds across. */
void cli_matrix_chart(FILE *to, const void *matrix);

#endif
