/* Reports of kernelize, printed. */
#ifndef CLI_REPORT_H
#define CLI_REPORT_H

#include "cli.h"

#include <khub/layer.h>

/* A line for all slots that are alike but for numbers in their paths. `reason` (may be NULL) is said in place
 * of the report's own wherever the standard function stayed. */
void cli_report_table(FILE *to, const khub_report *report, const char *reason);

/* One line of JSON with every slot. */
void cli_report_json(FILE *to, const khub_report *report, const char *reason);

/* What comes after the calls: in which slots a kernel failed and the standard function did the call again. A
 * line for all that are alike (none where nothing failed); one line of JSON with each such slot. */
void cli_report_retried(FILE *to, const khub_layers *layers);
void cli_report_retried_json(FILE *to, const khub_layers *layers);

#endif
