/* The report of khub_compare under way: in memory that the process which asks and those which try have in
 * common. */
#ifndef MEASURE_REPORT_H
#define MEASURE_REPORT_H

#include "measure/trial.h"

enum { KHUB__COMPARE_LAYERS = 64 };

struct khub_compare_report {
    size_t count;
    int listed; /* the layers are known */
    int status; /* of the child that came to its end, with its words */
    khub_error why;
    khub__progress progress;
    unsigned deaths; /* of processes, in the layer at work */
    khub_compare_layer layers[KHUB__COMPARE_LAYERS];
};

/* Notes how a child ended that didn't come to its end, and where the next one goes on. KHUB_E_LOAD: it ended
 * before any case. */
int khub__report_ended(khub_compare_report *report, const khub__end *end, khub_error *err);

/* A child came back because its device was lost, of which it told: where the next one goes on. */
void khub__report_lost(khub_compare_report *report);

/* Comes to the verdicts of one layer, whose cases have been tried. Once. */
void khub__report_judge(khub_compare_layer *layer);

#endif
