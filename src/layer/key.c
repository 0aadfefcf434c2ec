#include "layer/key.h"

#include "base/error.h"
#include "base/memory.h"

#include <stdio.h>

enum { LONGEST = 1000 };

/* A key while it is read: `out` is what is written into its one allocation. */
typedef struct reader {
    khub__key *key;
    const char *at;
    char *out;
    const char *where;
    khub_error *err;
} reader;

static int wrong(const reader *r, const char *fact)
{
    return khub__fail(r->err, KHUB_E_FORMAT, "%s: %s", r->where, fact);
}

static int is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static int take_layer(reader *r, khub__key_part *part)
{
    size_t n = 0;
    while (is_letter(r->at[n]) || (n && r->at[n] >= '0' && r->at[n] <= '9'))
        n++;
    if (!n) return wrong(r, "a key is LAYER, LAYER(PATTERN), or several of them with + between");
    part->layer = memcpy(r->out, r->at, n);
    r->out += n;
    *r->out++ = 0;
    r->at += n;
    return KHUB_OK;
}

static size_t segment_length(const char *at)
{
    return strcspn(at, ".");
}

/* Behind the segment and its "."; NULL: it was the last. */
static const char *next_segment(const char *at)
{
    at += segment_length(at);
    return *at ? at + 1 : NULL;
}

static int is_star(const char *segment, size_t length)
{
    return length == 1 && segment[0] == '*';
}

static int is_stars(const char *segment, size_t length)
{
    return length == 2 && segment[0] == '*' && segment[1] == '*';
}

/* What no path can match is a mistake of the pattern. */
static int check_pattern(const reader *r, const char *pattern)
{
    for (const char *at = pattern;; at++) {
        size_t n = segment_length(at);
        if (!n) return wrong(r, "a pattern has a segment without a letter, which no path has");
        if (memchr(at, '*', n) && !is_star(at, n) && !is_stars(at, n))
            return wrong(r, "\"*\" in a pattern stands for a whole segment of a path, \"**\" for any number");
        at += n;
        if (!*at) return KHUB_OK;
    }
}

static int take_pattern(reader *r, khub__key_part *part)
{
    if (*r->at != '(') return KHUB_OK;
    size_t n = strcspn(r->at + 1, "()");
    if (r->at[1 + n] != ')') return wrong(r, "a pattern's \")\" is missing");
    part->pattern = memcpy(r->out, r->at + 1, n);
    r->out += n;
    *r->out++ = 0;
    r->at += n + 2;
    part->first = khub__first_segment(part->pattern);
    return check_pattern(r, part->pattern);
}

static void skip_spaces(reader *r)
{
    r->at += strspn(r->at, " ");
}

/* Segments of a pattern. */
typedef struct segments {
    const char *at[LONGEST / 2 + 1];
    size_t count;
} segments;

static void split(segments *out, const char *pattern)
{
    out->count = 0;
    for (const char *at = pattern; at; at = next_segment(at))
        out->at[out->count++] = at;
}

static int stars_at(const segments *s, size_t i)
{
    return i < s->count && is_stars(s->at[i], segment_length(s->at[i]));
}

/* Of two segments, neither of them "**": do both take some same one? */
static int meet(const char *a, const char *b)
{
    size_t n = segment_length(a), m = segment_length(b);
    return is_star(a, n) || is_star(b, m) || (n == m && !memcmp(a, b, n));
}

/* Is there a path that both take? same[j]: what follows i in one and j in the other takes some same path. */
static int may_be_same(const segments *a, const segments *b)
{
    char rows[2][LONGEST / 2 + 2] = {{0}}, *same = rows[0], *next = rows[1];
    for (size_t i = a->count + 1; i-- > 0;) {
        for (size_t j = b->count + 1; j-- > 0;) {
            int more_a = i < a->count, more_b = j < b->count;
            if (stars_at(a, i))
                same[j] = next[j] || (more_b && same[j + 1]);
            else if (stars_at(b, j))
                same[j] = same[j + 1] || (more_a && next[j]);
            else if (more_a && more_b)
                same[j] = meet(a->at[i], b->at[j]) && next[j + 1];
            else
                same[j] = !more_a && !more_b;
        }
        char *done = same;
        same = next, next = done;
    }
    return next[0];
}

/* What a pattern takes, seen as children of parents. */
typedef struct children {
    segments parent;
    const char *own; /* the child's segment; NULL: any */
} children;

/* Of "a.b" the child b of "a". Of "a.b.**" any child of what "a.b.**" takes, too (`which` 0). 0: that is all.
 */
static int take_children(children *out, const char *pattern, int which)
{
    segments *parent = &out->parent;
    split(parent, pattern);
    out->own = NULL;
    int ends_in_stars = stars_at(parent, parent->count - 1);
    if (which < ends_in_stars) return 1;
    while (parent->count && stars_at(parent, parent->count - 1))
        parent->count--;
    if (which > ends_in_stars || !parent->count) return 0;
    const char *last = parent->at[--parent->count];
    if (!is_star(last, segment_length(last))) out->own = last;
    return 1;
}

/* May both patterns take two slots of one parent? */
static int may_be_siblings(const char *a, const char *b)
{
    children of_a, of_b;
    for (int i = 0; take_children(&of_a, a, i); i++)
        for (int j = 0; take_children(&of_b, b, j); j++) {
            int is_one = of_a.own && of_b.own && meet(of_a.own, of_b.own); /* the same slot */
            if (!is_one && may_be_same(&of_a.parent, &of_b.parent)) return 1;
        }
    return 0;
}

