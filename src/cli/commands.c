/* The table of commands. */
#include "cli.h"

extern const cli_command cli_bench;
extern const cli_command cli_cache;
extern const cli_command cli_call;
extern const cli_command cli_check;
extern const cli_command cli_compare;
extern const cli_command cli_download_command;
extern const cli_command cli_embed;
extern const cli_command cli_functions;
extern const cli_command cli_get_command;
extern const cli_command cli_info;
extern const cli_command cli_lock;
extern const cli_command cli_mapping;
extern const cli_command cli_matrix_command;
extern const cli_command cli_pack;
extern const cli_command cli_platform_command;
extern const cli_command cli_serve;
extern const cli_command cli_tokenize;
extern const cli_command cli_trust;
extern const cli_command cli_variants;
extern const cli_command cli_verify;
extern const cli_command cli_versions;

/* clang-format off: one a line */
const cli_command *const cli_commands[] = {
    &cli_bench,
    &cli_cache,
    &cli_call,
    &cli_check,
    &cli_compare,
    &cli_download_command,
    &cli_embed,
    &cli_functions,
    &cli_get_command,
    &cli_info,
    &cli_lock,
    &cli_mapping,
    &cli_matrix_command,
    &cli_pack,
    &cli_platform_command,
    &cli_serve,
    &cli_tokenize,
    &cli_trust,
    &cli_variants,
    &cli_verify,
    &cli_versions,
    NULL,
};
/* clang-format on */
