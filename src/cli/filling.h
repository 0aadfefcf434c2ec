/* Options that say which kernels may serve a model's layers, beside the mapping, and what their failures lead
 * to. */
#ifndef CLI_FILLING_H
#define CLI_FILLING_H

#include "cli.h"

#include <khub/layer.h>

typedef struct cli_filling {
    int require, deterministic, exact;
    const char *fallback, *mode, *on_error;
} cli_filling;

/* Rows for a command's table of options, and their lines for its help. */
#define CLI_FILLING_OPTIONS(filling)                                                                         \
    {"--require", CLI_FLAG, &(filling).require}, {"--fallback", CLI_TEXT, &(filling).fallback},              \
        {"--deterministic", CLI_FLAG, &(filling).deterministic}, {"--mode", CLI_TEXT, &(filling).mode},      \
        {"--exact", CLI_FLAG, &(filling).exact},                                                             \
    {                                                                                                        \
        "--on-error", CLI_TEXT, &(filling).on_error                                                          \
    }
#define CLI_FILLING_HELP                                                                                     \
    "    --require         with --kernels: an error when a kernel that is named can't serve its layer\n"     \
    "    --fallback WHAT   allow: where no kernel serves, the standard function does; named: as --require; " \
    "refuse: an\n"                                                                                           \
    "                      error unless each slot is served (or left standard by LAYER=)\n"                  \
    "    --deterministic   only functions that promise to be deterministic (docs/determinism.md) serve\n"    \
    "    --exact           only functions that promise results right to the last bit (a tolerance of 0 "     \
    "ULP) "                                                                                                  \
    "serve\n"                                                                                                \
    "    --mode MODE       inference, training, or one of them with |compile: which entries of the mapping " \
    "count\n"                                                                                                \
    "    --on-error WHAT   fail, or standard: the standard function does a call again in which a kernel "    \
    "fails\n"

/* Which of them is given; NULL: none. */
const char *cli_filling_given(const cli_filling *filling);

/* Puts them into the options. EXIT_DONE, or EXIT_USAGE and it is said. */
int cli_filling_read(khub_kernelize_options *options, const cli_filling *filling, const char *command);

/* Says how many calls were done again, if any were. */
void cli_filling_say(const khub_layers *layers);

#endif
