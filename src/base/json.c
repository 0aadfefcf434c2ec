#include "base/json.h"

#include "base/error.h"
#include "base/file.h"

/* An empty array or object takes 150 to 400 bytes in memory where it took two in the file. The header of a
 * model of 50,000 tensors counts 400,000. */
enum { MAX_DEPTH = 64, MAX_VALUES = 1 << 20 };

/* Where the quotation mark is that ends the string, with no odd number of backslashes before it; `length`:
 * there is none. */
static size_t end_of_string(const char *text, size_t from, size_t length)
{
    const char *mark;
    while (from < length && (mark = memchr(text + from, '"', length - from)) != NULL) {
        const char *before = mark;
        while (before > text + from && before[-1] == '\\')
            before--;
        if ((mark - before) % 2 == 0) return (size_t)(mark - text);
        from = (size_t)(mark - text) + 1;
    }
    return length;
}

/* jansson recurses on nesting and takes memory for every value, so both are counted before it starts;
 * brackets and commas are at least as many as values. NULL, or what there is too much of. */
static const char *excess(const char *text, size_t length)
{
    int depth = 0;
    size_t values = 0;
    for (size_t i = 0; i < length; i++) {
        char c = text[i];
        if (c == '"') {
            i = end_of_string(text, i + 1, length);
        } else if (c == '}' || c == ']') {
            depth--;
        } else if (c == '{' || c == '[' || c == ',') {
            if (c != ',' && ++depth > MAX_DEPTH) return "nested deeper than 64";
            if (++values > MAX_VALUES) return "holds more than a million values";
        }
    }
    return NULL;
}

/* jansson words some failed allocations as a mistake in the text, or says nothing at all. A text that parses
 * when it is tried again wasn't the reason. */
static int was_memory(const json_error_t *why, const char *text, size_t length)
{
    if (!why->text[0] || json_error_code(why) == json_error_out_of_memory) return 1;
    json_error_t again;
    json_t *root = json_loadb(text, length, JSON_REJECT_DUPLICATES, &again);
    json_decref(root);
    return root != NULL;
}

static int parse(json_t **out, const char *text, size_t length, json_type type, const char *file,
                 khub_error *err)
{
    *out = NULL;
    const char *much = excess(text, length);
    if (much) return khub__fail(err, KHUB_E_FORMAT, "%s: %s", file, much);
    json_error_t why;
    json_t *root = json_loadb(text, length, JSON_REJECT_DUPLICATES, &why);
    if (!root) {
        if (was_memory(&why, text, length)) return khub__fail_memory(err, "reading JSON");
        return khub__fail(err, KHUB_E_FORMAT, "%s:%d: not valid JSON: %s", file, why.line, why.text);
    }
    if (json_typeof(root) != type) {
        int rc = khub__fail(err, KHUB_E_FORMAT, "%s: is %s, an %s is expected", file,
                            khub__json_type_name(root), type == JSON_OBJECT ? "object" : "array");
        json_decref(root);
        return rc;
    }
    *out = root;
    return KHUB_OK;
}

int khub__json_parse(json_t **out, const char *text, size_t length, const char *file, khub_error *err)
{
    return parse(out, text, length, JSON_OBJECT, file, err);
}

int khub__json_parse_array(json_t **out, const char *text, size_t length, const char *file, khub_error *err)
{
    return parse(out, text, length, JSON_ARRAY, file, err);
}

static int read_file(json_t **out, const char *path, size_t max, json_type type, khub_error *err)
{
    *out = NULL;
    khub__bytes bytes;
    int rc = khub__file_read(&bytes, path, max, err);
    if (rc != KHUB_OK) return rc;
    rc = parse(out, bytes.data, bytes.length, type, path, err);
    khub__bytes_free(&bytes);
    return rc;
}

int khub__json_read(json_t **out, const char *path, size_t max, khub_error *err)
{
    return read_file(out, path, max, JSON_OBJECT, err);
}

