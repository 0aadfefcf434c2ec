#include "model/normalize.h"

#include "base/memory.h"
#include "model/unicode.h"
#include "model/utf8.h"

enum { DROPPED = 0xFF };

void khub__normalizer_prepare(khub__normalizer *normalizer)
{
    for (uint32_t c = 0; c < 128; c++) {
        uint8_t to = (uint8_t)c;
        if (normalizer->clean && khub__char_is_dropped(c))
            to = DROPPED;
        else if (normalizer->clean && khub__char_is_space(c))
            to = ' ';
        else if (normalizer->lower && c >= 'A' && c <= 'Z')
            to = (uint8_t)(c + 'a' - 'A');
        normalizer->ascii[c] = to;
    }
}

static int put(khub__normalized *out, uint32_t c)
{
    if (khub__grow((void **)&out->data, &out->capacity, out->length + 4, 1, SIZE_MAX) != 0) return -1;
    out->length = (size_t)(khub__utf8_put(out->data + out->length, c) - out->data);
    return 0;
}

static int put_lower(khub__normalized *out, const khub__normalizer *normalizer, uint32_t c)
{
    if (!normalizer->lower) return put(out, c);
    uint32_t lower[2];
    int count = khub__char_lower(lower, c);
    for (int i = 0; i < count; i++)
        if (put(out, lower[i]) != 0) return -1;
    return 0;
}

/* Writes the waiting marks by class, those of one class in the order they came (Unicode, 3.11 "Canonical
 * Ordering"). One pass for each class that occurs: there are some 50, so the work is linear. */
static int flush(khub__normalized *out, const khub__normalizer *normalizer)
{
    int class = out->marks_count ? 0 : 256;
    while (class < 256) {
        int next = 256;
        for (size_t i = 0; i < out->marks_count; i++) {
            int own = khub__char_combining(out->marks[i]);
            if (own == class && put_lower(out, normalizer, out->marks[i]) != 0) return -1;
            if (own > class && own < next) next = own;
        }
        class = next;
    }
    out->marks_count = 0;
    return 0;
}

/* One character of a decomposition: marks wait for their order, or go for good. */
static int put_part(khub__normalized *out, const khub__normalizer *normalizer, uint32_t c)
{
    int stripped = khub__char_is_mark(c);
    if (khub__char_combining(c)) {
        if (stripped) return 0; /* what is dropped has no part in the order of the others */
        if (khub__grow((void **)&out->marks, &out->marks_capacity, out->marks_count + 1, sizeof(*out->marks),
                       SIZE_MAX) != 0)
            return -1;
        out->marks[out->marks_count++] = c;
        return 0;
    }
    if (flush(out, normalizer) != 0) return -1;
    return stripped ? 0 : put_lower(out, normalizer, c);
}

static int put_stripped(khub__normalized *out, const khub__normalizer *normalizer, uint32_t c)
{
    if (!normalizer->strip) return put_lower(out, normalizer, c);
    uint32_t parts[4];
    int count = khub__char_decompose(parts, c);
    for (int i = 0; i < count; i++)
        if (put_part(out, normalizer, parts[i]) != 0) return -1;
    return 0;
}

static int put_character(khub__normalized *out, const khub__normalizer *normalizer, uint32_t c)
{
    if (normalizer->clean) {
        if (khub__char_is_dropped(c)) return 0;
        if (khub__char_is_space(c)) c = ' ';
    }
    if (!normalizer->ideographs || !khub__char_is_ideograph(c)) return put_stripped(out, normalizer, c);
    if (flush(out, normalizer) != 0 || put(out, ' ') != 0) return -1;
    if (put_stripped(out, normalizer, c) != 0) return -1;
    return put(out, ' ');
}

/* The ASCII at the start of the text; returns how much that was, or SIZE_MAX: no memory. */
static size_t put_ascii(khub__normalized *out, const khub__normalizer *normalizer, const char *text,
                        size_t length)
{
    size_t n = 0, i = 0;
    while (n < length && (unsigned char)text[n] < 0x80)
        n++;
    while (i < n && normalizer->ascii[(unsigned char)text[i]] == DROPPED)
        i++; /* don't part marks */
    if (i == n) return n;
    if (flush(out, normalizer) != 0 ||
        khub__grow((void **)&out->data, &out->capacity, out->length + n, 1, SIZE_MAX) != 0)
        return SIZE_MAX;
    char *to = out->data + out->length;
    for (; i < n; i++) {
        uint8_t byte = normalizer->ascii[(unsigned char)text[i]];
        *to = (char)byte;
        to += byte != DROPPED;
    }
    out->length = (size_t)(to - out->data);
    return n;
}

int khub__normalize(khub__normalized *out, const khub__normalizer *normalizer, const char *text,
                    size_t length)
{
    const char *end = text + length;
    out->length = out->marks_count = 0;
    while (text < end) {
        size_t n = put_ascii(out, normalizer, text, (size_t)(end - text));
        if (n == SIZE_MAX) return -1;
        text += n;
        if (text < end && put_character(out, normalizer, khub__utf8_next(&text)) != 0) return -1;
    }
    return flush(out, normalizer);
}

void khub__normalized_free(khub__normalized *text)
{
    khub__free(text->data);
    khub__free(text->marks);
    memset(text, 0, sizeof(*text));
}
