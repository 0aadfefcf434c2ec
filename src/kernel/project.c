#include "kernel/project.h"

#include "base/error.h"
#include "base/file.h"
#include "base/memory.h"
#include "fetch/lockfile.h"

#include <khub/lock.h>

enum { DEEPEST = 32, KEY_MAX = 300 };

/* Where the names are. */
static const char *const wanted_path[] = {"tool", "kernels", "dependencies"};
enum { WANTED_DEPTH = 3 };

typedef struct reader {
    const char *at, *end, *file;
    size_t line;
    khub__text *names;
    size_t *count;
    khub_error *err;
} reader;

/* How far a dotted key leads towards the names. */
typedef struct place {
    int depth;          /* parts of the key */
    int matched;        /* of them, from the first, that are those of wanted_path */
    char last[KEY_MAX]; /* part */
} place;

static int fail(const reader *r, const char *fact)
{
    return khub__fail(r->err, KHUB_E_FORMAT, "%s:%zu: %s", r->file, r->line, fact);
}

static int is_at(const reader *r, char c)
{
    return r->at < r->end && *r->at == c;
}

static int starts(const reader *r, const char *text)
{
    size_t length = strlen(text);
    return (size_t)(r->end - r->at) >= length && !memcmp(r->at, text, length);
}

static void skip_blanks(reader *r)
{
    while (is_at(r, ' ') || is_at(r, '\t'))
        r->at++;
}

/* Blanks, line ends and comments. */
static void skip_space(reader *r)
{
    for (; r->at < r->end; r->at++) {
        if (*r->at == '#') {
            const char *stop = memchr(r->at, '\n', (size_t)(r->end - r->at));
            r->at = stop ? stop : r->end;
            if (!stop) return;
        }
        if (*r->at == '\n') r->line++;
        if (*r->at != ' ' && *r->at != '\t' && *r->at != '\n' && *r->at != '\r') return;
    }
}

/* "…", '…' of one line; `out` (may be NULL) takes what fits of it, escapes as they stand but for \" and \\.
 */
static int read_string(char *out, size_t size, reader *r)
{
    char quote = *r->at++;
    size_t n = 0;
    for (; r->at < r->end && *r->at != quote && *r->at != '\n'; r->at++) {
        if (quote == '"' && *r->at == '\\' && r->at + 1 < r->end && (r->at[1] == '"' || r->at[1] == '\\'))
            r->at++;
        if (out && n + 1 < size) out[n++] = *r->at;
    }
    if (out) out[n] = 0;
    if (!is_at(r, quote)) return fail(r, "the string doesn't end on its line");
    r->at++;
    return KHUB_OK;
}

/* Three quotes to three quotes, of which up to two more may stand before the last three. */
static int skip_long_string(reader *r)
{
    char quote = *r->at;
    const char quotes[] = {quote, quote, quote, 0};
    size_t line = r->line;
    for (r->at += 3; r->at < r->end && !starts(r, quotes); r->at++) {
        if (*r->at == '\n') r->line++;
        if (quote == '"' && *r->at == '\\' && r->at + 1 < r->end && r->at[1] != '\n') r->at++;
    }
    if (r->at == r->end) {
        r->line = line;
        return fail(r, "the string of several lines doesn't end");
    }
    for (r->at += 3; is_at(r, quote);)
        r->at++;
    return KHUB_OK;
}

static int is_bare(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
}

static int read_part(char out[KEY_MAX], reader *r)
{
    if (is_at(r, '"') || is_at(r, '\'')) return read_string(out, KEY_MAX, r);
    size_t n = 0;
    const char *start = r->at;
    for (; r->at < r->end && is_bare(*r->at); r->at++)
        if (n + 1 < KEY_MAX) out[n++] = *r->at;
    out[n] = 0;
    return r->at > start ? KHUB_OK : fail(r, "a key is expected");
}

/* A dotted key, added to *to. */
static int read_key(place *to, reader *r)
{
    for (;;) {
        skip_blanks(r);
        int rc = read_part(to->last, r);
        if (rc != KHUB_OK) return rc;
        if (to->matched == to->depth && to->depth < WANTED_DEPTH && !strcmp(to->last, wanted_path[to->depth]))
            to->matched++;
        if (++to->depth > DEEPEST) return fail(r, "the key has too many parts");
        skip_blanks(r);
        if (!is_at(r, '.')) return KHUB_OK;
        r->at++;
    }
}

static int is_listed(const reader *r, const char *name)
{
    for (size_t at = 0; at < r->names->length; at += strlen(r->names->data + at) + 1)
        if (!strcmp(r->names->data + at, name)) return 1;
    return 0;
}

/* "org/name" = 1 */
static int take_version(reader *r, const char *id)
{
    char digits[20], name[KEY_MAX + 24];
    size_t n = 0;
    khub__wanted wanted;
    khub_error why = {0};
    for (; r->at < r->end && ((*r->at >= '0' && *r->at <= '9') || (*r->at == '_' && n)); r->at++)
        if (*r->at != '_' && n + 1 < sizeof(digits)) digits[n++] = *r->at;
    digits[n] = 0;
    skip_blanks(r);
    if (!n || (r->at < r->end && !strchr("\r\n#,}", *r->at)))
        return khub__fail(r->err, KHUB_E_FORMAT, "%s:%zu: the version of %s isn't a whole number", r->file,
                          r->line, id);
    snprintf(name, sizeof(name), "%s@v%s", id, digits);
    if (strchr(id, '@') || khub__wanted_parse(&wanted, KHUB__REPO_KERNEL, name, &why) != KHUB_OK ||
        wanted.version < 0)
        return khub__fail(r->err, KHUB_E_FORMAT, "%s:%zu: \"%s\" = %s names no version of a kernel", r->file,
                          r->line, id, digits);
    if (is_listed(r, name)) return fail(r, "the kernel is named twice");
    khub__text_add_bytes(r->names, name, strlen(name) + 1);
    ++*r->count;
    return r->names->failed ? khub__fail_memory(r->err, "reading a project") : KHUB_OK;
}