static int check_run(const reader *r)
{
    const khub__key *key = r->key;
    for (size_t i = 0; i < key->part_count; i++)
        for (size_t j = i + 1; j < key->part_count; j++) {
            const char *a = key->part[i].pattern, *b = key->part[j].pattern;
            if (a && b && !may_be_siblings(a, b))
                return khub__fail(r->err, KHUB_E_FORMAT,
                                  "%s: a run lies within one parent, and \"%.200s\" and \"%.200s\" take no "
                                  "two slots of one",
                                  r->where, a, b);
        }
    return KHUB_OK;
}

static int take_parts(reader *r)
{
    for (;;) {
        if (r->key->part_count == KHUB__MAX_RUN) return wrong(r, "a run has at most 8 layers");
        khub__key_part *part = &r->key->part[r->key->part_count++];
        skip_spaces(r);
        int rc = take_layer(r, part);
        if (rc == KHUB_OK) rc = take_pattern(r, part);
        if (rc != KHUB_OK) return rc;
        skip_spaces(r);
        if (!*r->at) return check_run(r);
        if (*r->at++ != '+')
            return wrong(r, "a key is LAYER, LAYER(PATTERN), or several of them with + between");
    }
}

static void write_text(reader *r)
{
    r->key->text = r->out;
    for (size_t i = 0; i < r->key->part_count; i++) {
        const khub__key_part *part = &r->key->part[i];
        r->out += sprintf(r->out, "%s%s", i ? " + " : "", part->layer);
        if (part->pattern) r->out += sprintf(r->out, "(%s)", part->pattern);
    }
}

int khub__key_parse(khub__key **out, const char *text, const char *where, khub_error *err)
{
    *out = NULL;
    size_t length = strlen(text);
    if (length > LONGEST)
        return khub__fail(err, KHUB_E_FORMAT, "%.200s...: a key has at most %d bytes", where, LONGEST);
    /* each part twice, once in `text` with " + " before it and "()" around its pattern */
    khub__key *key = khub__calloc(1, sizeof(*key) + 2 * length + 8 * KHUB__MAX_RUN + 1);
    if (!key) return khub__fail_memory(err, "reading a key of a mapping");
    reader r = {key, text, (char *)(key + 1), where, err};
    int rc = take_parts(&r);
    if (rc == KHUB_OK) {
        write_text(&r);
        *out = key;
    } else {
        khub__free(key);
    }
    return rc;
}

/* FNV-1a, 32 bits: offset basis and prime as its authors give them. */
uint32_t khub__first_segment(const char *path)
{
    uint32_t hash = 0x811c9dc5u;
    if (*path == '*') return 0;
    for (; *path && *path != '.'; path++)
        hash = (hash ^ (unsigned char)*path) * 0x01000193u;
    return hash ? hash : 1;
}

/* As with the "*" of file names: the last "**" takes one segment more whenever what follows it fails. */
int khub__pattern_takes(const char *pattern, const char *path)
{
    const char *stars = NULL, *from = NULL; /* what follows the last "**", and where its trial began */
    size_t same = 0, start = 0;
    if (!pattern) return 1;
    /* most patterns don't take a path, and most of these tell in their first segments */
    for (; pattern[same] && pattern[same] == path[same] && pattern[same] != '*'; same++)
        if (pattern[same] == '.') start = same + 1;
    if (start == same && is_stars(pattern + same, strlen(pattern + same))) return 1;
    if (pattern[same] != '*' && path[same]) return 0;
    pattern += start;
    path += start;
    while (path) {
        size_t n = pattern ? segment_length(pattern) : 0, m = segment_length(path);
        if (pattern && is_stars(pattern, n)) {
            stars = pattern = next_segment(pattern);
            from = path;
            if (!stars) return 1;
        } else if (pattern && (is_star(pattern, n) || (n == m && !memcmp(pattern, path, n)))) {
            pattern = next_segment(pattern);
            path = next_segment(path);
        } else if (stars) {
            from = next_segment(from);
            path = from;
            pattern = stars;
        } else {
            return 0;
        }
    }
    while (pattern && is_stars(pattern, segment_length(pattern)))
        pattern = next_segment(pattern);
    return !pattern;
}

static void count(const khub__key *key, int *literals, int *stars)
{
    *literals = *stars = 0;
    for (size_t i = 0; i < key->part_count; i++)
        for (const char *at = key->part[i].pattern; at; at = next_segment(at)) {
            size_t n = segment_length(at);
            *literals += !is_star(at, n) && !is_stars(at, n);
            *stars += is_star(at, n);
        }
}

static int has_pattern(const khub__key *key)
{
    for (size_t i = 0; i < key->part_count; i++)
        if (key->part[i].pattern) return 1;
    return 0;
}

int khub__key_compare(const khub__key *a, const khub__key *b)
{
    if (a->part_count != b->part_count) return a->part_count > b->part_count ? 1 : -1;
    int al, as, bl, bs;
    count(a, &al, &as);
    count(b, &bl, &bs);
    if (al != bl) return al > bl ? 1 : -1;
    if (as != bs) return as > bs ? 1 : -1;
    return has_pattern(a) - has_pattern(b);
}
