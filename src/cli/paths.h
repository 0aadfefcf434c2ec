/* Paths of a model's slots, told together where they differ in numbers alone. */
#ifndef CLI_PATHS_H
#define CLI_PATHS_H

#include "cli.h"

/* An order in which paths are equal (0) that differ in nothing but numbers, as "layer.0.dense" and
 * "layer.11.dense" do. */
int cli_paths_order(const char *a, const char *b);

/* For each of `count` things the number of the first that it is alike, by an order of them. The caller's
 * (free); NULL: no memory. */
size_t *cli_first_alike(const void *const *things, size_t count, int (*order)(const void *a, const void *b));

/* "encoder.layer.*.dense" for several slots, the path itself for one. `to` NULL: nothing is printed. The
 * number of columns. */
int cli_print_paths(FILE *to, const char *path, size_t count);

#endif
