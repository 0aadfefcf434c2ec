#include "trust/sigstore/der.h"

#include "base/text.h"

#include <string.h>

enum { MAX_DEPTH = 24 };

int khub__span_is(khub__span a, khub__span b)
{
    return a.length == b.length && (a.length == 0 || !memcmp(a.data, b.data, a.length));
}

/* Splits the first element of *from off: its tag, head and content. */
static int split(khub__span *from, int *tag, khub__span *whole, khub__span *content)
{
    const unsigned char *p = from->data;
    size_t left = from->length, head = 2, length;
    if (left < 2 || (p[0] & 0x1F) == 0x1F) return -1;
    length = p[1];
    if (length >= 0x80) {
        size_t bytes = length - 0x80;
        if (bytes == 0 || bytes > 4 || left < 2 + bytes || p[2] == 0) return -1;
        length = 0;
        for (size_t i = 0; i < bytes; i++)
            length = length << 8 | p[2 + i];
        if (length < 0x80) return -1; /* the short form would have done */
        head += bytes;
    }
    if (length > left - head) return -1;
    *tag = p[0];
    *whole = (khub__span){p, head + length};
    *content = (khub__span){p + head, length};
    *from = (khub__span){p + head + length, left - head - length};
    return 0;
}

int khub__der_next(const khub__span *from)
{
    return from->length ? from->data[0] : -1;
}

int khub__der_take(khub__span *from, int tag, khub__span *content)
{
    khub__span rest = *from, whole, inside;
    int found;
    if (split(&rest, &found, &whole, &inside) || found != tag) return -1;
    *from = rest;
    if (content) *content = inside;
    return 0;
}

int khub__der_take_whole(khub__span *from, int tag, khub__span *whole)
{
    khub__span rest = *from, inside;
    int found;
    if (split(&rest, &found, whole, &inside) || found != tag) return -1;
    *from = rest;
    return 0;
}

int khub__der_take_optional(khub__span *from, int tag, khub__span *content)
{
    return khub__der_next(from) == tag ? khub__der_take(from, tag, content) : 0;
}

static int is_shortest_integer(khub__span v)
{
    if (v.length == 0) return 0;
    return v.length == 1 ||
           !((v.data[0] == 0 && !(v.data[1] & 0x80)) || (v.data[0] == 0xFF && (v.data[1] & 0x80)));
}

int khub__der_small(int *out, khub__span *from)
{
    khub__span v;
    if (khub__der_take(from, KHUB__DER_INTEGER, &v) || !is_shortest_integer(v)) return -1;
    if (v.length > 4 || (v.data[0] & 0x80)) return -1;
    *out = 0;
    for (size_t i = 0; i < v.length; i++)
        *out = *out << 8 | v.data[i];
    return 0;
}

int khub__der_bits(khub__span *out, khub__span *from)
{
    khub__span v;
    if (khub__der_take(from, KHUB__DER_BIT_STRING, &v) || v.length == 0 || v.data[0] != 0) return -1;
    *out = (khub__span){v.data + 1, v.length - 1};
    return 0;
}

int khub__der_boolean(int *out, khub__span *from)
{
    khub__span v;
    if (khub__der_take(from, KHUB__DER_BOOLEAN, &v) || v.length != 1 || (v.data[0] != 0 && v.data[0] != 0xFF))
        return -1;
    *out = v.data[0] != 0;
    return 0;
}

/* Days since 1970 of a day in the Gregorian calendar: years start in March, so that the leap day ends them.
 */
