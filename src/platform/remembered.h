/* What drivers answered, remembered until the machine starts anew: a driver may take a second to begin, and
 * each process would wait for it. An answer counts for what it depends on, word for word: the start of the
 * system, this khub and its probe, the driver's file, the user with his groups, the variables that drivers
 * read, and the device files. One source per operating system. */
#ifndef PLATFORM_REMEMBERED_H
#define PLATFORM_REMEMBERED_H

#include "platform/ask.h"
#include "platform/pool.h"

/* What the answer to a question depends on, the pool's; NULL: that can't be known. `program` is khub-probe.
 */
const char *khub__answer_key(const khub__ask *ask, const char *program, khub__pool *pool);

/* 1: the question was answered before under this key (may be NULL), and is answered now. Files that another
 * user may write to, that were cut or are about something else are as if they weren't there. */
int khub__recall(khub__ask *ask, const char *key, khub__pool *pool);

/* Keeps its answer under the key. What can't be kept is asked again. */
void khub__remember(const khub__ask *ask, const char *key, khub__pool *pool);

#endif
