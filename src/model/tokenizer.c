/* Opening and closing a tokenizer, and what its files have in common. */
#include "model/tokenizer.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/path.h"
#include "model/unicode.h"
#include "model/utf8.h"

khub_tokenizer *khub__tokenizer_new(void)
{
    return khub__calloc(1, sizeof(khub_tokenizer));
}

const char *khub__tokenizer_keep(khub_tokenizer *tokenizer, const char *text)
{
    if (khub__grow((void **)&tokenizer->owned, &tokenizer->owned_capacity, tokenizer->owned_count + 1,
                   sizeof(*tokenizer->owned), SIZE_MAX) != 0)
        return NULL;
    char *copy = khub__strdup(text);
    if (copy) tokenizer->owned[tokenizer->owned_count++] = copy;
    return copy;
}

/* The text that is looked for: the content, normalized if it says so. */
static int needle(char **out, size_t *length, const khub_tokenizer *tokenizer, const khub__special *special)
{
    *length = strlen(special->content);
    if (!special->normalized) {
        *out = khub__strndup(special->content, *length);
        return *out ? 0 : -1;
    }
    khub__normalized text = {0};
    int rc = khub__normalize(&text, &tokenizer->normalizer, special->content, *length);
    *length = text.length;
    *out = rc == 0 ? khub__strndup(text.data ? text.data : "", text.length) : NULL;
    khub__normalized_free(&text);
    return *out ? 0 : -1;
}

/* A token of the vocabulary keeps its id; another one gets the id that the file gives it. */
static int settle_id(khub_tokenizer *tokenizer, const khub__special *special, const char *file,
                     khub_error *err)
{
    khub__vocabulary *vocabulary = &tokenizer->wordpiece.vocabulary;
    size_t length = strlen(special->content);
    int32_t id = khub__vocabulary_id(vocabulary, special->content, length);
    if (id == special->id) return KHUB_OK;
    if (id >= 0)
        return khub__fail(err, KHUB_E_FORMAT,
                          "%s: added token \"%s\" has id %lld, in the vocabulary it has %d", file,
                          special->content, (long long)special->id, (int)id);
    const char *content = khub__tokenizer_keep(tokenizer, special->content);
    if (!content) return khub__fail_memory(err, "reading a tokenizer");
    return khub__vocabulary_set(vocabulary, content, length, special->id, file, err);
}

int khub__tokenizer_add(khub_tokenizer *tokenizer, const khub__special *special, const char *file,
                        khub_error *err)
{
    int rc = settle_id(tokenizer, special, file, err);
    if (rc != KHUB_OK) return rc;
    khub__added_token token = {.order = special->order,
                               .id = (int32_t)special->id,
                               .single_word = special->single_word != 0,
                               .lstrip = special->lstrip != 0,
                               .rstrip = special->rstrip != 0};
    if (needle(&token.text, &token.length, tokenizer, special) != 0)
        return khub__fail_memory(err, "reading a tokenizer");
    if (token.length == 0) {
        khub__free(token.text);
        return khub__fail(err, KHUB_E_FORMAT,
                          "%s: nothing is left of added token \"%s\" once it is normalized", file,
                          special->content);
    }
    if (khub__added_put(special->normalized ? &tokenizer->normalized : &tokenizer->raw, token) != 0)
        return khub__fail_memory(err, "reading a tokenizer");
    return KHUB_OK;
}

static int check_special_ids(const khub_tokenizer *tokenizer, const khub__ids *ids, const char *file,
                             khub_error *err)
{
    for (size_t i = 0; i < ids->count; i++)
        if (!khub_tokenizer_token(tokenizer, ids->items[i]))
            return khub__fail(err, KHUB_E_FORMAT, "%s: \"post_processor\" adds id %d, which no token has",
                              file, (int)ids->items[i]);
    return KHUB_OK;
}

