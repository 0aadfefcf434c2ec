/* libkhub-model, opened for the commands that need it: its headers at compile time, its functions by name. A
 * start of another command pays neither for it nor for what it is linked with. */
#ifndef CLI_MODEL_H
#define CLI_MODEL_H

#include <khub/bench.h>
#include <khub/compare.h>
#include <khub/model.h>
#include <khub/tokenizer.h>

#define CLI_MODEL_FUNCTIONS(X)                                                                               \
    X(khub_bench_at)                                                                                         \
    X(khub_bench_fill)                                                                                       \
    X(khub_bench_free)                                                                                       \
    X(khub_bench_function)                                                                                   \
    X(khub_bench_layer)                                                                                      \
    X(khub_bench_machine_of)                                                                                 \
    X(khub_check_name)                                                                                       \
    X(khub_compare)                                                                                          \
    X(khub_compare_at)                                                                                       \
    X(khub_compare_free)                                                                                     \
    X(khub_model_close)                                                                                      \
    X(khub_model_embed)                                                                                      \
    X(khub_model_layers)                                                                                     \
    X(khub_model_max_tokens)                                                                                 \
    X(khub_model_open)                                                                                       \
    X(khub_model_width)                                                                                      \
    X(khub_tokenizer_close)                                                                                  \
    X(khub_tokenizer_encode)                                                                                 \
    X(khub_tokenizer_open)                                                                                   \
    X(khub_tokenizer_token)                                                                                  \
    X(khub_tokens_free)

#define CLI_MODEL_POINTER(name) __typeof__(&name) name;

/* cli_model.khub_model_open(…) */
extern struct cli_model_table {
    CLI_MODEL_FUNCTIONS(CLI_MODEL_POINTER)
} cli_model;

/* Fills in the table, before a command whose row says `needs_model` runs. EXIT_DONE, or EXIT_FAILED and said.
 */
int cli_model_open_library(void);

#endif
