/* The tokenizer, with vocabularies small enough to tokenize by hand. */
#include "failing_memory.h"
#include "unit.h"

#include "base/memory.h"
#include "model/normalize.h"
#include "model/tokenizer.h"
#include "model/unicode.h"
#include "model/utf8.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define VOCAB                                                                                                \
    "{\"[PAD]\":0,\"[UNK]\":1,\"[CLS]\":2,\"[SEP]\":3,\"[MASK]\":4,\"un\":5,\"##aff\":6,\"##able\":7,\"a\":" \
    "8,"                                                                                                     \
    "\"##a\":9,\"hello\":10,\"wor\":11,\"##ld\":12,\",\":13,\"\\u6f22\":14,\"i\":15,\"##ab\":16,\"##"        \
    "\\u00df\":17}"
#define MODEL                                                                                                \
    "\"model\":{\"type\":\"WordPiece\",\"unk_token\":\"[UNK]\",\"continuing_subword_prefix\":\"##\","        \
    "\"max_input_chars_per_word\":10,\"vocab\":" VOCAB "}"
#define NORMALIZER                                                                                           \
    "\"normalizer\":{\"type\":\"BertNormalizer\",\"clean_text\":true,\"handle_chinese_chars\":true,"         \
    "\"strip_accents\":null,\"lowercase\":true}"
#define PRE                      "\"pre_tokenizer\":{\"type\":\"BertPreTokenizer\"}"
#define POST                     "\"post_processor\":{\"type\":\"BertProcessing\",\"cls\":[\"[CLS]\",2],\"sep\":[\"[SEP]\",3]}"
#define TOKEN(id, content, more) "{\"id\":" #id ",\"content\":\"" content "\",\"special\":true" more "}"
#define ADDED                    "\"added_tokens\":[" TOKEN(3, "[SEP]", "") "," TOKEN(4, "[MASK]", "") "]"
#define FILE_OF(...)             "{\"version\":\"1.0\"," __VA_ARGS__ "}"
#define USUAL                    FILE_OF(ADDED "," NORMALIZER "," PRE "," POST "," MODEL)

static int open_bytes(khub_tokenizer **out, const char *json, size_t length, khub_error *err)
{
    *out = khub__tokenizer_new();
    khub__bytes bytes = {khub__strndup(json, length), length, 0};
    if (!*out || !bytes.data) {
        khub__bytes_free(&bytes);
        khub_tokenizer_close(*out);
        *out = NULL;
        return KHUB_E_NOMEM;
    }
    int rc = khub__tokenizer_read_json(*out, &bytes, "t.json", err);
    if (rc == KHUB_OK) return rc;
    khub_tokenizer_close(*out);
    *out = NULL;
    return rc;
}

static int open_text(khub_tokenizer **out, const char *json, khub_error *err)
{
    return open_bytes(out, json, strlen(json), err);
}

static khub_tokenizer *usual(void)
{
    khub_error err = {0};
    khub_tokenizer *tokenizer;
    ck_khub_ok(open_text(&tokenizer, USUAL, &err), &err);
    return tokenizer;
}

/* The ids as text, "2 8 3". */
static void expect_bytes(const khub_tokenizer *tokenizer, const char *text, size_t length, size_t max_tokens,
                         const char *ids)
{
    khub_error err = {0};
    khub_tokens tokens;
    ck_khub_ok(khub_tokenizer_encode(&tokens, tokenizer, text, length, max_tokens, &err), &err);
    char got[1000] = "";
    for (size_t i = 0; i < tokens.count; i++)
        snprintf(got + strlen(got), sizeof(got) - strlen(got), i ? " %d" : "%d", (int)tokens.ids[i]);
    ck_assert_msg(!strcmp(got, ids), "\"%s\" gave %s, not %s", text, got, ids);
    khub_tokens_free(&tokens);
}

static void expect(const khub_tokenizer *tokenizer, const char *text, const char *ids)
{
    expect_bytes(tokenizer, text, strlen(text), 0, ids);
}

