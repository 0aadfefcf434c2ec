#include "model/utf8.h"

#include "base/memory.h"

static int is_continuation(unsigned char byte)
{
    return (byte & 0xC0) == 0x80;
}

/* Bytes of a sequence by its first byte; 0: none starts so. */
static size_t announced(unsigned char first)
{
    if (first < 0x80) return 1;
    if (first < 0xC2 || first > 0xF4) return 0;
    return first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
}

/* Overlong forms, surrogates and what is beyond U+10FFFF show in the second byte (Unicode, table 3-7). */
static int second_fits(unsigned char first, unsigned char second)
{
    switch (first) {
    case 0xE0:
        return second >= 0xA0 && second <= 0xBF;
    case 0xED:
        return second >= 0x80 && second <= 0x9F;
    case 0xF0:
        return second >= 0x90 && second <= 0xBF;
    case 0xF4:
        return second >= 0x80 && second <= 0x8F;
    default:
        return is_continuation(second);
    }
}

/* Length of the sequence at `text` (not empty); *valid = 0: of the maximal subpart of an ill-formed one. */
static size_t sequence(const char *text, size_t length, int *valid)
{
    const unsigned char *bytes = (const unsigned char *)text;
    size_t want = announced(bytes[0]), have = 1;
    if (want > 1 && length > 1 && second_fits(bytes[0], bytes[1])) {
        have = 2;
        while (have < want && have < length && is_continuation(bytes[have]))
            have++;
    }
    *valid = have == want;
    return have;
}

/* Whole words of ASCII at the start, in bytes. */
static size_t ascii_run(const char *text, size_t length)
{
    size_t i = 0;
    for (uint64_t word; i + sizeof(word) <= length; i += sizeof(word)) {
        memcpy(&word, text + i, sizeof(word));
        if (word & 0x8080808080808080u) break;
    }
    return i;
}

size_t khub__utf8_valid(const char *text, size_t length)
{
    size_t i = ascii_run(text, length);
    while (i < length) {
        int valid;
        size_t n = sequence(text + i, length - i, &valid);
        if (!valid) return i;
        i += n;
        if (n == 1) i += ascii_run(text + i, length - i);
    }
    return length;
}

static size_t repair_into(char *to, const char *text, size_t length)
{
    size_t written = 0;
    for (size_t i = 0; i < length;) {
        int valid;
        size_t n = sequence(text + i, length - i, &valid);
        const char *piece = valid ? text + i : "\xEF\xBF\xBD";
        size_t bytes = valid ? n : 3;
        if (to) memcpy(to + written, piece, bytes);
        written += bytes;
        i += n;
    }
    return written;
}

int khub__utf8_repair(char **out, size_t *out_length, const char *text, size_t length)
{
    *out = NULL;
    if (length > SIZE_MAX / 3) return -1;
    *out_length = repair_into(NULL, text, length);
    *out = khub__malloc(*out_length);
    if (!*out) return -1;
    repair_into(*out, text, length);
    return 0;
}

uint32_t khub__utf8_next(const char **text)
{
    const unsigned char *b = (const unsigned char *)*text;
    size_t n = announced(b[0]);
    *text += n;
    switch (n) {
    case 1:
        return b[0];
    case 2:
        return (b[0] & 0x1Fu) << 6 | (b[1] & 0x3Fu);
    case 3:
        return (b[0] & 0x0Fu) << 12 | (b[1] & 0x3Fu) << 6 | (b[2] & 0x3Fu);
    default:
        return (b[0] & 0x07u) << 18 | (b[1] & 0x3Fu) << 12 | (b[2] & 0x3Fu) << 6 | (b[3] & 0x3Fu);
    }
}

uint32_t khub__utf8_last(const char *start, const char *end)
{
    do
        end--;
    while (end > start && is_continuation((unsigned char)*end));
    return khub__utf8_next(&end);
}

char *khub__utf8_put(char *to, uint32_t character)
{
    static const struct {
        uint32_t below, mark;
    } forms[] = {{0x80, 0}, {0x800, 0xC0}, {0x10000, 0xE0}, {0x110000, 0xF0}};
    int more = 0; /* bytes after the first */
    while (character >= forms[more].below)
        more++;
    *to++ = (char)(forms[more].mark | character >> (6 * more));
    while (more-- > 0)
        *to++ = (char)(0x80 | ((character >> (6 * more)) & 0x3F));
    return to;
}
