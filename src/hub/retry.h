/* When a request is worth asking again, and how long to wait before. */
#ifndef HUB_RETRY_H
#define HUB_RETRY_H

#include "hub/answer.h"

/* How often a request that fails is sent again, unless KHUB_RETRIES says another number; and at most. */
enum { KHUB__RETRIES = 5, KHUB__RETRIES_MAX = 100 };

/* 1 for what may go away by itself: 408, 429, 500, 502, 503, 504, and 0 (the connection failed). */
int khub__is_passing(int status);

/* How long to wait before try `retry` (1 is the first after the failure): 1 s doubling to 8 s, or what the
 * answer asks for and 1 s more. -1: it asks for more than khub waits. */
int64_t khub__retry_wait_ms(const khub__answer *answer, unsigned retry);

/* Every wait goes through this function; a test may put another in its place, before any client is opened,
 * to see the waits and make them short. */
extern uint32_t (*khub__retry_wait)(uint32_t wait_ms);

#endif