START_TEST(words_and_pieces)
{
    khub_tokenizer *t = usual();
    static const struct {
        const char *text, *ids;
    } table[] = {
        {"", "2 3"},
        {"  \t\n ", "2 3"},
        {"hello", "2 10 3"},
        {"Hello, WORLD", "2 10 13 11 12 3"},
        {"unaffable", "2 5 6 7 3"},
        {"unaffablex", "2 1 3"},                   /* a rest without a piece: all of the word is unknown */
        {"aaaaaaaaaa", "2 8 9 9 9 9 9 9 9 9 9 3"}, /* 10 characters are allowed */
        {"aaaaaaaaaaa", "2 1 3"},                  /* 11 are not */
        {"able", "2 1 3"},       /* no piece that starts a word: "##able" goes on with one */
        {"aab", "2 8 16 3"},     /* the longest piece, not "##a" first */
        {"##able", "2 1 1 1 3"}, /* the prefix in a text is punctuation */
        {"a\xE6\xBC\xA2"
         "a",
         "2 8 14 8 3"},            /* an ideograph is a word */
        {"\xC3\x81", "2 8 3"},     /* A with acute */
        {"\xC4\xB0", "2 15 3"},    /* I with dot */
        {"A\xC3\x9F", "2 8 17 3"}, /* sharp s stays */
        {"a\xC2\xAD"
         "a",
         "2 8 9 3"}, /* a soft hyphen goes */
        {"a\x01\x7F"
         "a",
         "2 8 9 3"}, /* and so do control characters */
        {"[SEP]", "2 3 3"},
        {"a[MASK]a", "2 8 4 8 3"},
        {"[mask]", "2 1 1 1 3"}, /* added tokens are found as they are written */
        {"[[SEP]]", "2 1 3 1 3"},
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
        expect(t, table[i].text, table[i].ids);
    expect_bytes(t, "a\0a", 3, 0, "2 8 9 3");
    expect_bytes(t, NULL, 0, 0, "2 3");
    ck_assert_int_eq(khub_tokenizer_size(t), 18);
    ck_assert_str_eq(khub_tokenizer_token(t, 14), "\xE6\xBC\xA2");
    ck_assert_str_eq(khub_tokenizer_token(t, 0), "[PAD]");
    ck_assert_ptr_null(khub_tokenizer_token(t, 18));
    ck_assert_ptr_null(khub_tokenizer_token(t, -1));
    khub_tokenizer_close(t);
}
END_TEST

START_TEST(cutting_keeps_the_special_tokens)
{
    khub_tokenizer *t = usual();
    khub_error err = {0};
    khub_tokens tokens;
    expect_bytes(t, "a a a a", 7, 4, "2 8 8 3");
    expect_bytes(t, "unaffable", 9, 4, "2 5 6 3");   /* a word may be cut in its middle */
    expect_bytes(t, "unaffablex a", 12, 3, "2 1 3"); /* but is looked at to its end */
    expect_bytes(t, "a a", 3, 2, "2 3");
    ck_khub_fails(khub_tokenizer_encode(&tokens, t, "a", 1, 1, &err), &err, KHUB_E_INVAL,
                  "special tokens alone are 2");
    ck_assert_ptr_null(tokens.ids);
    static const struct {
        size_t max_tokens;
        int truncated;
    } table[] = {{0, 0}, {5, 0}, {4, 0}, {3, 1}, {2, 1}};
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
        ck_khub_ok(khub_tokenizer_encode(&tokens, t, "a a", 3, table[i].max_tokens, &err), &err);
        ck_assert_int_eq(tokens.truncated, table[i].truncated);
        khub_tokens_free(&tokens);
    }
    ck_khub_ok(khub_tokenizer_encode(&tokens, t, "  ", 2, 2, &err), &err);
    ck_assert_int_eq(tokens.truncated, 0); /* nothing was lost */
    khub_tokens_free(&tokens);
    khub_tokenizer_close(t);
}
END_TEST