static int64_t days(int64_t year, int month, int day)
{
    year -= month <= 2;
    int64_t era = year / 400, of_era = year % 400;
    int64_t of_year = (153 * ((int64_t)month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

int64_t khub__time_us(const int part[6])
{
    static const int length[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    int year = part[0], month = part[1], day = part[2];
    if (year < 1970 || year > 9999 || month < 1 || month > 12 || day < 1) return -1;
    int leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    if (day > length[month - 1] + (month == 2 && leap)) return -1;
    if (part[3] > 23 || part[4] > 59 || part[5] > 59) return -1;
    int64_t second = part[3] * 3600 + part[4] * 60 + part[5];
    return (days(year, month, day) * 86400 + second) * 1000000;
}

/* `count` digits at *p. -1: not all are digits. */
static int digits(const unsigned char *p, size_t count)
{
    int value = 0;
    for (size_t i = 0; i < count; i++) {
        if (p[i] < '0' || p[i] > '9') return -1;
        value = value * 10 + (p[i] - '0');
    }
    return value;
}

/* ".5Z", ".25Z", "Z": microseconds; -1: neither, or more digits than a microsecond has, or a useless zero. */
static int64_t fraction_us(const unsigned char *p, size_t length)
{
    if (length == 1 && p[0] == 'Z') return 0;
    if (length < 3 || length > 8 || p[0] != '.' || p[length - 1] != 'Z' || p[length - 2] == '0') return -1;
    int64_t value = digits(p + 1, length - 2);
    for (size_t i = length - 2; value >= 0 && i < 6; i++)
        value *= 10;
    return value;
}

int khub__der_time(int64_t *out_us, khub__span *from, int fraction)
{
    khub__span v;
    int tag = khub__der_next(from), part[6];
    size_t year = tag == KHUB__DER_UTC_TIME ? 2 : 4;
    if ((tag != KHUB__DER_UTC_TIME && tag != KHUB__DER_TIME) || khub__der_take(from, tag, &v)) return -1;
    if (v.length < year + 11 || (v.length > year + 11 && (!fraction || tag == KHUB__DER_UTC_TIME))) return -1;
    part[0] = digits(v.data, year);
    for (size_t i = 1; i < 6; i++)
        part[i] = digits(v.data + year + 2 * (i - 1), 2);
    for (size_t i = 0; i < 6; i++)
        if (part[i] < 0) return -1;
    if (year == 2) part[0] += part[0] < 50 ? 2000 : 1900; /* RFC 5280 */
    int64_t us = khub__time_us(part), more = fraction_us(v.data + year + 10, v.length - year - 10);
    if (us < 0 || more < 0) return -1;
    *out_us = us + more;
    return 0;
}

static int is_utf8(khub__span v, int control)
{
    for (size_t i = 0, n; i < v.length; i += n) {
        n = khub__utf8_length(v.data + i, v.length - i);
        if (n == 0) return 0;
        if (!control && (v.data[i] < 0x20 || v.data[i] == 0x7F)) return 0;
        if (!control && v.data[i] == 0xC2 && v.data[i + 1] < 0xA0) return 0; /* C1 */
    }
    return 1;
}

int khub__der_is_text(khub__span bytes)
{
    return is_utf8(bytes, 0);
}

static int is_ascii(khub__span v)
{
    for (size_t i = 0; i < v.length; i++)
        if (v.data[i] >= 0x80) return 0;
    return 1;
}

static int is_printable(khub__span v)
{
    for (size_t i = 0; i < v.length; i++) {
        unsigned char c = v.data[i];
        int letter = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
        if (!letter && (c == 0 || !strchr(" '()+,-./:=?", c))) return 0;
    }
    return 1;
}

/* No number of an OID begins with a zero of its base, and the last one ends. */
static int is_oid(khub__span v)
{
    if (v.length == 0 || (v.data[v.length - 1] & 0x80)) return 0;
    for (size_t i = 0; i < v.length; i++)
        if (v.data[i] == 0x80 && (i == 0 || !(v.data[i - 1] & 0x80))) return 0;
    return 1;
}

static int is_bits(khub__span v)
{
    if (v.length == 0 || v.data[0] > 7) return 0;
    if (v.length == 1) return v.data[0] == 0;
    return (v.data[v.length - 1] & ((1 << v.data[0]) - 1)) == 0;
}

static int is_time(khub__span whole)
{
    int64_t us;
    return khub__der_time(&us, &whole, 1) == 0;
}

/* What a primitive element of the universal tags must look like. */
static int is_primitive(int tag, khub__span whole, khub__span v)
{
    switch (tag) {
    case KHUB__DER_BOOLEAN:
        return v.length == 1 && (v.data[0] == 0 || v.data[0] == 0xFF);
    case KHUB__DER_INTEGER:
    case 0x0A:
        return is_shortest_integer(v); /* ENUMERATED */
    case KHUB__DER_BIT_STRING:
        return is_bits(v);
    case KHUB__DER_OCTET_STRING:
        return 1;
    case KHUB__DER_NULL:
        return v.length == 0;
    case KHUB__DER_OID:
        return is_oid(v);
    case KHUB__DER_UTF8:
        return is_utf8(v, 1);
    case KHUB__DER_PRINTABLE:
        return is_printable(v);
    case KHUB__DER_IA5:
        return is_ascii(v);
    case KHUB__DER_UTC_TIME:
    case KHUB__DER_TIME:
        return is_time(whole);
    default:
        return 0; /* nothing else has a place in what is read here */
    }
}

static int is_before(khub__span a, khub__span b)
{
    size_t n = a.length < b.length ? a.length : b.length;
    int order = memcmp(a.data, b.data, n);
    return order < 0 || (order == 0 && a.length < b.length);
}

int khub__der_ordered(khub__span elements)
{
    khub__span before = {NULL, 0}, whole, content;
    for (int tag; elements.length; before = whole)
        if (split(&elements, &tag, &whole, &content) || (before.data && !is_before(before, whole))) return 0;
    return 1;
}

static int is_tree(khub__span elements, int depth)
{
    if (depth > MAX_DEPTH) return 0;
    while (elements.length) {
        khub__span whole, content;
        int tag;
        if (split(&elements, &tag, &whole, &content)) return 0;
        if (tag & 0x20) {
            if (tag < 0x40 && tag != KHUB__DER_SEQUENCE && tag != KHUB__DER_SET) return 0;
            if (tag == KHUB__DER_SET && !khub__der_ordered(content)) return 0;
            if (!is_tree(content, depth + 1)) return 0;
        } else if (tag < 0x40 && !is_primitive(tag, whole, content)) {
            return 0;
        }
    }
    return 1;
}

int khub__der_strict(khub__span bytes)
{
    khub__span rest = bytes, whole, content;
    int tag;
    return split(&rest, &tag, &whole, &content) == 0 && rest.length == 0 && is_tree(bytes, 0);
}

static int is_text_tag(int tag)
{
    return tag == KHUB__DER_UTF8 || tag == KHUB__DER_PRINTABLE || tag == KHUB__DER_IA5;
}

int khub__der_is_name(khub__span whole)
{
    khub__span name, set, pair, text;
    if (khub__der_take(&whole, KHUB__DER_SEQUENCE, &name) || whole.length) return 0;
    while (name.length) {
        if (khub__der_take(&name, KHUB__DER_SET, &set) || !set.length) return 0;
        while (set.length)
            if (khub__der_take(&set, KHUB__DER_SEQUENCE, &pair) ||
                khub__der_take(&pair, KHUB__DER_OID, NULL) || !is_text_tag(khub__der_next(&pair)) ||
                khub__der_take(&pair, khub__der_next(&pair), &text) || !text.length || pair.length)
                return 0;
    }
    return 1;
}
