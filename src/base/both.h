/* Two pieces of work side by side. One source per operating system. */
#ifndef BASE_BOTH_H
#define BASE_BOTH_H

/* Calls other(its) on a thread of its own, which no signal is handled on, and mine(own) on this one, and
 * comes back when both did. Where no thread is to be had, one after the other. */
void khub__both(void (*other)(void *), void *its, void (*mine)(void *), void *own);

#endif