int khub__json_read_array(json_t **out, const char *path, size_t max, khub_error *err)
{
    return read_file(out, path, max, JSON_ARRAY, err);
}

const char *khub__json_type_name(const json_t *value)
{
    static const char *const names[] = {"an object", "an array", "a string", "an integer",
                                        "a number",  "true",     "false",    "null"};
    return value ? names[json_typeof(value)] : "absent";
}

/* The value of a field that isn't absent or null. */
static const json_t *field(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    return json_is_null(value) ? NULL : value;
}

static int wrong(const json_t *value, const char *key, const char *expected, const khub__json_source *source)
{
    return khub__fail(source->err, KHUB_E_FORMAT, "%s: \"%s\" is %s, %s is expected", source->file, key,
                      khub__json_type_name(value), expected);
}

int khub__json_string(const char **out, const json_t *object, const char *key,
                      const khub__json_source *source)
{
    const json_t *value = field(object, key);
    if (value && !json_is_string(value)) return wrong(value, key, "a string", source);
    if (value) *out = json_string_value(value);
    return KHUB_OK;
}

int khub__json_integer(int64_t *out, const json_t *object, const char *key, const khub__json_source *source)
{
    const json_t *value = field(object, key);
    if (value && !json_is_integer(value)) return wrong(value, key, "an integer", source);
    if (value) *out = json_integer_value(value);
    return KHUB_OK;
}

int khub__json_number(double *out, const json_t *object, const char *key, const khub__json_source *source)
{
    const json_t *value = field(object, key);
    if (value && !json_is_number(value)) return wrong(value, key, "a number", source);
    if (value) *out = json_number_value(value);
    return KHUB_OK;
}

int khub__json_bool(int *out, const json_t *object, const char *key, const khub__json_source *source)
{
    const json_t *value = field(object, key);
    if (value && !json_is_boolean(value)) return wrong(value, key, "true or false", source);
    if (value) *out = json_is_true(value);
    return KHUB_OK;
}

int khub__json_object(const json_t **out, const json_t *object, const char *key,
                      const khub__json_source *source)
{
    const json_t *value = field(object, key);
    if (value && !json_is_object(value)) return wrong(value, key, "an object", source);
    if (value) *out = value;
    return KHUB_OK;
}

int khub__json_array(const json_t **out, const json_t *object, const char *key,
                     const khub__json_source *source)
{
    const json_t *value = field(object, key);
    if (value && !json_is_array(value)) return wrong(value, key, "an array", source);
    if (value) *out = value;
    return KHUB_OK;
}

void khub__json_add_string(khub__text *to, const char *text)
{
    if (!text) {
        khub__text_add(to, "null");
        return;
    }
    const unsigned char *s = (const unsigned char *)text;
    size_t left = strlen(text);
    khub__text_add(to, "\"");
    while (left) {
        size_t n = khub__utf8_length(s, left);
        if (n == 0)
            khub__text_add(to, "\xEF\xBF\xBD");
        else if (n == 1 && (*s == '"' || *s == '\\'))
            khub__text_addf(to, "\\%c", *s);
        else if ((n == 1 && (*s < 0x20 || *s == 0x7F)) || (*s == 0xC2 && s[1] < 0xA0))
            khub__text_addf(to, "\\u%04x", s[n - 1]); /* what steers a terminal; C2 80 is U+0080 */
        else
            khub__text_add_bytes(to, (const char *)s, n);
        s += n ? n : 1;
        left -= n ? n : 1;
    }
    khub__text_add(to, "\"");
}

static int add_piece(const char *piece, size_t length, void *to)
{
    khub__text_add_bytes(to, piece, length);
    return ((khub__text *)to)->failed ? -1 : 0;
}

void khub__json_add(khub__text *to, const json_t *value, size_t flags)
{
    if (!value || json_dump_callback(value, add_piece, to, flags) != 0) to->failed = 1;
}
