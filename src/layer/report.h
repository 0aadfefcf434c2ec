/* What became of each slot, as a value of its own. */
#ifndef LAYER_REPORT_H
#define LAYER_REPORT_H

#include <khub/layer.h>

struct khub_report {
    khub_slot_report *slots; /* strings owned by the report */
    size_t count, filled;
};

/* Room for `count` slots, all empty. NULL: no memory. */
khub_report *khub__report_new(size_t count);

/* Adds a line for the slot; the strings are copied, NULL stays NULL. KHUB_E_NOMEM. */
int khub__report_add(khub_report *report, const khub_slot_report *line, khub_error *err);

#endif
