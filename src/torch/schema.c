#include "torch/schema.h"

#include "base/error.h"
#include "base/memory.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { MAX_TEXT = 64 * 1024 };

/* Where reading stands. */
typedef struct reader {
    khub__schema *schema;
    const char *at;
    char *texts; /* where the next text goes */
    khub_error *err;
} reader;

static const struct {
    const char *name;
    khub__schema_kind kind;
} kinds[] = {
    {"Tensor", KHUB__SCHEMA_TENSOR},       {"int", KHUB__SCHEMA_INT},
    {"SymInt", KHUB__SCHEMA_INT},          {"float", KHUB__SCHEMA_FLOAT},
    {"bool", KHUB__SCHEMA_BOOL},           {"str", KHUB__SCHEMA_STR},
    {"ScalarType", KHUB__SCHEMA_DTYPE},    {"Device", KHUB__SCHEMA_DEVICE},
    {"Layout", KHUB__SCHEMA_LAYOUT},       {"MemoryFormat", KHUB__SCHEMA_MEMORY_FORMAT},
    {"Generator", KHUB__SCHEMA_GENERATOR},
};

/* Types whose parentheses hold types, and don't say what shares memory. */
static const char *const generic[] = {"Dict", "Tuple", "NamedTuple", "Future", "Await", "RRef", "Union"};

static int is_piece(khub__piece piece, const char *word)
{
    return piece.length == strlen(word) && memcmp(piece.at, word, piece.length) == 0;
}

static int fail(const reader *r, const char *expected)
{
    return khub__fail(r->err, KHUB_E_FORMAT, "schema \"%.200s\": at \"%.40s\" there should be %s",
                      r->schema->text, r->at, expected);
}

static void skip_spaces(reader *r)
{
    while (*r->at == ' ')
        r->at++;
}

/* 1: the next word is `word`, now behind us. */
static int take(reader *r, const char *word)
{
    skip_spaces(r);
    size_t n = strlen(word);
    if (strncmp(r->at, word, n) != 0) return 0;
    r->at += n;
    return 1;
}

static int is_word_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

static int is_name_letter(char c)
{
    return is_word_letter(c) || c == '.' || c == ':' || c == '<' || c == '>';
}

static khub__piece take_letters(reader *r, int (*is_letter)(char))
{
    skip_spaces(r);
    khub__piece piece = {r->at, 0};
    while (is_letter(*r->at))
        r->at++;
    piece.length = (size_t)(r->at - piece.at);
    return piece;
}

/* Goes past the parenthesis that closes the one at r->at, whatever stands between. */
static int skip_parentheses(reader *r)
{
    int depth = 0;
    const char *from = r->at;
    for (; *r->at; r->at++) {
        depth += (*r->at == '(') - (*r->at == ')');
        if (depth == 0) {
            r->at++;
            return KHUB_OK;
        }
    }
    r->at = from;
    return fail(r, "a parenthesis that is closed");
}

static int is_generic(khub__piece name)
{
    for (size_t i = 0; i < sizeof(generic) / sizeof(*generic); i++)
        if (is_piece(name, generic[i])) return 1;
    return 0;
}

static khub__schema_kind kind_of(khub__piece name)
{
    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
        if (is_piece(name, kinds[i].name)) return kinds[i].kind;
    return KHUB__SCHEMA_OTHER;
}

static int parse_base(reader *r, khub__schema_type *type)
{
    int rc = KHUB_OK;
    type->name = take_letters(r, is_name_letter);
    if (*r->at == '(' && (type->name.length == 0 || is_generic(type->name))) {
        rc = skip_parentheses(r);
        type->name.length = (size_t)(r->at - type->name.at);
    }
    if (rc == KHUB_OK && type->name.length == 0) rc = fail(r, "a type");
    type->kind = kind_of(type->name);
    return rc;
}

static int parse_alias(reader *r, khub__schema_type *type)
{
    if (type->alias.at) return fail(r, "one \"(…)\" alone");
    size_t n = strcspn(++r->at, "()");
    if (r->at[n] != ')') return fail(r, "a parenthesis that is closed");
    type->alias.at = r->at;
    type->alias.length = n;
    type->alias_after = type->wrap_count;
    type->writes = memchr(r->at, '!', n) != NULL;
    r->at += n + 1;
    return KHUB_OK;
}

/* 1: an int64 of decimal digits, now behind us. */
static int take_int(reader *r, int64_t *out)
{
    char *end;
    if (*r->at != '-' && !(*r->at >= '0' && *r->at <= '9')) return 0;
    errno = 0;
    long long number = strtoll(r->at, &end, 10);
    if (errno || end == r->at) return 0;
    *out = number;
    r->at = end;
    return 1;
}

