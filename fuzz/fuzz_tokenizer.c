/* A tokenizer.json of any bytes and a text of any bytes, parted by a 0xFF or else the same bytes: no crash,
 * and ids that the tokenizer has, no more than asked for. */
#include "base/memory.h"
#include "model/tokenizer.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(int holds)
{
    if (!holds) abort();
}

static void encode(const khub_tokenizer *tokenizer, const char *text, size_t length, size_t max_tokens)
{
    khub_tokens tokens;
    khub_error err = {0};
    int rc = khub_tokenizer_encode(&tokens, tokenizer, text, length, max_tokens, &err);
    check(rc == KHUB_OK || (rc == KHUB_E_INVAL && max_tokens));
    check(rc == KHUB_OK || !tokens.ids);
    check(!tokens.count || tokens.ids);
    check(!max_tokens || tokens.count <= max_tokens);
    for (size_t i = 0; i < tokens.count; i++)
        check(khub_tokenizer_token(tokenizer, tokens.ids[i]) != NULL);
    khub_tokens_free(&tokens);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *text = size ? memchr(data, 0xFF, size) : NULL;
    size_t json_size = text ? (size_t)(text - data) : size;
    text = text ? text + 1 : data;
    khub_error err = {0};
    khub_tokenizer *tokenizer = khub__tokenizer_new();
    khub__bytes json = {khub__strndup((const char *)data, json_size), json_size, 0};
    if (!tokenizer || !json.data) abort();
    int rc = khub__tokenizer_read_json(tokenizer, &json, "tokenizer.json", &err);
    check((rc == KHUB_OK) == (err.code == KHUB_OK) && (rc == KHUB_OK) == !err.message[0]);
    if (rc == KHUB_OK) {
        encode(tokenizer, (const char *)text, size - (size_t)(text - data), 0);
        encode(tokenizer, (const char *)text, size - (size_t)(text - data), 7);
    }
    khub_tokenizer_close(tokenizer);
    return 0;
}
