/* vocab.txt: a token a line, its id the number of the line; tokenizer_config.json says what goes with it. */
#include "model/tokenizer.h"

#include "base/error.h"
#include "base/json.h"
#include "base/memory.h"
#include "model/unicode.h"
#include "model/utf8.h"

typedef khub__json_source source_t;

/* Classes of transformers whose vocab.txt this is. */
static const char *const classes[] = {
    "BertTokenizer",       "BertTokenizerFast",       "DistilBertTokenizer",  "DistilBertTokenizerFast",
    "ElectraTokenizer",    "ElectraTokenizerFast",    "LxmertTokenizer",      "LxmertTokenizerFast",
    "MobileBertTokenizer", "MobileBertTokenizerFast", "SqueezeBertTokenizer", "SqueezeBertTokenizerFast"};

/* The file's text without a line end, white space at its end left out, as the peer reads it. */
static void end_token(char *start, char **stop)
{
    while (*stop > start && khub__char_is_space(khub__utf8_last(start, *stop))) {
        do
            --*stop;
        while (*stop > start && ((unsigned char)**stop & 0xC0) == 0x80);
    }
    **stop = 0;
}

static int read_lines(khub__vocabulary *vocabulary, khub__bytes *file, const char *name, khub_error *err)
{
    char *at = file->data, *end = at + file->length;
    int rc = KHUB_OK;
    for (int64_t id = 0; rc == KHUB_OK && at < end; id++) {
        char *stop = memchr(at, '\n', (size_t)(end - at)), *next = stop ? stop + 1 : end;
        if (!stop) stop = end; /* the NUL behind the file */
        if (memchr(at, 0, (size_t)(stop - at)))
            return khub__fail(err, KHUB_E_FORMAT, "%s:%lld: has a NUL", name, (long long)id + 1);
        end_token(at, &stop);
        if (stop > at) rc = khub__vocabulary_set(vocabulary, at, (size_t)(stop - at), id, name, err);
        at = next;
    }
    return rc;
}

/* A special token, named by a string or by an object with "content" and how it is found. */
static int read_named(khub__special *special, const json_t *config, const char *key, const source_t *source)
{
    const json_t *value = json_object_get(config, key);
    if (!json_is_object(value)) return khub__json_string(&special->content, config, key, source);
    const struct {
        const char *key;
        int *to;
    } fields[] = {{"single_word", &special->single_word},
                  {"lstrip", &special->lstrip},
                  {"rstrip", &special->rstrip},
                  {"normalized", &special->normalized}};
    int rc = khub__json_string(&special->content, value, "content", source);
    for (size_t i = 0; i < sizeof(fields) / sizeof(*fields) && rc == KHUB_OK; i++)
        rc = khub__json_bool(fields[i].to, value, fields[i].key, source);
    return rc;
}

static int read_specials(khub_tokenizer *tokenizer, const json_t *config, const char *vocab_file,
                         const source_t *source)
{
    struct {
        const char *key, *content;
        int32_t *id; /* where it goes; it must be there then */
        khub__ids *row;
    } table[] = {{"unk_token", "[UNK]", &tokenizer->wordpiece.unknown, NULL},
                 {"cls_token", "[CLS]", NULL, &tokenizer->before},
                 {"sep_token", "[SEP]", NULL, &tokenizer->after},
                 {"pad_token", "[PAD]", NULL, NULL},
                 {"mask_token", "[MASK]", NULL, NULL}};
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
        khub__special special = {.content = table[i].content, .order = i};
        int rc = read_named(&special, config, table[i].key, source);
        if (rc != KHUB_OK) return rc;
        int32_t id =
            khub__vocabulary_id(&tokenizer->wordpiece.vocabulary, special.content, strlen(special.content));
        if (id < 0 && !table[i].id && !table[i].row) continue;
        if (id < 0)
            return khub__fail(source->err, KHUB_E_FORMAT, "%s: the %s \"%s\" is not in it", vocab_file,
                              table[i].key, special.content);
        special.id = id;
        rc = khub__tokenizer_add(tokenizer, &special, vocab_file, source->err);
        if (rc != KHUB_OK) return rc;
        if (table[i].id) *table[i].id = id;
        if (table[i].row && khub__ids_add(table[i].row, id) != 0)
            return khub__fail_memory(source->err, "reading a tokenizer");
    }
    return KHUB_OK;
}

