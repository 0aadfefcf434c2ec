#include "base/text.h"

#include "base/memory.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum { TEXT_MAX = 64 << 20 };

static int reserve(khub__text *text, size_t more)
{
    if (more < text->capacity - text->length) return !text->failed; /* nearly always */
    if (!text->failed && more < TEXT_MAX &&
        khub__grow((void **)&text->data, &text->capacity, text->length + more + 1, 1, TEXT_MAX) == 0)
        return 1;
    text->failed = 1;
    return 0;
}

void khub__text_add_bytes(khub__text *text, const char *piece, size_t length)
{
    if (!reserve(text, length)) return;
    memcpy(text->data + text->length, piece, length);
    text->length += length;
    text->data[text->length] = 0;
}

void khub__text_add(khub__text *text, const char *piece)
{
    khub__text_add_bytes(text, piece, strlen(piece));
}

void khub__text_addf(khub__text *text, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (n < 0 || !reserve(text, (size_t)n)) {
        text->failed = 1;
        return;
    }
    va_start(args, format);
    vsnprintf(text->data + text->length, (size_t)n + 1, format, args);
    va_end(args);
    text->length += (size_t)n;
}

void khub__copy(char *out, size_t size, const char *text)
{
    size_t length = strnlen(text, size - 1);
    memcpy(out, text, length);
    out[length] = 0;
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

int khub__same_letters(const char *a, const char *b, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (lower(a[i]) != lower(b[i])) return 0;
    return 1;
}

int khub__is_word(const char *text, size_t length, const char *word)
{
    return length == strlen(word) && khub__same_letters(text, word, length);
}

char *khub__text_take(khub__text *text)
{
    if (!text->data) reserve(text, 0);
    if (text->failed) {
        khub__text_free(text);
        return NULL;
    }
    text->data[text->length] = 0;
    char *data = text->data;
    memset(text, 0, sizeof(*text));
    return data;
}

void khub__text_free(khub__text *text)
{
    khub__free(text->data);
    memset(text, 0, sizeof(*text));
}

size_t khub__utf8_length(const unsigned char *s, size_t left)
{
    size_t n = s[0] < 0x80                   ? 1
               : s[0] >= 0xC2 && s[0] < 0xE0 ? 2
               : s[0] >= 0xE0 && s[0] < 0xF0 ? 3
               : s[0] >= 0xF0 && s[0] < 0xF5 ? 4
                                             : 0;
    if (n == 0 || n > left) return 0;
    for (size_t i = 1; i < n; i++)
        if ((s[i] & 0xC0) != 0x80) return 0;
    if ((s[0] == 0xE0 && s[1] < 0xA0) || (s[0] == 0xED && s[1] > 0x9F)) return 0; /* overlong; surrogates */
    if ((s[0] == 0xF0 && s[1] < 0x90) || (s[0] == 0xF4 && s[1] > 0x8F))
        return 0; /* overlong; past the last */
    return n;
}

int khub__is_utf8(const char *text)
{
    const unsigned char *at = (const unsigned char *)text;
    for (size_t left = strlen(text), n; left > 0; at += n, left -= n)
        if ((n = khub__utf8_length(at, left)) == 0) return 0;
    return 1;
}

void khub__hex(char *out, const unsigned char *bytes, size_t count)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < count; i++) {
        *out++ = digits[bytes[i] >> 4];
        *out++ = digits[bytes[i] & 15];
    }
    *out = 0;
}

void khub__text_add_hex(khub__text *text, const unsigned char *bytes, size_t count)
{
    char hex[3];
    for (size_t i = 0; i < count; i++) {
        khub__hex(hex, &bytes[i], 1);
        khub__text_add(text, hex);
    }
}

static int by_bytes(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

char **khub__text_names(const khub__text *text, size_t count)
{
    char **names = khub__malloc(count * sizeof(char *) + text->length + 1);
    if (!names) return NULL;
    char *at = (char *)(names + count);
    if (text->length) memcpy(at, text->data, text->length);
    for (size_t i = 0; i < count; i++, at += strlen(at) + 1)
        names[i] = at;
    qsort(names, count, sizeof(char *), by_bytes);
    return names;
}
