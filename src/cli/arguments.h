/* The arguments of `khub call` and `khub bench`: what the words of a command line mean to a function. */
#ifndef CLI_ARGUMENTS_H
#define CLI_ARGUMENTS_H

#include "cli.h"

typedef struct cli_argument {
    const char *text;    /* as it was written; borrowed */
    const char *command; /* that it was written for; static */
    khub_value value;    /* borrows from `text` and `array`; complete after cli_argument_fill */
    char *name;          /* of an output; NULL: an input */
    const char *file;    /* that the array is read from; NULL: none */
    khub_dtype dtype;    /* of an output that isn't read from a file, and its shape */
    int32_t ndim;
    int64_t shape[KHUB_MAX_NDIM];
    khub_array array;
    khub_tensor given; /* what the function gets: a copy, so that nothing it does to it changes `array` */
    int64_t given_shape[KHUB_MAX_NDIM];
    char *saved; /* the file that an output was written to, by whoever wrote it (malloc); NULL: none yet */
} cli_argument;

/* Understands one word of `command`'s line; opens nothing. *argument is zeroed before. EXIT_DONE, or
 * EXIT_USAGE and it is said.
 */
int cli_argument_parse(cli_argument *argument, const char *command, const char *text);

/* The float32 array that `text`, JSON, writes out. *out is zeroed before and freed by the caller whatever
 * happens. KHUB_E_FORMAT without words: it is none. */
int cli_literal(khub_array *out, const char *text, khub_error *err);

/* Reads the file, or takes the memory, that the word asks for. */
int cli_argument_fill(cli_argument *argument, khub_error *err);

void cli_argument_free(cli_argument *argument);

/* "float32[2,3]: 1 2 3 4 5 6": dtype, shape, and the first few elements where they can be read. */
void cli_show_tensor(FILE *to, const khub_tensor *tensor);

/* {"dtype": "float32", "shape": [2, 3], "file": "out.npy"}; `file` may be NULL. */
void cli_show_tensor_json(FILE *to, const khub_tensor *tensor, const char *file);

/* What a function returned, as a line of text or as JSON. `file`: where a tensor was saved; NULL: nowhere. */
void cli_show_value(FILE *to, const khub_value *value, const char *file);
void cli_show_value_json(FILE *to, const khub_value *value, const char *file);

#endif
