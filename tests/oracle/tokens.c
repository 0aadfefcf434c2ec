/* tokens DIR MAX: reads texts from stdin, each behind its length in 4 bytes, and writes for each the number
 * of ids, 1 for cut plus 2 for broken UTF-8, and the ids, all in 4 bytes: so a test can hand over any bytes,
 * in one process. Numbers are the machine's own. */
#include <khub/tokenizer.h>

#include <stdio.h>
#include <stdlib.h>

static int fail(const khub_error *err)
{
    fprintf(stderr, "tokens: %s\n", err->message);
    return 1;
}

static int answer(const khub_tokenizer *tokenizer, const char *text, size_t length, size_t max_tokens)
{
    khub_error err = {0};
    khub_tokens tokens;
    if (khub_tokenizer_encode(&tokens, tokenizer, text, length, max_tokens, &err) != KHUB_OK)
        return fail(&err);
    uint32_t head[2] = {(uint32_t)tokens.count,
                        (tokens.truncated ? 1u : 0u) | (tokens.invalid_utf8 ? 2u : 0u)};
    fwrite(head, sizeof(head), 1, stdout);
    fwrite(tokens.ids, sizeof(*tokens.ids), tokens.count, stdout);
    khub_tokens_free(&tokens);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc != 3) return 2;
    khub_error err = {0};
    khub_tokenizer *tokenizer;
    if (khub_tokenizer_open(&tokenizer, argv[1], &err) != KHUB_OK) return fail(&err);
    int rc = 0;
    for (uint32_t length; rc == 0 && fread(&length, sizeof(length), 1, stdin) == 1;) {
        char *text =
            malloc(length ? length : 1); /* of its exact size, so that a sanitizer sees every byte too far */
        if (!text || fread(text, 1, length, stdin) != length) return 1;
        rc = answer(tokenizer, text, length, (size_t)strtoul(argv[2], NULL, 10));
        free(text);
    }
    khub_tokenizer_close(tokenizer);
    return rc || fflush(stdout) != 0;
}