static int check_class(const json_t *config, const source_t *source)
{
    const char *name = classes[0];
    int basic = 1, rc = khub__json_string(&name, config, "tokenizer_class", source);
    if (rc == KHUB_OK) rc = khub__json_bool(&basic, config, "do_basic_tokenize", source);
    if (rc != KHUB_OK) return rc;
    if (!basic)
        return khub__fail(source->err, KHUB_E_UNSUPPORTED, "%s: \"do_basic_tokenize\" false is not supported",
                          source->file);
    for (size_t i = 0; i < sizeof(classes) / sizeof(*classes); i++)
        if (!strcmp(name, classes[i])) return KHUB_OK;
    return khub__fail(source->err, KHUB_E_UNSUPPORTED,
                      "%s: tokenizer_class \"%s\" is not supported without tokenizer.json", source->file,
                      name);
}

static int read_config(khub_tokenizer *tokenizer, const json_t *config, const char *vocab_file,
                       const source_t *source)
{
    khub__normalizer *normalizer = &tokenizer->normalizer;
    normalizer->clean = normalizer->ideographs = normalizer->lower = 1;
    normalizer->strip = -1;
    int rc = check_class(config, source);
    if (rc == KHUB_OK) rc = khub__json_bool(&normalizer->lower, config, "do_lower_case", source);
    if (rc == KHUB_OK)
        rc = khub__json_bool(&normalizer->ideographs, config, "tokenize_chinese_chars", source);
    if (rc == KHUB_OK) rc = khub__json_bool(&normalizer->strip, config, "strip_accents", source);
    if (rc != KHUB_OK) return rc;
    if (normalizer->strip < 0) normalizer->strip = normalizer->lower;
    khub__normalizer_prepare(normalizer);
    return read_specials(tokenizer, config, vocab_file, source);
}

static int read_vocabulary(khub_tokenizer *tokenizer, const char *file, khub_error *err)
{
    khub__vocabulary *vocabulary = &tokenizer->wordpiece.vocabulary;
    size_t valid = khub__utf8_valid(tokenizer->file.data, tokenizer->file.length);
    if (valid < tokenizer->file.length)
        return khub__fail(err, KHUB_E_FORMAT, "%s: is not UTF-8 from byte %zu on", file, valid);
    int rc = read_lines(vocabulary, &tokenizer->file, file, err);
    if (rc == KHUB_OK && vocabulary->size == 0)
        rc = khub__fail(err, KHUB_E_FORMAT, "%s: has no tokens", file);
    if (rc == KHUB_OK) rc = khub__vocabulary_index(vocabulary, 1, file, err);
    return rc;
}

int khub__tokenizer_read_vocab(khub_tokenizer *tokenizer, khub__bytes *vocab, const char *vocab_file,
                               const khub__bytes *config, const char *config_file, khub_error *err)
{
    const source_t source = {config_file, err};
    json_t *root = NULL;
    tokenizer->file = *vocab;
    tokenizer->wordpiece.vocabulary.limit = khub__vocabulary_limit(vocab->length);
    tokenizer->wordpiece.max_characters = 100; /* of BERT; no file says it */
    khub__wordpiece_prepare(&tokenizer->wordpiece, "##");
    int rc = read_vocabulary(tokenizer, vocab_file, err);
    if (rc == KHUB_OK && config) rc = khub__json_parse(&root, config->data, config->length, config_file, err);
    if (rc == KHUB_OK) rc = read_config(tokenizer, root, vocab_file, &source);
    json_decref(root);
    return rc == KHUB_OK ? khub__tokenizer_finish(tokenizer, vocab_file, err) : rc;
}
