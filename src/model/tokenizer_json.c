/* tokenizer.json, as Hugging Face's tokenizers write it: the parts that a BERT-like tokenizer has. Its
 * sections "truncation" and "padding" are left aside: how long a text may get is the caller's business. */
#include "model/tokenizer.h"

#include "base/error.h"
#include "base/json.h"
#include "base/memory.h"

typedef khub__json_source source_t;

static int unsupported(const char *part, const char *type, const char *known, const source_t *source)
{
    return khub__fail(source->err, KHUB_E_UNSUPPORTED, "%s: %s \"%s\" is not supported, %s is", source->file,
                      part, type, known);
}

/* The object `part` of the file and its "type"; *object is NULL when it is absent. */
static int part_of(const json_t **object, const char **type, const json_t *root, const char *part,
                   const source_t *source)
{
    *object = NULL;
    *type = NULL;
    int rc = khub__json_object(object, root, part, source);
    if (rc != KHUB_OK || !*object) return rc;
    rc = khub__json_string(type, *object, "type", source);
    if (rc == KHUB_OK && !*type && strcmp(part, "model") != 0)
        rc = khub__fail(source->err, KHUB_E_FORMAT, "%s: \"%s\" has no \"type\"", source->file, part);
    return rc;
}

static int read_version(const json_t *root, const source_t *source)
{
    const char *version = "1.0";
    int rc = khub__json_string(&version, root, "version", source);
    if (rc == KHUB_OK && strcmp(version, "1.0") != 0) rc = unsupported("version", version, "1.0", source);
    return rc;
}

static int read_normalizer(khub__normalizer *normalizer, const json_t *root, const source_t *source)
{
    const json_t *object;
    const char *type;
    int rc = part_of(&object, &type, root, "normalizer", source);
    if (rc != KHUB_OK) return rc;
    if (!object) { /* text is taken as it is */
        khub__normalizer_prepare(normalizer);
        return KHUB_OK;
    }
    if (strcmp(type, "BertNormalizer") != 0) return unsupported("normalizer", type, "BertNormalizer", source);
    normalizer->clean = normalizer->ideographs = normalizer->lower = 1;
    normalizer->strip = -1;
    const struct {
        const char *key;
        int *to;
    } fields[] = {{"clean_text", &normalizer->clean},
                  {"handle_chinese_chars", &normalizer->ideographs},
                  {"lowercase", &normalizer->lower},
                  {"strip_accents", &normalizer->strip}};
    for (size_t i = 0; i < sizeof(fields) / sizeof(*fields) && rc == KHUB_OK; i++)
        rc = khub__json_bool(fields[i].to, object, fields[i].key, source);
    if (normalizer->strip < 0) normalizer->strip = normalizer->lower;
    khub__normalizer_prepare(normalizer);
    return rc;
}

static int read_pre_tokenizer(const json_t *root, const source_t *source)
{
    const json_t *object;
    const char *type;
    int rc = part_of(&object, &type, root, "pre_tokenizer", source);
    if (rc != KHUB_OK) return rc;
    if (object && !strcmp(type, "BertPreTokenizer")) return KHUB_OK;
    return unsupported("pre_tokenizer", object ? type : "null", "BertPreTokenizer", source);
}

static int read_model_fields(khub_tokenizer *tokenizer, const char **unknown, const json_t *model,
                             const source_t *source)
{
    const char *prefix = "##";
    int64_t most = 100;
    int rc = khub__json_string(unknown, model, "unk_token", source);
    if (rc == KHUB_OK) rc = khub__json_string(&prefix, model, "continuing_subword_prefix", source);
    if (rc == KHUB_OK) rc = khub__json_integer(&most, model, "max_input_chars_per_word", source);
    if (rc != KHUB_OK) return rc;
    if (most < 0)
        return khub__fail(source->err, KHUB_E_FORMAT, "%s: \"max_input_chars_per_word\" is %lld",
                          source->file, (long long)most);
    tokenizer->wordpiece.max_characters = (size_t)most;
    prefix = khub__tokenizer_keep(tokenizer, prefix);
    if (!prefix) return khub__fail_memory(source->err, "reading a tokenizer");
    khub__wordpiece_prepare(&tokenizer->wordpiece, prefix);
    return KHUB_OK;
}

