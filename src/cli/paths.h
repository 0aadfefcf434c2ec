/* Paths of a model's slots, told together where they differ in numbers alone. */
#ifndef CLI_PATHS_H
#define CLI_PATHS_H

#include "cli.h"

/* 1: they differ in nothing but numbers, as "layer.0.dense" and "layer.11.dense" do. */
int cli_paths_alike(const char *a, const char *b);

/* "encoder.layer.*.dense" for several slots, the path itself for one. `to` NULL: nothing is printed. The
 * number of columns. */
int cli_print_paths(FILE *to, const char *path, size_t count);

#endif