int khub__tokenizer_finish(khub_tokenizer *tokenizer, const char *file, khub_error *err)
{
    khub__added_index(&tokenizer->raw);
    khub__added_index(&tokenizer->normalized);
    for (uint32_t c = 0; c < 128; c++)
        tokenizer->ascii_class[c] = khub__char_is_space(c)         ? KHUB__WORD_SPACE
                                    : khub__char_is_punctuation(c) ? KHUB__WORD_PUNCTUATION
                                                                   : KHUB__WORD_LETTER;
    int rc = check_special_ids(tokenizer, &tokenizer->before, file, err);
    return rc == KHUB_OK ? check_special_ids(tokenizer, &tokenizer->after, file, err) : rc;
}

static int open_json(khub_tokenizer *tokenizer, const char *path, khub_error *err)
{
    khub__bytes json;
    int rc = khub__file_read(&json, path, KHUB__TOKENIZER_FILE_MAX, err);
    return rc == KHUB_OK ? khub__tokenizer_read_json(tokenizer, &json, path, err) : rc;
}

static int open_vocab(khub_tokenizer *tokenizer, const char *path, const char *config_path, khub_error *err)
{
    khub__bytes vocab, config;
    int has_config = khub__file_kind(config_path) != KHUB__FILE_NONE;
    int rc = has_config ? khub__file_read(&config, config_path, KHUB__TOKENIZER_FILE_MAX, err) : KHUB_OK;
    if (rc != KHUB_OK) return rc;
    rc = khub__file_read(&vocab, path, KHUB__TOKENIZER_FILE_MAX, err);
    if (rc == KHUB_OK)
        rc = khub__tokenizer_read_vocab(tokenizer, &vocab, path, has_config ? &config : NULL, config_path,
                                        err);
    if (has_config) khub__bytes_free(&config);
    return rc;
}

static int open_directory(khub_tokenizer *tokenizer, const char *directory, khub_error *err)
{
    char *json = khub__path_join(directory, "tokenizer.json"),
         *vocab = khub__path_join(directory, "vocab.txt"),
         *config = khub__path_join(directory, "tokenizer_config.json");
    int rc;
    if (!json || !vocab || !config)
        rc = khub__fail_memory(err, "opening a tokenizer");
    else if (khub__file_kind(json) != KHUB__FILE_NONE)
        rc = open_json(tokenizer, json, err);
    else if (khub__file_kind(vocab) != KHUB__FILE_NONE)
        rc = open_vocab(tokenizer, vocab, config, err);
    else
        rc = khub__fail(err, KHUB_E_NOTFOUND,
                        "%s: has no tokenizer: neither tokenizer.json nor vocab.txt is there", directory);
    khub__free(json);
    khub__free(vocab);
    khub__free(config);
    return rc;
}

int khub_tokenizer_open(khub_tokenizer **out, const char *directory, khub_error *err)
{
    int missing = khub__given("khub_tokenizer_open", out && directory, err);
    if (out) *out = NULL;
    if (missing != KHUB_OK) return missing;
    khub_tokenizer *tokenizer = khub__tokenizer_new();
    if (!tokenizer) return khub__fail_memory(err, "opening a tokenizer");
    int rc = open_directory(tokenizer, directory, err);
    if (rc == KHUB_OK)
        *out = tokenizer;
    else
        khub_tokenizer_close(tokenizer);
    return rc;
}

void khub_tokenizer_close(khub_tokenizer *tokenizer)
{
    if (!tokenizer) return;
    khub__added_free(&tokenizer->raw);
    khub__added_free(&tokenizer->normalized);
    khub__vocabulary_free(&tokenizer->wordpiece.vocabulary);
    khub__free(tokenizer->before.items);
    khub__free(tokenizer->after.items);
    khub__bytes_free(&tokenizer->file);
    for (size_t i = 0; i < tokenizer->owned_count; i++)
        khub__free(tokenizer->owned[i]);
    khub__free(tokenizer->owned);
    khub__free(tokenizer);
}

int32_t khub_tokenizer_size(const khub_tokenizer *tokenizer)
{
    return (int32_t)tokenizer->wordpiece.vocabulary.size;
}

const char *khub_tokenizer_token(const khub_tokenizer *tokenizer, int32_t id)
{
    const khub__vocabulary *vocabulary = &tokenizer->wordpiece.vocabulary;
    return id >= 0 && (size_t)id < vocabulary->size ? vocabulary->tokens[id].text : NULL;
}