static int parse_wrap(reader *r, khub__schema_type *type)
{
    if (type->wrap_count == KHUB__SCHEMA_WRAPS) return fail(r, "fewer \"?\" and \"[]\"");
    khub__schema_wrap *wrap = &type->wraps[type->wrap_count++];
    wrap->is_list = *r->at++ == '[';
    wrap->size = -1;
    if (!wrap->is_list) return KHUB_OK;
    if (*r->at != ']' && (!take_int(r, &wrap->size) || wrap->size < 0))
        return fail(r, "the length of a list");
    return take(r, "]") ? KHUB_OK : fail(r, "\"]\"");
}

static int parse_type(reader *r, khub__schema_type *type)
{
    int rc = parse_base(r, type);
    while (rc == KHUB_OK && *r->at && strchr("?[(", *r->at))
        rc = *r->at == '(' ? parse_alias(r, type) : parse_wrap(r, type);
    return rc;
}

/* What follows a backslash. */
static char escaped(reader *r)
{
    static const char from[] = "abfnrtv", to[] = "\a\b\f\n\r\t\v";
    if (*r->at >= '0' && *r->at <= '7') {
        unsigned code = 0;
        for (int i = 0; i < 3 && *r->at >= '0' && *r->at <= '7'; i++)
            code = code * 8 + (unsigned)(*r->at++ - '0');
        return (char)(unsigned char)code;
    }
    const char *found = strchr(from, *r->at);
    return found ? (r->at++, to[found - from]) : *r->at++;
}

static int parse_text(reader *r, khub__schema_value *value)
{
    char quote = *r->at++;
    value->kind = KHUB__SCHEMA_VALUE_TEXT;
    value->text.at = r->texts;
    while (*r->at && *r->at != quote) {
        char c = *r->at++;
        if (c == '\\' && !*r->at) break;
        *r->texts++ = c == '\\' ? escaped(r) : c;
    }
    value->text.length = (size_t)(r->texts - value->text.at);
    *r->texts++ = 0;
    return *r->at++ == quote ? KHUB_OK : (r->at--, fail(r, "the end of a text"));
}

/* Everything up to the next comma or bracket outside of brackets. */
static khub__piece take_word(reader *r)
{
    khub__piece piece = {r->at, 0};
    for (int depth = 0; *r->at; r->at++) {
        if (depth == 0 && strchr(",)]", *r->at)) break;
        depth += (*r->at == '(' || *r->at == '[') - (*r->at == ')' || *r->at == ']');
    }
    piece.length = (size_t)(r->at - piece.at);
    return piece;
}

/* "1.", "-0.5", "1e-08", "inf", "nan". */
static int is_float(khub__piece word, double *out)
{
    char text[64], *end;
    if (word.length == 0 || word.length >= sizeof(text)) return 0;
    memcpy(text, word.at, word.length);
    text[word.length] = 0;
    if (strspn(text, "+-.0123456789einfa") != word.length) return 0;
    *out = strtod(text, &end);
    return *end == 0;
}

static int parse_scalar(reader *r, khub__schema_value *value)
{
    if (*r->at == '"' || *r->at == '\'') return parse_text(r, value);
    khub__piece word = take_word(r);
    reader number = {.at = word.at};
    value->text = word;
    if (word.length == 0) return fail(r, "a value");
    if (take_int(&number, &value->i) && number.at == r->at)
        value->kind = KHUB__SCHEMA_VALUE_INT;
    else if (is_float(word, &value->f))
        value->kind = KHUB__SCHEMA_VALUE_FLOAT;
    else if (is_piece(word, "None"))
        value->kind = KHUB__SCHEMA_NONE;
    else if (is_piece(word, "True") || is_piece(word, "False")) {
        value->kind = KHUB__SCHEMA_VALUE_BOOL;
        value->i = *word.at == 'T';
    } else {
        value->kind = KHUB__SCHEMA_VALUE_OTHER;
    }
    return KHUB_OK;
}

static int parse_item(reader *r)
{
    khub__schema *s = r->schema;
    if (khub__grow((void **)&s->items, &s->item_capacity, s->item_count + 1, sizeof(*s->items), MAX_TEXT))
        return khub__fail_memory(r->err, "reading a schema");
    khub__schema_value *item = &s->items[s->item_count++];
    memset(item, 0, sizeof(*item));
    skip_spaces(r);
    return parse_scalar(r, item);
}

static int parse_list(reader *r, khub__schema_value *value)
{
    int rc = KHUB_OK;
    value->kind = KHUB__SCHEMA_VALUE_LIST;
    value->i = (int64_t)r->schema->item_count;
    if (!take(r, "]")) {
        do
            rc = parse_item(r);
        while (rc == KHUB_OK && take(r, ","));
        if (rc == KHUB_OK && !take(r, "]")) rc = fail(r, "\"]\"");
    }
    value->count = r->schema->item_count - (size_t)value->i;
    return rc;
}

