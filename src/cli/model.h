/* The functions of libkhub-model, for the commands that need them. bin/khub has them not, so that a start of
 * another command doesn't pay for them; it becomes libexec/khub/khub-model, the same command with them. */
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

/* cli_model.khub_model_open(…); all NULL in bin/khub, where no command whose row says `needs_model` runs. */
extern const struct cli_model_table {
    CLI_MODEL_FUNCTIONS(CLI_MODEL_POINTER)
} cli_model;

#endif