START_TEST(broken_utf8)
{
    static const struct {
        const char *text,
            *repaired; /* ? for U+FFFD; the rows of Unicode's table 3-8 to 3-11 and the ends of ranges */
    } table[] = {
        {"\xC0\xAF\xE0\x80\xBF\xF0\x81\x82\x41", "????????A"},
        {"\xED\xA0\x80\xED\xBF\xBF\xED\xAF\x41", "????????A"},
        {"\xF4\x91\x92\x93\xFF\x41\x80\xBF\x42", "?????A??B"},
        {"\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41", "????A"},
        {"a\xC3", "a?"},
        {"\xE2\x82", "?"},
        {"\xF0\x9F\x98", "?"},
        {"\xF5\x80", "??"},
        {"\x80", "?"},
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
        char expected[64] = "", *repaired;
        size_t length;
        for (const char *c = table[i].repaired; *c; c++) {
            const char one[2] = {*c, 0};
            strcat(expected, *c == '?' ? "\xEF\xBF\xBD" : one);
        }
        ck_assert_uint_lt(khub__utf8_valid(table[i].text, strlen(table[i].text)), strlen(table[i].text));
        ck_assert_int_eq(khub__utf8_repair(&repaired, &length, table[i].text, strlen(table[i].text)), 0);
        ck_assert_uint_eq(length, strlen(expected));
        ck_assert_mem_eq(repaired, expected, length);
        khub_free(repaired);
    }
    for (uint32_t c = 0; c < 0x110000; c += c == 0xD7FF ? 0x801 : 1) {
        char bytes[4];
        const char *end = khub__utf8_put(bytes, c), *at = bytes;
        size_t length = (size_t)(end - bytes);
        if (khub__utf8_valid(bytes, length) != length || khub__utf8_next(&at) != c || at != end ||
            khub__utf8_last(bytes, end) != c)
            ck_abort_msg("U+%04X doesn't come back", (unsigned)c);
    }
    khub_tokenizer *t = usual();
    khub_error err = {0};
    khub_tokens tokens;
    ck_khub_ok(khub_tokenizer_encode(&tokens, t,
                                     "a\xFF"
                                     "a",
                                     3, 0, &err),
               &err);
    ck_assert_int_eq(tokens.invalid_utf8, 1);
    ck_assert_uint_eq(tokens.count, 4); /* [CLS] a ##a [SEP]: U+FFFD is cleaned away */
    khub_tokens_free(&tokens);
    ck_khub_ok(khub_tokenizer_encode(&tokens, t, "a\xEF\xBF\xBD", 4, 0, &err), &err);
    ck_assert_int_eq(tokens.invalid_utf8, 0); /* a U+FFFD that was there is fine */
    khub_tokens_free(&tokens);
    khub_tokenizer_close(t);
}
END_TEST

/* A tokenizer whose added tokens are `added`. */
static khub_tokenizer *with_added(const char *added)
{
    char json[4000];
    khub_error err = {0};
    khub_tokenizer *t;
    snprintf(json, sizeof(json), "{\"added_tokens\":[%s]," NORMALIZER "," PRE "," MODEL "}", added);
    ck_khub_ok(open_text(&t, json, &err), &err);
    return t;
}

START_TEST(added_tokens)
{
    khub_tokenizer *t = with_added(TOKEN(20, "<m>", ",\"single_word\":true") "," TOKEN(
        21, "<l>", ",\"lstrip\":true,\"rstrip\":true") "," TOKEN(22, "<ll>",
                                                                 "") "," TOKEN(23, "<l",
                                                                               "") "," TOKEN(24, " q", ""));
    expect(t, "<m>", "20");
    expect(t, "a<m>", "8 1 1 1"); /* "<", "m", ">": not alone */
    expect(t, "<m>a", "1 1 1 8");
    expect(t, "_<m>", "1 1 1 1");
    expect(t, ",<m>,", "13 20 13");
    expect(t, "a <l>\xE3\x80\x80 a", "8 21 8");
    expect(t, "<ll>", "22");
    expect(t, "<lll", "23 1");
    expect(t, "<l> q", "21 24"); /* found in the white space that <l> took along */
    ck_assert_int_eq(khub_tokenizer_size(t), 25);
    ck_assert_str_eq(khub_tokenizer_token(t, 23), "<l");
    ck_assert_ptr_null(khub_tokenizer_token(t, 19));
    khub_tokenizer_close(t);

    t = with_added(TOKEN(20, "Hello A", ",\"normalized\":true") "," TOKEN(21, "x", ""));
    expect(t, "HELLO \xC3\x81,hello a", "20 13 20");
    expect(t, "hello  a", "10 8");
    expect(t, "a x xx", "8 21 21 21");
    khub_tokenizer_close(t);
}
END_TEST