static int parse_argument(reader *r, khub__schema_argument *argument)
{
    int rc = parse_type(r, &argument->type);
    if (rc != KHUB_OK) return rc;
    argument->name = take_letters(r, is_word_letter);
    if (!take(r, "=")) return KHUB_OK;
    if (*r->at != '[') return parse_scalar(r, &argument->value);
    r->at++;
    return parse_list(r, &argument->value);
}

static khub__schema_argument *next_argument(reader *r, khub__schema_argument **list, size_t *count,
                                            size_t *capacity)
{
    if (khub__grow((void **)list, capacity, *count + 1, sizeof(**list), MAX_TEXT)) {
        khub__fail_memory(r->err, "reading a schema");
        return NULL;
    }
    khub__schema_argument *argument = &(*list)[(*count)++];
    memset(argument, 0, sizeof(*argument));
    return argument;
}

static int parse_one_of_arguments(reader *r)
{
    khub__schema *s = r->schema;
    if (take(r, "...")) {
        s->more_arguments = 1;
        return KHUB_OK;
    }
    if (s->keyword_at == SIZE_MAX && take(r, "*")) {
        s->keyword_at = s->argument_count;
        return KHUB_OK;
    }
    khub__schema_argument *argument =
        next_argument(r, &s->arguments, &s->argument_count, &s->argument_capacity);
    if (!argument) return KHUB_E_NOMEM;
    int rc = parse_argument(r, argument);
    return rc == KHUB_OK && argument->name.length == 0 ? fail(r, "an argument's name") : rc;
}

static int parse_one_of_results(reader *r)
{
    khub__schema *s = r->schema;
    if (take(r, "...")) {
        s->more_results = 1;
        return KHUB_OK;
    }
    khub__schema_argument *result = next_argument(r, &s->results, &s->result_count, &s->result_capacity);
    return result ? parse_argument(r, result) : KHUB_E_NOMEM;
}

/* "(A, B)" */
static int parse_many(reader *r, int (*parse_one)(reader *))
{
    int rc = KHUB_OK;
    if (!take(r, "(")) return fail(r, "\"(\"");
    if (take(r, ")")) return KHUB_OK;
    do
        rc = parse_one(r);
    while (rc == KHUB_OK && take(r, ","));
    if (rc == KHUB_OK && !take(r, ")")) rc = fail(r, "\",\" or \")\"");
    return rc;
}

static int parse_name(reader *r)
{
    khub__schema *s = r->schema;
    s->name = take_letters(r, is_name_letter);
    s->overload.at = r->at;
    const char *dot = s->name.length ? memchr(s->name.at, '.', s->name.length) : NULL;
    if (dot) {
        s->overload.at = dot + 1;
        s->overload.length = (size_t)(r->at - dot - 1);
        s->name.length = (size_t)(dot - s->name.at);
    }
    return s->name.length ? KHUB_OK : fail(r, "an operator's name");
}

static int parse(reader *r)
{
    khub__schema *s = r->schema;
    s->keyword_at = SIZE_MAX;
    int rc = parse_name(r);
    if (rc == KHUB_OK) rc = parse_many(r, parse_one_of_arguments);
    if (s->keyword_at == SIZE_MAX) s->keyword_at = s->argument_count;
    if (rc == KHUB_OK && !take(r, "->")) rc = fail(r, "\"->\"");
    skip_spaces(r);
    if (rc == KHUB_OK) rc = *r->at == '(' ? parse_many(r, parse_one_of_results) : parse_one_of_results(r);
    if (rc == KHUB_OK && *r->at) rc = fail(r, "the end");
    return rc;
}

int khub__schema_parse(khub__schema *out, const char *text, khub_error *err)
{
    memset(out, 0, sizeof(*out));
    size_t length = strlen(text);
    if (length > MAX_TEXT)
        return khub__fail(err, KHUB_E_FORMAT, "schema: is %zu bytes long, at most %d are read", length,
                          MAX_TEXT);
    out->text = khub__strdup(text);
    out->texts = khub__malloc(length + 1); /* a text in quotes is longer than what it stands for */
    reader r = {out, out->text, out->texts, err};
    int rc = out->text && out->texts ? parse(&r) : khub__fail_memory(err, "reading a schema");
    if (rc != KHUB_OK) khub__schema_free(out);
    return rc;
}

void khub__schema_free(khub__schema *schema)
{
    khub__free(schema->text);
    khub__free(schema->texts);
    khub__free(schema->arguments);
    khub__free(schema->results);
    khub__free(schema->items);
    memset(schema, 0, sizeof(*schema));
}

static void write_piece(khub__text *text, khub__piece piece)
{
    khub__text_add_bytes(text, piece.at, piece.length);
}

