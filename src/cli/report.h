/* Reports of kernelize, printed. */
#ifndef CLI_REPORT_H
#define CLI_REPORT_H

#include "cli.h"

/* A line for all slots that are alike but for numbers in their paths. `reason` (may be NULL) is said in place
 * of the report's own wherever the standard function stayed. */
void cli_report_table(FILE *to, const khub_report *report, const char *reason);

/* One line of JSON with every slot. */
void cli_report_json(FILE *to, const khub_report *report, const char *reason);

#endif