START_TEST(normalization_step_by_step)
{
    static const struct {
        khub__normalizer flags;
        const char *text, *normalized;
    } table[] = {
        {{0}, "A\x01\xC3\x81\xE6\xBC\xA2\t", "A\x01\xC3\x81\xE6\xBC\xA2\t"},
        {{.clean = 1}, "A\x01\t\xC2\x85\xE2\x80\x83\xEF\xBF\xBD.", "A  ."},
        {{.ideographs = 1}, "\xE6\xBC\xA2", " \xE6\xBC\xA2 "},
        {{.strip = 1}, "\xC3\x81\xCC\x81.", "A."},
        {{.lower = 1},
         "\xC4\xB0\xCE\xA3\xC3\x81",
         "i\xCC\x87\xCF\x83\xC3\xA1"}, /* i + dot, sigma that isn't final */
        {{.strip = 1}, "\xEA\xB0\x81", "\xE1\x84\x80\xE1\x85\xA1\xE1\x86\xA8"}, /* Hangul into its letters */
        /* U+1D16D (class 226) and U+1D165 (216) change places across U+0301 (stripped), but not across a
           letter */
        {{.strip = 1}, "\xF0\x9D\x85\xAD\xCC\x81\xF0\x9D\x85\xA5", "\xF0\x9D\x85\xA5\xF0\x9D\x85\xAD"},
        {{.strip = 1}, "\xF0\x9D\x85\xAD.\xF0\x9D\x85\xA5", "\xF0\x9D\x85\xAD.\xF0\x9D\x85\xA5"},
        {{.strip = 1, .clean = 1},
         "\xF0\x9D\x85\xAD\x01\xF0\x9D\x85\xA5",
         "\xF0\x9D\x85\xA5\xF0\x9D\x85\xAD"},
        {{.strip = 1}, "\xF0\x9D\x85\xAD\x01\xF0\x9D\x85\xA5", "\xF0\x9D\x85\xAD\x01\xF0\x9D\x85\xA5"},
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
        khub__normalizer normalizer = table[i].flags;
        khub__normalizer_prepare(&normalizer);
        khub__normalized out = {0};
        ck_assert_int_eq(khub__normalize(&out, &normalizer, table[i].text, strlen(table[i].text)), 0);
        ck_assert_msg(out.length == strlen(table[i].normalized) &&
                          !memcmp(out.data, table[i].normalized, out.length),
                      "row %zu gave %.*s", i, (int)out.length, out.data);
        khub__normalized_free(&out);
    }
}
END_TEST