static void write_alias(khub__text *text, const khub__schema_type *type, int after)
{
    if (!type->alias.at || type->alias_after != after) return;
    khub__text_add(text, "(");
    write_piece(text, type->alias);
    khub__text_add(text, ")");
}

void khub__schema_write_type(khub__text *text, const khub__schema_type *type)
{
    write_piece(text, type->name);
    write_alias(text, type, 0);
    for (int i = 0; i < type->wrap_count; i++) {
        const khub__schema_wrap *wrap = &type->wraps[i];
        if (!wrap->is_list)
            khub__text_add(text, "?");
        else if (wrap->size < 0)
            khub__text_add(text, "[]");
        else
            khub__text_addf(text, "[%lld]", (long long)wrap->size);
        write_alias(text, type, i + 1);
    }
}

static void write_quoted(khub__text *text, khub__piece piece)
{
    static const char from[] = "\a\b\f\n\r\t\v\\\'\"", to[] = "abfnrtv\\\'\"";
    khub__text_add(text, "\"");
    for (size_t i = 0; i < piece.length; i++) {
        unsigned char c = (unsigned char)piece.at[i];
        const char *found = c ? strchr(from, c) : NULL;
        if (found)
            khub__text_addf(text, "\\%c", to[found - from]);
        else if (c < 32 || c > 126)
            khub__text_addf(text, "\\%03o", c);
        else
            khub__text_addf(text, "%c", c);
    }
    khub__text_add(text, "\"");
}

/* A whole number ends in ".", all others have the 17 digits that tell every double from its neighbours. */
static void write_float(khub__text *text, double f)
{
    if (fabs(f) < 0x1p63 && f == (double)(int64_t)f)
        khub__text_addf(text, "%lld.", (long long)f);
    else
        khub__text_addf(text, "%.17g", f);
}

static void write_value(khub__text *text, const khub__schema *schema, const khub__schema_value *value)
{
    switch (value->kind) {
    case KHUB__SCHEMA_NO_VALUE:
        break;
    case KHUB__SCHEMA_NONE:
        khub__text_add(text, "None");
        break;
    case KHUB__SCHEMA_VALUE_INT:
        khub__text_addf(text, "%lld", (long long)value->i);
        break;
    case KHUB__SCHEMA_VALUE_BOOL:
        khub__text_add(text, value->i ? "True" : "False");
        break;
    case KHUB__SCHEMA_VALUE_FLOAT:
        write_float(text, value->f);
        break;
    case KHUB__SCHEMA_VALUE_TEXT:
        write_quoted(text, value->text);
        break;
    case KHUB__SCHEMA_VALUE_OTHER:
        write_piece(text, value->text);
        break;
    case KHUB__SCHEMA_VALUE_LIST:
        khub__text_add(text, "[");
        for (size_t i = 0; i < value->count; i++) {
            khub__text_add(text, i ? ", " : "");
            write_value(text, schema, &schema->items[value->i + (int64_t)i]);
        }
        khub__text_add(text, "]");
    }
}

static void write_argument(khub__text *text, const khub__schema *schema,
                           const khub__schema_argument *argument)
{
    khub__schema_write_type(text, &argument->type);
    if (argument->name.length) khub__text_add(text, " ");
    write_piece(text, argument->name);
    if (argument->value.kind != KHUB__SCHEMA_NO_VALUE) khub__text_add(text, "=");
    write_value(text, schema, &argument->value);
}

static void write_arguments(khub__text *text, const khub__schema *s)
{
    size_t written = 0;
    khub__text_add(text, "(");
    for (size_t i = 0; i < s->argument_count; i++) {
        if (i == s->keyword_at) khub__text_add(text, written++ ? ", *" : "*");
        khub__text_add(text, written++ ? ", " : "");
        write_argument(text, s, &s->arguments[i]);
    }
    if (s->more_arguments) khub__text_add(text, written ? ", ..." : "...");
    khub__text_add(text, ")");
}

static void write_results(khub__text *text, const khub__schema *s)
{
    size_t count = s->result_count + (size_t)s->more_results;
    /* a type that is a tuple would be taken for several results */
    int is_plain = count == 1 && !(s->result_count && *s->results->type.name.at == '(');
    if (!is_plain) khub__text_add(text, "(");
    for (size_t i = 0; i < s->result_count; i++) {
        khub__text_add(text, i ? ", " : "");
        write_argument(text, s, &s->results[i]);
    }
    if (s->more_results) khub__text_add(text, s->result_count ? ", ..." : "...");
    if (!is_plain) khub__text_add(text, ")");
}

void khub__schema_write(khub__text *text, const khub__schema *schema)
{
    write_piece(text, schema->name);
    if (schema->overload.length) khub__text_add(text, ".");
    write_piece(text, schema->overload);
    write_arguments(text, schema);
    khub__text_add(text, " -> ");
    write_results(text, schema);
}
