#include "tensor/npy_header.h"

#include "base/error.h"

#include <stdio.h>

static const char magic[] = "\x93NUMPY";
enum { MAGIC_LENGTH = 6 };

/* NumPy's words for the dtypes. `swap`: what a big-endian file has reversed, 0 where order means nothing.
 * float8_e5m2 is written by ml_dtypes' name, which numpy.load takes once ml_dtypes is imported: what
 * numpy.save itself writes for it ("<f1") numpy.load never takes. The words for the other two are
 * numpy.save's; numpy.load makes void of them. */
static const struct word {
    const char *word; /* without its byte order */
    uint8_t code, bits, swap;
    const char *written; /* NULL: read only */
} words[] = {
    {"b1", KHUB_DTYPE_BOOL, 8, 0, "|b1"},
    {"i1", KHUB_DTYPE_INT, 8, 0, "|i1"},
    {"i2", KHUB_DTYPE_INT, 16, 2, "<i2"},
    {"i4", KHUB_DTYPE_INT, 32, 4, "<i4"},
    {"i8", KHUB_DTYPE_INT, 64, 8, "<i8"},
    {"u1", KHUB_DTYPE_UINT, 8, 0, "|u1"},
    {"u2", KHUB_DTYPE_UINT, 16, 2, "<u2"},
    {"u4", KHUB_DTYPE_UINT, 32, 4, "<u4"},
    {"u8", KHUB_DTYPE_UINT, 64, 8, "<u8"},
    {"f2", KHUB_DTYPE_FLOAT, 16, 2, "<f2"},
    {"f4", KHUB_DTYPE_FLOAT, 32, 4, "<f4"},
    {"f8", KHUB_DTYPE_FLOAT, 64, 8, "<f8"},
    {"c8", KHUB_DTYPE_COMPLEX, 64, 4, "<c8"},
    {"c16", KHUB_DTYPE_COMPLEX, 128, 8, "<c16"},
    {"V2", KHUB_DTYPE_BFLOAT, 16, 0, "<V2"},
    {"V1", KHUB_DTYPE_FLOAT8_E4M3FN, 8, 0, "<V1"},
    {"f1", KHUB_DTYPE_FLOAT8_E5M2, 8, 0, NULL},
    {"bfloat16", KHUB_DTYPE_BFLOAT, 16, 0, NULL},
    {"float8_e4m3fn", KHUB_DTYPE_FLOAT8_E4M3FN, 8, 0, NULL},
    {"float8_e5m2", KHUB_DTYPE_FLOAT8_E5M2, 8, 0, "float8_e5m2"},
};
enum { WORD_COUNT = sizeof(words) / sizeof(*words) };

int khub__npy_prefix(size_t *start, size_t *length, const unsigned char *bytes, size_t have, const char *file,
                     khub_error *err)
{
    if (have < MAGIC_LENGTH || memcmp(bytes, magic, MAGIC_LENGTH) != 0)
        return khub__fail(err, KHUB_E_FORMAT, "%s: is no .npy file: it doesn't start with \\x93NUMPY", file);
    size_t version = have > MAGIC_LENGTH ? bytes[MAGIC_LENGTH] : 0;
    *start = version == 1 ? 10 : 12;
    if (have < *start)
        return khub__fail(err, KHUB_E_FORMAT, "%s: ends after %zu bytes, inside the header", file, have);
    if (version < 1 || version > 3 || bytes[MAGIC_LENGTH + 1] != 0)
        return khub__fail(err, KHUB_E_UNSUPPORTED,
                          "%s: has version %zu.%u of the .npy format, 1.0 to 3.0 are known", file, version,
                          bytes[MAGIC_LENGTH + 1]);
    *length = bytes[8] | (size_t)bytes[9] << 8;
    if (version > 1) *length |= (size_t)bytes[10] << 16 | (size_t)bytes[11] << 24;
    if (*length > KHUB__NPY_TEXT_MAX)
        return khub__fail(err, KHUB_E_FORMAT, "%s: the header is %zu bytes long, at most %d are read", file,
                          *length, KHUB__NPY_TEXT_MAX);
    return KHUB_OK;
}

/* The text being read. */
typedef struct cursor {
    const char *at, *end;
    const char *file;
    khub_error *err;
} cursor;

static void skip_space(cursor *c)
{
    while (c->at < c->end && (*c->at == ' ' || *c->at == '\n' || *c->at == '\t' || *c->at == '\r'))
        c->at++;
}

