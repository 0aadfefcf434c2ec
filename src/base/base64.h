/* Base64 with padding, in its one form: no white space, no other alphabet, no bits that are left over. */
#ifndef BASE_BASE64_H
#define BASE_BASE64_H

#include "base/span.h"
#include "base/text.h"

/* Decodes into *room, which is moved past what was written: at most three quarters of `length`. 0, or -1: it
 * isn't base64. */
int khub__base64_read(khub__span *out, unsigned char **room, const char *text, size_t length);

/* Adds the bytes as base64; with `line`, a line break after that many characters and at the end. */
void khub__base64_add(khub__text *to, khub__span bytes, size_t line);

#endif
