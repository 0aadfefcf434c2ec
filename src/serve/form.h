/* What a stranger sends as a form: "name=value&name=value", percent-encoded, "+" for a space. Pure functions
 * of its text. */
#ifndef SERVE_FORM_H
#define SERVE_FORM_H

#include <stddef.h>

/* Puts the values of the fields called `name` in the place of the form's text, one behind the other, a NUL
 * after each. *count of them. 0, or -1: the form isn't encoded as it should be. */
int serve_form_values(size_t *count, char *form, const char *name);

#endif