static const struct {
    const char *json;
    int status;
    const char *words;
} refusals[] = {
    {"", KHUB_E_FORMAT, "t.json:1: not valid JSON"},
    {"[]", KHUB_E_FORMAT, "is an array"},
    {"{}", KHUB_E_FORMAT, "has no \"model\""},
    {"{\"version\":\"2.0\"}", KHUB_E_UNSUPPORTED, "version \"2.0\" is not supported"},
    {"{\"model\":5}", KHUB_E_FORMAT, "\"model\" is an integer"},
    {"{\"model\":{\"type\":\"BPE\",\"vocab\":{}}}", KHUB_E_UNSUPPORTED,
     "model \"BPE\" is not supported, WordPiece is"},
    {"{\"model\":{\"vocab\":{}}}", KHUB_E_UNSUPPORTED, "without a type"},
    {"{\"model\":{\"type\":\"WordPiece\"}}", KHUB_E_FORMAT, "no \"vocab\""},
    {"{\"model\":{\"type\":\"WordPiece\",\"vocab\":{}}}", KHUB_E_FORMAT, "no \"vocab\", or an empty one"},
    {"{\"model\":{\"type\":\"WordPiece\",\"vocab\":[\"a\"]}}", KHUB_E_FORMAT, "no \"vocab\""},
    {"{\"model\":{\"type\":\"WordPiece\",\"vocab\":{\"a\":0}}}", KHUB_E_FORMAT, "unknown token \"[UNK]\""},
    {"{\"model\":{\"type\":\"WordPiece\",\"unk_token\":7,\"vocab\":{\"a\":0}}}", KHUB_E_FORMAT,
     "\"unk_token\" is an integer"},
    {"{\"model\":{\"type\":\"WordPiece\",\"max_input_chars_per_word\":-1,\"vocab\":{\"[UNK]\":0}}}",
     KHUB_E_FORMAT, "is -1"},
    {"{\"model\":{\n\"vocab\":{\"a\":\n-1}}}", KHUB_E_FORMAT,
     "t.json:3: the id of token \"a\" is no whole number"},
    {"{\"model\":{\"vocab\":{\"a\":1.5}}}", KHUB_E_FORMAT, "no whole number"},
    {"{\"model\":{\"vocab\":{\"a\":1e3}}}", KHUB_E_FORMAT, "no whole number"},
    {"{\"model\":{\"vocab\":{\"a\":01}}}", KHUB_E_FORMAT, "no whole number"},
    {"{\"model\":{\"vocab\":{\"a\":\"1\"}}}", KHUB_E_FORMAT, "no whole number"},
    {"{\"model\":{\"vocab\":{\"a\":4194304}}}", KHUB_E_FORMAT,
     "token \"a\" has id 4194304, ids are 0 to 65535"},
    {"{\"model\":{\"vocab\":{\"a\":99999999999999999999999999}}}", KHUB_E_FORMAT, "ids are 0 to"},
    {"{\"model\":{\"vocab\":{\"a\":1,\"b\":1}}}", KHUB_E_FORMAT, "tokens \"a\" and \"b\" both have id 1"},
    {"{\"model\":{\"type\":\"WordPiece\",\"vocab\":{\"a\":1,\"a\":2}}}", KHUB_E_FORMAT,
     "token \"a\" has ids 1 and 2"},
    {"{\"model\":{\"vocab\":{\"a\":1,}}}", KHUB_E_FORMAT, "a token in quotes"},
    {"{\"model\":{\"vocab\":{\"a\" 1}}}", KHUB_E_FORMAT, "a colon"},
    {"{\"model\":{\"vocab\":{\"a\":1 \"b\":2}}}", KHUB_E_FORMAT, "a comma"},
    {"{\"model\":{\"vocab\":{\"a\":1", KHUB_E_FORMAT, "a comma or the end"},
    {"{\"model\":{\"vocab\":{\"a", KHUB_E_FORMAT, "a string without an end"},
    {"{\"model\":{\"vocab\":{\"a\\", KHUB_E_FORMAT, "a backslash"},
    {"{\"model\":{\"vocab\":{\"a\\x\":1}}}", KHUB_E_FORMAT, "a backslash"},
    {"{\"model\":{\"vocab\":{\"a\nb\":1}}}", KHUB_E_FORMAT, "control character"},
    {"{\"model\":{\"vocab\":{\"\\u00g0\":1}}}", KHUB_E_FORMAT, "four hex digits"},
    {"{\"model\":{\"vocab\":{\"\\u00", KHUB_E_FORMAT, "four hex digits"},
    {"{\"model\":{\"vocab\":{\"\\u0000\":1}}}", KHUB_E_FORMAT, "\\u0000"},
    {"{\"model\":{\"vocab\":{\"\\ud800\":1}}}", KHUB_E_FORMAT, "surrogate"},
    {"{\"model\":{\"vocab\":{\"\\udc00\\ud800\":1}}}", KHUB_E_FORMAT, "surrogate"},
    {"{\"model\":{\"vocab\":{\"\xFF\":1}}}", KHUB_E_FORMAT, "is not UTF-8"},
    {"{\"model\":{\"vocab\":{\"a\":1}},\"model\":{}}", KHUB_E_FORMAT, "duplicate"},
    {"{\"model\":{\"vocab\":{\"a\":\n1\n}},\nx}", KHUB_E_FORMAT, "t.json:4: not valid JSON"},
    {FILE_OF("\"normalizer\":{\"type\":\"Lowercase\"}," PRE "," MODEL), KHUB_E_UNSUPPORTED,
     "normalizer \"Lowercase\""},
    {FILE_OF("\"normalizer\":{}," PRE "," MODEL), KHUB_E_FORMAT, "\"normalizer\" has no \"type\""},
    {FILE_OF("\"normalizer\":{\"type\":\"BertNormalizer\",\"lowercase\":1}," PRE "," MODEL), KHUB_E_FORMAT,
     "\"lowercase\" is an integer"},
    {FILE_OF(NORMALIZER "," MODEL), KHUB_E_UNSUPPORTED, "pre_tokenizer \"null\""},
    {FILE_OF(NORMALIZER ",\"pre_tokenizer\":{\"type\":\"Metaspace\"}," MODEL), KHUB_E_UNSUPPORTED,
     "pre_tokenizer \"Metaspace\""},
    {FILE_OF(PRE "," MODEL ",\"added_tokens\":{}"), KHUB_E_FORMAT, "\"added_tokens\" is an object"},
    {FILE_OF(PRE "," MODEL ",\"added_tokens\":[7]"), KHUB_E_FORMAT,
     "entry 0 of \"added_tokens\" is an integer"},
    {FILE_OF(PRE "," MODEL ",\"added_tokens\":[{\"id\":3}]"), KHUB_E_FORMAT, "has no \"content\""},
    {FILE_OF(PRE "," MODEL ",\"added_tokens\":[" TOKEN(5, "[SEP]", "") "]"), KHUB_E_FORMAT,
     "\"[SEP]\" has id 5, in the vocabulary it has 3"},
    {FILE_OF(PRE "," MODEL ",\"added_tokens\":[" TOKEN(3, "new", "") "]"), KHUB_E_FORMAT,
     "tokens \"[SEP]\" and \"new\" both have id 3"},
    {FILE_OF(PRE "," MODEL ",\"added_tokens\":[" TOKEN(99999999, "new", "") "]"), KHUB_E_FORMAT,
     "has id 99999999"},
    {FILE_OF(NORMALIZER "," PRE "," MODEL
                        ",\"added_tokens\":[" TOKEN(50, "\\u0301", ",\"normalized\":true") "]"),
     KHUB_E_FORMAT, "nothing is left"},
    {FILE_OF(PRE "," MODEL ",\"post_processor\":{\"type\":\"RobertaProcessing\"}"), KHUB_E_UNSUPPORTED,
     "RobertaProcessing"},
    {FILE_OF(PRE "," MODEL ",\"post_processor\":{\"type\":\"BertProcessing\"}"), KHUB_E_FORMAT,
     "an id that is none"},
    {FILE_OF(PRE "," MODEL
                 ",\"post_processor\":{\"type\":\"BertProcessing\",\"cls\":[\"x\",77],\"sep\":[\"x\",1]}"),
     KHUB_E_FORMAT, "id 77, which no token has"},
    {FILE_OF(PRE "," MODEL ",\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":\"$A\"}"),
     KHUB_E_FORMAT, "\"single\" is a string"},
    {FILE_OF(PRE "," MODEL ",\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":[]}"),
     KHUB_E_FORMAT, "the text once"},
    {FILE_OF(
         PRE
         "," MODEL
         ",\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":[{\"Sequence\":{\"id\":\"B\"}}]}"),
     KHUB_E_FORMAT, "neither a special token nor the text"},
    {FILE_OF(PRE "," MODEL ",\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":[{"
                 "\"SpecialToken\":{\"id\":\"[X]\"}}]}"),
     KHUB_E_FORMAT, "doesn't describe"},
};

START_TEST(files_that_are_refused)
{
    for (size_t i = 0; i < sizeof(refusals) / sizeof(*refusals); i++) {
        khub_error err = {0};
        khub_tokenizer *t;
        ck_khub_fails(open_text(&t, refusals[i].json, &err), &err, refusals[i].status, refusals[i].words);
    }
}
END_TEST

START_TEST(every_prefix_of_a_file_is_refused)
{
    khub_error err = {0};
    for (size_t n = 0; n < strlen(USUAL); n++) {
        khub_tokenizer *t;
        int rc = open_bytes(&t, USUAL, n, &err);
        ck_assert_str_eq(khub_status_name(rc), "KHUB_E_FORMAT");
        khub_error_clear(&err);
    }
}
END_TEST

START_TEST(json_bombs)
{
    enum { N = 1 << 20 };
    static const char *const heads[] = {
        "", "{\"model\":{\"vocab\":{\"a\":", "{\"model\":{\"vocab\":{\"a\":0}},\"x\":"};
    khub_error err = {0};
    khub_tokenizer *t;
    char *text = malloc(N + 100);
    for (size_t i = 0; i < sizeof(heads) / sizeof(*heads); i++) {
        size_t length = strlen(heads[i]);
        memcpy(text, heads[i], length);
        memset(text + length, '[', N);
        ck_assert_int_eq(open_bytes(&t, text, length + N, &err), KHUB_E_FORMAT);
        khub_error_clear(&err);
    }
    free(text);
}
END_TEST

/* Tokens made to share a hash would make a search as long as the vocabulary. */
START_TEST(tokens_with_one_hash)
{
    enum { N = 1002 };
    khub__vocabulary vocabulary = {.limit = N};
    khub_error err = {0};
    char(*texts)[16] = calloc(N, sizeof(*texts));
    int found = 0;
    for (unsigned n = 0; found < N; n++) { /* the low 11 bits choose among the 2,048 and more slots */
        snprintf(texts[found], sizeof(*texts), "%u", n);
        if ((khub__hash(KHUB__HASH_START, texts[found], strlen(texts[found])) & 2047) == 0) found++;
    }
    for (int i = 0; i < N; i++)
        ck_khub_ok(khub__vocabulary_set(&vocabulary, texts[i], strlen(texts[i]), i, "v", &err), &err);
    ck_khub_fails(khub__vocabulary_index(&vocabulary, 0, "v", &err), &err, KHUB_E_FORMAT, "collide");
    khub__vocabulary_free(&vocabulary);
    free(texts);
}
END_TEST

static char directory[64];

static void write_file(const char *name, const char *text)
{
    char path[128];
    snprintf(path, sizeof(path), "%s/%s", directory, name);
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_ge(fputs(text, file), 0);
    ck_assert_int_eq(fclose(file), 0);
}

static void remove_file(const char *name)
{
    char path[128];
    snprintf(path, sizeof(path), "%s/%s", directory, name);
    unlink(path);
}

static void make_directory(void)
{
    strcpy(directory, "/tmp/khub-tokenizer-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(directory));
}

static void remove_directory(void)
{
    static const char *const names[] = {"tokenizer.json", "vocab.txt", "tokenizer_config.json"};
    for (size_t i = 0; i < 3; i++)
        remove_file(names[i]);
    ck_assert_int_eq(rmdir(directory), 0);
}

static const char vocab_txt[] = "[PAD]\n[UNK]\r\n[CLS]\n[SEP]\n[MASK]\n\na\n##b \n\xC3\x81\na\n\xE6\xBC\xA2";

START_TEST(directory_with_vocab_txt)
{
    make_directory();
    khub_error err = {0};
    khub_tokenizer *t;
    ck_khub_fails(khub_tokenizer_open(&t, directory, &err), &err, KHUB_E_NOTFOUND,
                  "neither tokenizer.json nor vocab.txt");
    write_file("vocab.txt", vocab_txt);
    ck_khub_ok(khub_tokenizer_open(&t, directory, &err), &err);
    expect(t, "Ab \xC3\x81 [MASK] x\xE6\xBC\xA2", "2 9 7 9 4 1 10 3"); /* of the two "a" the later counts */
    ck_assert_int_eq(khub_tokenizer_size(t), 11);
    ck_assert_ptr_null(khub_tokenizer_token(t, 5)); /* the empty line */
    khub_tokenizer_close(t);

    write_file("tokenizer_config.json",
               "{\"do_lower_case\":false,\"tokenize_chinese_chars\":false,\"mask_token\":"
               "{\"content\":\"[MASK]\",\"lstrip\":true},\"tokenizer_class\":\"BertTokenizer\"}");
    ck_khub_ok(khub_tokenizer_open(&t, directory, &err), &err);
    expect(t, "A \xC3\x81 [MASK] x\xE6\xBC\xA2", "2 1 8 4 1 3");
    khub_tokenizer_close(t);

    write_file("tokenizer_config.json", "{\"do_lower_case\":false,\"strip_accents\":true}");
    ck_khub_ok(khub_tokenizer_open(&t, directory, &err), &err);
    expect(t, "a\xCC\x81 A", "2 9 1 3");
    khub_tokenizer_close(t);

    static const struct {
        const char *config;
        int status;
        const char *words;
    } table[] = {{"{\"tokenizer_class\":\"T5Tokenizer\"}", KHUB_E_UNSUPPORTED, "T5Tokenizer"},
                 {"{\"do_basic_tokenize\":false}", KHUB_E_UNSUPPORTED, "do_basic_tokenize"},
                 {"{\"cls_token\":\"<s>\"}", KHUB_E_FORMAT, "the cls_token \"<s>\" is not in it"},
                 {"{\"unk_token\":{\"content\":7}}", KHUB_E_FORMAT, "\"content\" is an integer"},
                 {"{\"do_lower_case\":\"yes\"}", KHUB_E_FORMAT, "\"do_lower_case\" is a string"},
                 {"[]", KHUB_E_FORMAT, "tokenizer_config.json: is an array"}};
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
        write_file("tokenizer_config.json", table[i].config);
        ck_khub_fails(khub_tokenizer_open(&t, directory, &err), &err, table[i].status, table[i].words);
    }
    remove_file("tokenizer_config.json");
    write_file("vocab.txt", "");
    ck_khub_fails(khub_tokenizer_open(&t, directory, &err), &err, KHUB_E_FORMAT, "vocab.txt: has no tokens");
    write_file("vocab.txt", "a\n\xC3\n");
    ck_khub_fails(khub_tokenizer_open(&t, directory, &err), &err, KHUB_E_FORMAT, "not UTF-8 from byte 2 on");
    write_file("vocab.txt", "a\n");
    ck_khub_fails(khub_tokenizer_open(&t, directory, &err), &err, KHUB_E_FORMAT, "the unk_token \"[UNK]\"");
    write_file("tokenizer.json", USUAL); /* goes before vocab.txt */
    ck_khub_ok(khub_tokenizer_open(&t, directory, &err), &err);
    expect(t, "hello", "2 10 3");
    khub_tokenizer_close(t);
    remove_directory();
}
END_TEST

/* The work must grow as the text does: with its square, a text of this size takes longer than a test may. */
START_TEST(long_texts)
{
    enum { N = 1000000 };
    khub_tokenizer *t = usual();
    static const char *const units[] = {"a", "\xCC\x81", "\xF0\x9D\x85\xAD\xF0\x9D\x85\xA5", "[", " ", "\xFF",
                                        ",", "[MASK"};
    char *text = malloc(N);
    for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++) {
        size_t unit = strlen(units[i]), n = N / unit * unit;
        for (size_t at = 0; at < n; at += unit)
            memcpy(text + at, units[i], unit);
        khub_error err = {0};
        khub_tokens tokens;
        ck_khub_ok(khub_tokenizer_encode(&tokens, t, text, n, 0, &err), &err);
        ck_assert_uint_ge(tokens.count, 2);
        khub_tokens_free(&tokens);
    }
    free(text);
    khub_tokenizer_close(t);
}
END_TEST

/* jansson keeps the C library's memory here, for the reason that test_metadata.c gives. */
static int open_and_encode(void *text, khub_error *err)
{
    khub_tokenizer *t;
    khub_tokens tokens;
    json_set_alloc_funcs(malloc, free);
    int rc = khub_tokenizer_open(&t, directory, err);
    if (rc == KHUB_OK) rc = khub_tokenizer_encode(&tokens, t, text, strlen(text), 0, err);
    if (rc == KHUB_OK) khub_tokens_free(&tokens);
    khub_tokenizer_close(t);
    return rc;
}

START_TEST(every_allocation_fails_in_turn)
{
    char text[] = "Hello, W\xC3\xB6RLD [SEP] \xF0\x9D\x85\xAD\xF0\x9D\x85\xA5 \xFF unaffable";
    make_directory();
    write_file("tokenizer.json",
               FILE_OF("\"added_tokens\":[" TOKEN(3, "[SEP]", "") "," TOKEN(
                   30, "Q q", ",\"normalized\":true") "]," NORMALIZER "," PRE "," POST "," MODEL));
    fm_fail_each(open_and_encode, text);
    remove_file("tokenizer.json");
    write_file("vocab.txt", vocab_txt);
    write_file("tokenizer_config.json", "{\"do_lower_case\":true}");
    fm_fail_each(open_and_encode, text);
    remove_directory();
}
END_TEST

UNIT("tokenizer", words_and_pieces, cutting_keeps_the_special_tokens, broken_utf8, added_tokens,
     normalization_step_by_step, files_that_are_refused, every_prefix_of_a_file_is_refused, json_bombs,
     tokens_with_one_hash, directory_with_vocab_txt, long_texts, every_allocation_fails_in_turn)
