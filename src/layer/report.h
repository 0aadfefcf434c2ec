/* What became of each slot, as a value of its own. */
#ifndef LAYER_REPORT_H
#define LAYER_REPORT_H

#include "layer/decision.h"

/* *out is the caller's (khub_report_free). KHUB_E_NOMEM. */
int khub__report_make(khub_report **out, khub__decision *decision, khub_error *err);

#endif