static int read_model(khub_tokenizer *tokenizer, const json_t *root, int has_vocab, const source_t *source)
{
    const json_t *model;
    const char *type, *unknown = "[UNK]";
    int rc = part_of(&model, &type, root, "model", source);
    if (rc != KHUB_OK) return rc;
    if (!model) return khub__fail(source->err, KHUB_E_FORMAT, "%s: has no \"model\"", source->file);
    /* files older than "type" are told apart by what only this kind has */
    if (!type) type = json_object_get(model, "max_input_chars_per_word") ? "WordPiece" : "without a type";
    if (strcmp(type, "WordPiece") != 0) return unsupported("model", type, "WordPiece", source);
    if (!has_vocab || tokenizer->wordpiece.vocabulary.size == 0)
        return khub__fail(source->err, KHUB_E_FORMAT, "%s: \"model\" has no \"vocab\", or an empty one",
                          source->file);
    rc = read_model_fields(tokenizer, &unknown, model, source);
    if (rc == KHUB_OK)
        rc = khub__vocabulary_index(&tokenizer->wordpiece.vocabulary, 0, source->file, source->err);
    if (rc != KHUB_OK) return rc;
    tokenizer->wordpiece.unknown =
        khub__vocabulary_id(&tokenizer->wordpiece.vocabulary, unknown, strlen(unknown));
    if (tokenizer->wordpiece.unknown >= 0) return KHUB_OK;
    return khub__fail(source->err, KHUB_E_FORMAT, "%s: the unknown token \"%s\" is not in the vocabulary",
                      source->file, unknown);
}

static int read_added(khub_tokenizer *tokenizer, const json_t *object, size_t index, const source_t *source)
{
    if (!json_is_object(object))
        return khub__fail(source->err, KHUB_E_FORMAT,
                          "%s: entry %zu of \"added_tokens\" is %s, an object is expected", source->file,
                          index, khub__json_type_name(object));
    khub__special special = {.id = -1, .order = index};
    int is_special = 0;
    const struct {
        const char *key;
        int *to;
    } fields[] = {{"single_word", &special.single_word},
                  {"lstrip", &special.lstrip},
                  {"rstrip", &special.rstrip},
                  {"normalized", &special.normalized},
                  {"special", &is_special}};
    int rc = khub__json_string(&special.content, object, "content", source);
    if (rc == KHUB_OK) rc = khub__json_integer(&special.id, object, "id", source);
    for (size_t i = 0; i < sizeof(fields) / sizeof(*fields) && rc == KHUB_OK; i++)
        rc = khub__json_bool(fields[i].to, object, fields[i].key, source);
    if (rc != KHUB_OK) return rc;
    if (!special.content || special.id < 0)
        return khub__fail(source->err, KHUB_E_FORMAT,
                          "%s: entry %zu of \"added_tokens\" has no \"content\" or no \"id\"", source->file,
                          index);
    if (!special.content[0]) return KHUB_OK;        /* never found in a text */
    if (!is_special) special.order += SIZE_MAX / 2; /* special ones come first */
    return khub__tokenizer_add(tokenizer, &special, source->file, source->err);
}

static int read_all_added(khub_tokenizer *tokenizer, const json_t *root, const source_t *source)
{
    const json_t *list = NULL;
    int rc = khub__json_array(&list, root, "added_tokens", source);
    for (size_t i = 0; rc == KHUB_OK && i < json_array_size(list); i++)
        rc = read_added(tokenizer, json_array_get(list, i), i, source);
    return rc;
}

static int bad_processor(const char *what, const source_t *source)
{
    return khub__fail(source->err, KHUB_E_FORMAT, "%s: \"post_processor\" %s", source->file, what);
}

static int add_special(khub__ids *ids, const json_t *id, const source_t *source)
{
    json_int_t value = json_is_integer(id) ? json_integer_value(id) : -1;
    if (value < 0 || value > INT32_MAX) return bad_processor("has an id that is none", source);
    if (khub__ids_add(ids, (int32_t)value) != 0) return khub__fail_memory(source->err, "reading a tokenizer");
    return KHUB_OK;
}

