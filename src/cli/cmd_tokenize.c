/* khub tokenize: texts as ids. */
#include "lines.h"
#include "model.h"
#include "model_dir.h"

#include <khub/tokenizer.h>

#include <stdlib.h>

static const char help[] =
    "khub tokenize --model ./all-MiniLM-L6-v2 \"some text\"\n"
    "khub tokenize --model NAME [--tokens] [-n MAX] TEXT...\n"
    "khub tokenize --model NAME [--tokens] [-n MAX] --file LINES\n"
    "\n"
    "Prints the token ids of each text, special tokens included, as one line of JSON: [101,2070,3793,102].\n"
    "\n"
    "    --model NAME      a directory with tokenizer.json, or vocab.txt and tokenizer_config.json; else "
    "ORG/NAME or\n"
    "                      ORG/NAME@REV of the Hub, of which these files are fetched into the cache if they "
    "aren't there\n"
    "    --file LINES      a text a line, - for the standard input; a line ends with LF or CRLF, an empty "
    "line is an empty\n"
    "                      text\n"
    "    --tokens          {\"ids\":[...],\"tokens\":[...]}: what the ids stand for, too\n"
    "    --json            changes nothing: it is JSON, a line for each text\n"
    "    -n MAX            at most MAX ids for each text, special tokens included; without it nothing is "
    "cut\n" CLI_HUB_HELP;

typedef struct tokenize {
    khub_tokenizer *tokenizer;
    long max_tokens;
    int with_tokens;
    size_t texts, invalid, truncated;
    size_t first_invalid, first_truncated; /* number of the first such text, from 1 */
} tokenize;

static void print_ids(const khub_tokens *tokens)
{
    for (size_t i = 0; i < tokens->count; i++)
        printf(i ? ",%d" : "[%d", (int)tokens->ids[i]);
    fputs(tokens->count ? "]" : "[]", stdout);
}

static void print_tokens(const khub_tokens *tokens, const khub_tokenizer *tokenizer)
{
    fputs("{\"ids\":", stdout);
    print_ids(tokens);
    fputs(",\"tokens\":[", stdout);
    for (size_t i = 0; i < tokens->count; i++) {
        const char *token = cli_model.khub_tokenizer_token(tokenizer, tokens->ids[i]);
        if (i) fputc(',', stdout);
        cli_json_text(stdout, token);
    }
    fputs("]}", stdout);
}

static void count(size_t *number, size_t *first, int happened, size_t text)
{
    if (!happened) return;
    if ((*number)++ == 0) *first = text;
}

/* 0, or an exit status. */
static int print_text(tokenize *t, const char *text, size_t length)
{
    khub_error err = {0};
    khub_tokens tokens;
    if (cli_model.khub_tokenizer_encode(&tokens, t->tokenizer, text, length, (size_t)t->max_tokens, &err) !=
        KHUB_OK)
        return cli_fail(&err);
    if (t->with_tokens)
        print_tokens(&tokens, t->tokenizer);
    else
        print_ids(&tokens);
    fputc('\n', stdout);
    t->texts++;
    count(&t->invalid, &t->first_invalid, tokens.invalid_utf8, t->texts);
    count(&t->truncated, &t->first_truncated, tokens.truncated, t->texts);
    cli_model.khub_tokens_free(&tokens);
    return ferror(stdout) ? EXIT_FAILED : EXIT_DONE; /* main says what became of stdout */
}

/* One notice for each kind of thing that happened, naming the first place. */
static void notify(const tokenize *t, const char *where)
{
    if (t->invalid)
        cli_note("%s %zu: not UTF-8, broken bytes are read as U+FFFD (%zu of %zu texts)", where,
                 t->first_invalid, t->invalid, t->texts);
    if (t->truncated)
        cli_note("%s %zu: longer than %ld tokens, cut (%zu of %zu texts)", where, t->first_truncated,
                 t->max_tokens, t->truncated, t->texts);
}

static int print_lines(tokenize *t, const char *path)
{
    cli_lines lines;
    const char *text;
    size_t length;
    khub_error err = {0};
    if (cli_lines_open(&lines, path, &err) != KHUB_OK) return cli_fail(&err);
    int status = EXIT_DONE, more = 1;
    while (status == EXIT_DONE && (more = cli_lines_next(&lines, &text, &length, &err)) == 1)
        status = print_text(t, text, length);
    if (more < 0) status = cli_fail(&err);
    char where[512];
    snprintf(where, sizeof(where), "%s: line", lines.name);
    notify(t, where);
    cli_lines_close(&lines);
    return status;
}

static int print_arguments(tokenize *t, int texts, char **argv)
{
    int status = EXIT_DONE;
    for (int i = 1; i <= texts && status == EXIT_DONE; i++)
        status = print_text(t, argv[i], strlen(argv[i]));
    notify(t, "text");
    return status;
}

static int run(int argc, char **argv)
{
    tokenize t = {0};
    const char *model = NULL, *file = NULL;
    char *dir;
    cli_hub hub;
    cli_hub_init(&hub);
    int json; /* it is JSON anyway */
    const cli_option options[] = {{"--model", CLI_TEXT, &model},          {"--file", CLI_TEXT, &file},
                                  {"--tokens", CLI_FLAG, &t.with_tokens}, {"--json", CLI_FLAG, &json},
                                  {"-n", CLI_NUMBER, &t.max_tokens},      CLI_HUB_OPTIONS(hub)};
    int texts = cli_options(argc, argv, options, sizeof(options) / sizeof(*options));
    if (texts < 0) return EXIT_USAGE;
    if (!model) return cli_usage("tokenize", "--model NAME is missing");
    if (!texts == !file) return cli_usage("tokenize", "it takes texts or --file LINES");
    khub_error err = {0};
    int rc = cli_model_dir(&dir, model, CLI_MODEL_TOKENIZER, &hub, &err);
    if (rc == KHUB_OK) rc = cli_model.khub_tokenizer_open(&t.tokenizer, dir, &err);
    free(dir);
    if (rc != KHUB_OK) return cli_fail(&err);
    int status = file ? print_lines(&t, file) : print_arguments(&t, texts, argv);
    cli_model.khub_tokenizer_close(t.tokenizer);
    return status;
}

const cli_command cli_tokenize = {"tokenize", "texts as the ids that a model takes", help, run,
                                  .needs_model = 1};