/* Takes `symbol`, after spaces. */
static int take(cursor *c, char symbol)
{
    skip_space(c);
    if (c->at == c->end || *c->at != symbol) return 0;
    c->at++;
    return 1;
}

/* The same for a word. */
static int take_word(cursor *c, const char *word)
{
    size_t n = strlen(word);
    skip_space(c);
    if ((size_t)(c->end - c->at) < n || memcmp(c->at, word, n) != 0) return 0;
    c->at += n;
    return 1;
}

static int is_printable(char c)
{
    return c >= ' ' && c <= '~';
}

/* "FILE: header: WORDS at NEXT": what was expected, and the text that stands there. */
static int malformed(cursor *c, const char *expected)
{
    char next[21];
    size_t n = 0;
    for (; n < sizeof(next) - 1 && c->at + n < c->end; n++)
        next[n] = is_printable(c->at[n]) ? c->at[n] : '?';
    next[n] = 0;
    return khub__fail(c->err, KHUB_E_FORMAT, "%s: the header isn't NumPy's: %s is expected %s%s", c->file,
                      expected, n ? "where it says " : "at its end", next);
}

/* A string in quotes without escapes, which NumPy doesn't write here. */
static int read_string(cursor *c, char *out, size_t size)
{
    char quote = take(c, '\'') ? '\'' : take(c, '"') ? '"' : 0;
    if (!quote) return malformed(c, "a string in quotes");
    size_t n = 0;
    while (c->at < c->end && *c->at != quote) {
        if (n == size - 1 || !is_printable(*c->at) || *c->at == '\\')
            return malformed(c, "a short plain word");
        out[n++] = *c->at++;
    }
    out[n] = 0;
    return take(c, quote) ? KHUB_OK : malformed(c, "a closing quote");
}

static int is_digit(const cursor *c)
{
    return c->at < c->end && *c->at >= '0' && *c->at <= '9';
}

static int read_extent(cursor *c, int64_t *out)
{
    skip_space(c);
    const char *first = c->at;
    if (take(c, '-'))
        return khub__fail(c->err, KHUB_E_FORMAT, "%s: the header has a negative extent", c->file);
    if (!is_digit(c)) return malformed(c, "an extent");
    int64_t n = 0;
    for (; is_digit(c); c->at++) {
        int digit = *c->at - '0';
        if (n > (INT64_MAX - digit) / 10)
            return khub__fail(c->err, KHUB_E_FORMAT, "%s: the header has an extent of more than 2^63 - 1",
                              c->file);
        n = n * 10 + digit;
    }
    if (c->at - first > 1 && *first == '0') {
        c->at = first;
        return malformed(c, "an extent without leading zeros");
    }
    (void)take(c, 'L'); /* Python 2's long integers */
    *out = n;
    return KHUB_OK;
}

/* A tuple: (), (3,), (3, 4), (3, 4,). */
static int read_shape(cursor *c, khub__npy_header *out)
{
    if (!take(c, '(')) return malformed(c, "a tuple");
    int comma = 1;
    while (!take(c, ')')) {
        if (!comma) return malformed(c, "\",\" or \")\"");
        if (out->ndim == KHUB_MAX_NDIM)
            return khub__fail(c->err, KHUB_E_UNSUPPORTED, "%s: has more than %d dimensions", c->file,
                              KHUB_MAX_NDIM);
        int rc = read_extent(c, &out->shape[out->ndim]);
        if (rc != KHUB_OK) return rc;
        out->ndim++;
        comma = take(c, ',');
    }
    /* (3) is a number in Python, not a tuple; "(,)" failed as an extent */
    return out->ndim == 1 && !comma ? malformed(c, "\",\" after a single extent") : KHUB_OK;
}

/* Why a type that NumPy has, but DLPack hasn't, can't be had; NULL when NumPy has none either. */
static const char *refusal(const char *word)
{
    static const struct {
        const char *kinds, *words;
    } table[] = {{"O", "Python objects"},
                 {"SaUT", "text"},
                 {"Mm", "dates"},
                 {"V", "raw bytes"},
                 {"iufcb", "numbers of a size that DLPack doesn't have"}};
    size_t digits = *word ? strspn(word + 1, "0123456789") : 0;
    if (!*word || (word[1 + digits] && word[1 + digits] != '[')) return NULL; /* "M8[s]" has a unit */
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
        if (strchr(table[i].kinds, *word)) return table[i].words;
    return NULL;
}

static int read_order(cursor *c, khub__npy_header *out)
{
    out->fortran_order = take_word(c, "True");
    return out->fortran_order || take_word(c, "False") ? KHUB_OK : malformed(c, "True or False");
}