/* "cls": [TOKEN, ID] and "sep" of the same kind. */
static int read_bert_processing(khub_tokenizer *tokenizer, const json_t *object, const source_t *source)
{
    int rc = add_special(&tokenizer->before, json_array_get(json_object_get(object, "cls"), 1), source);
    return rc == KHUB_OK
               ? add_special(&tokenizer->after, json_array_get(json_object_get(object, "sep"), 1), source)
               : rc;
}

/* One {"SpecialToken": {"id": NAME}} of a template; "special_tokens" holds the ids of a name. */
static int read_template_special(khub__ids *ids, const json_t *piece, const json_t *specials,
                                 const source_t *source)
{
    const char *name = json_string_value(json_object_get(piece, "id"));
    const json_t *list = name ? json_object_get(json_object_get(specials, name), "ids") : NULL;
    if (!json_is_array(list))
        return bad_processor("names a special token that \"special_tokens\" doesn't describe", source);
    int rc = KHUB_OK;
    for (size_t i = 0; rc == KHUB_OK && i < json_array_size(list); i++)
        rc = add_special(ids, json_array_get(list, i), source);
    return rc;
}

static int is_sequence_a(const json_t *piece)
{
    const char *id = json_string_value(json_object_get(json_object_get(piece, "Sequence"), "id"));
    return id && !strcmp(id, "A");
}

static int read_template(khub_tokenizer *tokenizer, const json_t *object, const source_t *source)
{
    const json_t *single = NULL, *specials = json_object_get(object, "special_tokens");
    int rc = khub__json_array(&single, object, "single", source), texts = 0;
    for (size_t i = 0; rc == KHUB_OK && i < json_array_size(single); i++) {
        const json_t *piece = json_array_get(single, i), *special = json_object_get(piece, "SpecialToken");
        if (special)
            rc = read_template_special(texts ? &tokenizer->after : &tokenizer->before, special, specials,
                                       source);
        else if (is_sequence_a(piece))
            texts++;
        else
            rc = bad_processor("has a piece in \"single\" that is neither a special token nor the text",
                               source);
    }
    if (rc == KHUB_OK && texts != 1) rc = bad_processor("doesn't have the text once in \"single\"", source);
    return rc;
}

static int read_post_processor(khub_tokenizer *tokenizer, const json_t *root, const source_t *source)
{
    const json_t *object;
    const char *type;
    int rc = part_of(&object, &type, root, "post_processor", source);
    if (rc != KHUB_OK || !object) return rc;
    if (!strcmp(type, "TemplateProcessing")) return read_template(tokenizer, object, source);
    if (!strcmp(type, "BertProcessing")) return read_bert_processing(tokenizer, object, source);
    return unsupported("post_processor", type, "TemplateProcessing or BertProcessing", source);
}

/* What a file without its vocabulary says. */
static int read_rest(khub_tokenizer *tokenizer, const json_t *root, int has_vocab, const source_t *source)
{
    int rc = read_version(root, source);
    if (rc == KHUB_OK) rc = read_model(tokenizer, root, has_vocab, source);
    if (rc == KHUB_OK) rc = read_normalizer(&tokenizer->normalizer, root, source);
    if (rc == KHUB_OK) rc = read_pre_tokenizer(root, source);
    if (rc == KHUB_OK) rc = read_all_added(tokenizer, root, source);
    if (rc == KHUB_OK) rc = read_post_processor(tokenizer, root, source);
    return rc == KHUB_OK ? khub__tokenizer_finish(tokenizer, source->file, source->err) : rc;
}

int khub__tokenizer_read_json(khub_tokenizer *tokenizer, khub__bytes *json, const char *file, khub_error *err)
{
    const source_t source = {file, err};
    json_t *root = NULL;
    char *rest;
    int has_vocab;
    tokenizer->file = *json;
    tokenizer->wordpiece.vocabulary.limit = khub__vocabulary_limit(json->length);
    int rc = khub__vocabulary_read_json(&tokenizer->wordpiece.vocabulary, &rest, &has_vocab, &tokenizer->file,
                                        file, err);
    if (rc == KHUB_OK) rc = khub__json_parse(&root, rest, strlen(rest), file, err);
    khub__free(rest);
    if (rc == KHUB_OK) rc = read_rest(tokenizer, root, has_vocab, &source);
    json_decref(root);
    return rc;
}
