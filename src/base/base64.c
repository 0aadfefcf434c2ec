#include "base/base64.h"

#include <string.h>

static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/* What a character stands for; -1: nothing. */
static int value_of(char c)
{
    if (c >= 'a') return c <= 'z' ? c - 'a' + 26 : -1;
    if (c >= 'A') return c <= 'Z' ? c - 'A' : -1;
    if (c >= '0') return c <= '9' ? c - '0' + 52 : -1;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* One group of four: 3, 2 or 1 bytes; 0: it isn't one, or one with padding before the end. */
static size_t read_group(unsigned char out[3], const char *text, int last)
{
    int v[4], count = 4;
    if (last && text[3] == '=') count = text[2] == '=' ? 2 : 3;
    for (int i = 0; i < 4; i++) {
        v[i] = i < count ? value_of(text[i]) : 0;
        if (v[i] < 0) return 0;
    }
    if ((count == 2 && (v[1] & 15)) || (count == 3 && (v[2] & 3))) return 0;
    out[0] = (unsigned char)(v[0] << 2 | v[1] >> 4);
    out[1] = (unsigned char)(v[1] << 4 | v[2] >> 2);
    out[2] = (unsigned char)(v[2] << 6 | v[3]);
    return (size_t)count - 1;
}

int khub__base64_read(khub__span *out, unsigned char **room, const char *text, size_t length)
{
    unsigned char *p = *room;
    if (length % 4) return -1;
    for (size_t i = 0; i < length; i += 4) {
        unsigned char group[3];
        size_t n = read_group(group, text + i, i + 4 == length);
        if (n == 0) return -1;
        memcpy(p, group, n);
        p += n;
    }
    *out = (khub__span){*room, (size_t)(p - *room)};
    *room = p;
    return 0;
}

void khub__base64_add(khub__text *to, khub__span bytes, size_t line)
{
    char piece[512]; /* so that the text doesn't grow by four characters at a time */
    size_t column = 0, used = 0;
    for (size_t i = 0; i < bytes.length; i += 3) {
        size_t n = bytes.length - i < 3 ? bytes.length - i : 3;
        unsigned char b[3] = {0};
        memcpy(b, bytes.data + i, n);
        piece[used++] = letters[b[0] >> 2];
        piece[used++] = letters[(b[0] & 3) << 4 | b[1] >> 4];
        piece[used++] = n > 1 ? letters[(b[1] & 15) << 2 | b[2] >> 6] : '=';
        piece[used++] = n > 2 ? letters[b[2] & 63] : '=';
        column += 4;
        if (line && (column % line == 0 || i + 3 >= bytes.length)) piece[used++] = '\n';
        if (used + 5 <= sizeof(piece)) continue;
        khub__text_add_bytes(to, piece, used);
        used = 0;
    }
    if (used) khub__text_add_bytes(to, piece, used);
}