static int read_value(reader *r, const place *at, int depth);

/* {a = 1, b.c = 2}: the names may be in it. */
static int read_inline_table(reader *r, const place *at, int depth)
{
    for (r->at++;; r->at++) {
        skip_space(r);
        if (is_at(r, '}')) break;
        place key = *at;
        int rc = read_key(&key, r);
        if (rc == KHUB_OK && !is_at(r, '=')) rc = fail(r, "\"=\" is expected");
        if (rc != KHUB_OK) return rc;
        r->at++;
        rc = read_value(r, &key, depth + 1);
        if (rc != KHUB_OK) return rc;
        skip_space(r);
        if (!is_at(r, ',')) break;
    }
    if (!is_at(r, '}')) return fail(r, "\"}\" is expected");
    r->at++;
    return KHUB_OK;
}

static int skip_array(reader *r, int depth)
{
    static const place nowhere = {.depth = 1};
    for (r->at++;; r->at++) {
        skip_space(r);
        if (is_at(r, ']')) break;
        int rc = read_value(r, &nowhere, depth + 1);
        if (rc != KHUB_OK) return rc;
        skip_space(r);
        if (!is_at(r, ',')) break;
    }
    if (!is_at(r, ']')) return fail(r, "\"]\" is expected");
    r->at++;
    return KHUB_OK;
}

static int read_value(reader *r, const place *at, int depth)
{
    skip_blanks(r);
    if (depth > DEEPEST) return fail(r, "nested too deep");
    if (at->matched == WANTED_DEPTH && at->depth == WANTED_DEPTH + 1) return take_version(r, at->last);
    if (at->matched == WANTED_DEPTH && at->depth > WANTED_DEPTH)
        return fail(r, "under tool.kernels.dependencies only \"org/name\" = VERSION is expected");
    if (at->matched == at->depth && !is_at(r, '{'))
        return fail(r, "a table is expected on the way to tool.kernels.dependencies");
    if (is_at(r, '{')) return read_inline_table(r, at, depth);
    if (is_at(r, '[')) return skip_array(r, depth);
    if (starts(r, "\"\"\"") || starts(r, "'''")) return skip_long_string(r);
    if (is_at(r, '"') || is_at(r, '\'')) return read_string(NULL, 0, r);
    const char *start = r->at; /* a number, a date, true, false */
    while (r->at < r->end && !strchr("#,]}\r\n", *r->at))
        r->at++;
    return r->at > start ? KHUB_OK : fail(r, "a value is expected");
}

/* [a.b.c] or [[a.b.c]] */
static int read_header(place *table, reader *r)
{
    int is_array = starts(r, "[[");
    *table = (place){0};
    r->at += is_array ? 2 : 1;
    int rc = read_key(table, r);
    if (rc != KHUB_OK) return rc;
    if (!starts(r, is_array ? "]]" : "]")) return fail(r, "\"]\" is expected");
    r->at += is_array ? 2 : 1;
    if (is_array && table->matched == table->depth)
        return fail(r, "one table is expected on the way to tool.kernels.dependencies, not an array of them");
    return KHUB_OK;
}

static int read_statement(place *table, reader *r)
{
    if (is_at(r, '[')) return read_header(table, r);
    place key = *table;
    int rc = read_key(&key, r);
    if (rc == KHUB_OK && !is_at(r, '=')) rc = fail(r, "\"=\" is expected");
    if (rc != KHUB_OK) return rc;
    r->at++;
    return read_value(r, &key, 0);
}

int khub__project_parse(khub__text *names, size_t *count, const char *text, size_t length, const char *file,
                        khub_error *err)
{
    reader r = {text, text + length, file, 1, names, count, err};
    place table = {0};
    for (skip_space(&r); r.at < r.end; skip_space(&r)) {
        int rc = read_statement(&table, &r);
        skip_blanks(&r);
        if (rc == KHUB_OK && r.at < r.end && !strchr("#\r\n", *r.at))
            rc = fail(&r, "something follows on the line");
        if (rc != KHUB_OK) return rc;
    }
    return KHUB_OK;
}

/* Pointers, then the text that they point into. */
static int take_names(char ***out, const khub__text *names, size_t count, khub_error *err)
{
    size_t pointers = (count + 1) * sizeof(char *);
    *out = khub__malloc(pointers + names->length + 1);
    if (!*out) return khub__fail_memory(err, "reading a project");
    char *text = (char *)*out + pointers;
    if (names->length) memcpy(text, names->data, names->length);
    for (size_t i = 0; i < count; i++, text += strlen(text) + 1)
        (*out)[i] = text;
    (*out)[count] = NULL;
    return KHUB_OK;
}

int khub_lock_project(char ***names, const char *path, khub_error *err)
{
    int missing = khub__given("khub_lock_project", names && path, err);
    if (missing != KHUB_OK) return missing;
    khub__bytes text;
    khub__text found = {0};
    size_t count = 0;
    *names = NULL;
    int rc = khub__file_read(&text, path, KHUB__PROJECT_MAX_BYTES, err);
    if (rc != KHUB_OK) return rc;
    rc = khub__project_parse(&found, &count, text.data, text.length, path, err);
    if (rc == KHUB_OK) rc = take_names(names, &found, count, err);
    khub__text_free(&found);
    khub__bytes_free(&text);
    return rc;
}
