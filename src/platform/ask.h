/* Running khub-probe: one process for each driver library, side by side. */
#ifndef PLATFORM_ASK_H
#define PLATFORM_ASK_H

#include "base/text.h"

typedef enum khub__ask_end {
    KHUB__ASK_ANSWERED,    /* `answer` has its JSON */
    KHUB__ASK_TIMED_OUT,   /* it was ended */
    KHUB__ASK_SIGNALLED,   /* `detail` is the signal */
    KHUB__ASK_EXITED,      /* without an answer; `detail` is the exit status, -1: unknown */
    KHUB__ASK_NOT_STARTED, /* `detail` is errno */
    KHUB__ASK_BABBLED      /* it wrote more than an answer can be */
} khub__ask_end;

/* One question. The caller sets the first two and frees `output` (khub__text_free). */
typedef struct khub__ask {
    const char *backend; /* "cuda" */
    const char *library; /* path of the driver's library */
    khub__ask_end end;
    int detail;
    const char *answer; /* points into `output` */
    char doing[64];     /* what it was at when it ended: "cuInit"; empty: nothing yet */
    khub__text output;

    /* Of the process. */
    long pid;
    int pipe;
} khub__ask;

/* Asks all at once and waits for each at most timeout_ms. No process is left behind, but one that the system
 * itself can't end. `program` is khub-probe's path. */
void khub__ask_all(khub__ask *asks, size_t count, const char *program, uint32_t timeout_ms);

#endif
