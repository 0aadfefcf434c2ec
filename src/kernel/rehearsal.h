/* Loading a library in a child process before it is loaded here: a constructor that crashes, throws or calls
 * exit() ends the child alone. Where the same library was loaded before, in the same company, it isn't
 * needed. One source per operating system. */
#ifndef KERNEL_REHEARSAL_H
#define KERNEL_REHEARSAL_H

#include "base/text.h"
#include "trust/proven.h"

/* Loads it in a child as khub__library_open would here, with what is in this process already. What is refused
 * there in order is KHUB_OK: it is refused here, too. KHUB_E_LOAD: the child ended, or hangs; the words have
 * what it last said. KHUB_E_IO: there can be no child; KHUB_E_NOMEM. */
int khub__rehearse(const char *path, const char *operators, const khub__proven *proven, khub_error *err);

/* The company that libraries are loaded in, as lines to be kept: this khub, the start of the machine, where
 * the loader is told to look, and each library that is in the process, as it lies on disk. 0: it can't be
 * told, or there is no memory (text->failed). */
int khub__company_write(khub__text *text);

/* 1: the lines are those of a company like this: what is in this process was there, and nothing of what was
 * there changed on disk since. */
int khub__company_is(const char *lines);

#endif