static int read_descr(cursor *c, khub__npy_header *out)
{
    skip_space(c);
    if (c->at < c->end && (*c->at == '[' || *c->at == '('))
        return khub__fail(c->err, KHUB_E_UNSUPPORTED, "%s: holds records, an array of numbers is expected",
                          c->file);
    char text[32];
    int rc = read_string(c, text, sizeof(text));
    if (rc != KHUB_OK) return rc;
    const char *word = text + (*text && strchr("<>|=", *text) != NULL);
    for (size_t i = 0; i < WORD_COUNT; i++) {
        if (strcmp(words[i].word, word) != 0) continue;
        out->dtype = khub_dtype_of(words[i].code, words[i].bits);
        out->swap = *text == '>' ? words[i].swap : 0;
        return KHUB_OK;
    }
    const char *why = refusal(word);
    if (!why) return khub__fail(c->err, KHUB_E_FORMAT, "%s: \"%s\" is no dtype of NumPy's", c->file, text);
    return khub__fail(c->err, KHUB_E_UNSUPPORTED, "%s: holds %s (\"%s\")", c->file, why, text);
}

int khub__npy_header_parse(khub__npy_header *out, const char *text, size_t length, const char *file,
                           khub_error *err)
{
    static const struct {
        const char *key;
        int (*read)(cursor *c, khub__npy_header *out);
    } keys[] = {{"descr", read_descr}, {"fortran_order", read_order}, {"shape", read_shape}};
    enum { KEY_COUNT = 3 };
    cursor c = {text, text + length, file, err};
    int seen[KEY_COUNT] = {0}, comma = 1;
    memset(out, 0, sizeof(*out));
    if (!take(&c, '{')) return malformed(&c, "\"{\"");
    while (!take(&c, '}')) {
        char key[32];
        if (!comma) return malformed(&c, "\",\" or \"}\"");
        int rc = read_string(&c, key, sizeof(key));
        if (rc != KHUB_OK) return rc;
        size_t i = 0;
        while (i < KEY_COUNT && strcmp(keys[i].key, key) != 0)
            i++;
        if (i == KEY_COUNT || seen[i]++)
            return khub__fail(err, KHUB_E_FORMAT, "%s: the header's key \"%s\" is %s", file, key,
                              i == KEY_COUNT ? "none of NumPy's" : "there twice");
        if (!take(&c, ':')) return malformed(&c, "\":\"");
        rc = keys[i].read(&c, out);
        if (rc != KHUB_OK) return rc;
        comma = take(&c, ',');
    }
    for (size_t i = 0; i < KEY_COUNT; i++)
        if (!seen[i])
            return khub__fail(err, KHUB_E_FORMAT, "%s: the header has no \"%s\"", file, keys[i].key);
    skip_space(&c);
    return c.at == c.end ? KHUB_OK : malformed(&c, "nothing more");
}

size_t khub__npy_header_write(char text[KHUB__NPY_WRITTEN_MAX], khub_dtype dtype, int32_t ndim,
                              const int64_t *shape)
{
    enum {
        PREFIX = 10,
        GROWTH_DIGITS = 21
    }; /* NumPy leaves room for the first extent to grow to 21 digits */
    const char *written = NULL;
    for (size_t i = 0; i < WORD_COUNT; i++)
        if (words[i].written && words[i].code == dtype.code && words[i].bits == dtype.bits &&
            dtype.lanes == 1)
            written = words[i].written;
    if (!written) return 0;
    char *at = text + PREFIX, *end = text + KHUB__NPY_WRITTEN_MAX;
    at += snprintf(at, (size_t)(end - at), "{'descr': '%s', 'fortran_order': False, 'shape': (", written);
    int first = 0;
    for (int32_t i = 0; i < ndim; i++) {
        int n = snprintf(at, (size_t)(end - at), i ? ", %lld" : "%lld", (long long)shape[i]);
        if (i == 0) first = n;
        at += n;
    }
    at += snprintf(at, (size_t)(end - at), "%s), }%*s", ndim == 1 ? "," : "",
                   ndim ? GROWTH_DIGITS - first : 0, "");
    do
        *at++ = ' ';
    while ((at + 1 - text) % 64 != 0);
    *at++ = '\n';
    size_t length = (size_t)(at - text) - PREFIX;
    memcpy(text, magic, MAGIC_LENGTH);
    memcpy(text + MAGIC_LENGTH, (const char[]){1, 0, (char)(length & 255), (char)(length >> 8)}, 4);
    return PREFIX + length;
}
