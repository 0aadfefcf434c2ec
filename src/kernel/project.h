/* pyproject.toml: the kernels that a Python project names. */
#ifndef KERNEL_PROJECT_H
#define KERNEL_PROJECT_H

#include "base/text.h"

#include <khub/error.h>

enum { KHUB__PROJECT_MAX_BYTES = 4 << 20 };

/* Adds "org/name@v1" and a NUL to *names for each entry of [tool.kernels.dependencies] ("org/name" = 1), in
 * the order of the text, and counts them. Of TOML all is understood as far as it has to be passed over, in
 * tables, dotted keys and inline tables alike. `file` stands for the text in messages. KHUB_E_FORMAT: the
 * line and the fact; KHUB_E_NOMEM. */
int khub__project_parse(khub__text *names, size_t *count, const char *text, size_t length, const char *file,
                        khub_error *err);

#endif
