/* A report as it grows. */
#ifndef PUBLISH_FINDINGS_H
#define PUBLISH_FINDINGS_H

#include "publish/names.h"

#include <khub/check.h>

struct khub_check_report {
    khub_check_finding *findings;
    size_t count, capacity;
    const char *file; /* borrowed: what the next findings are about */
    int failed;       /* no memory was found for one; later ones are lost too */
};

/* Adds a finding about report->file; copies all it is given but `about`, which is static. `value` and `items`
 * may be NULL. */
void khub__finding(khub_check_report *report, const char *about, khub_check_level level, const char *value,
                   const khub__names *items, const char *format, ...) KHUB_PRINTF(6, 7);

/* The same with the names in words at the end: "…: a, b and 4 more". Adds nothing when there are none. */
void khub__finding_of(khub_check_report *report, const char *about, khub_check_level level, const char *value,
                      const khub__names *items, const char *format, ...) KHUB_PRINTF(6, 7);

#endif
