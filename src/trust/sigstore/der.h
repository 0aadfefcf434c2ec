/* DER, read where it lies: definite lengths in their shortest form, no tag above 30. */
#ifndef TRUST_SIGSTORE_DER_H
#define TRUST_SIGSTORE_DER_H

#include "base/span.h"

#include <stdint.h>

enum {
    KHUB__DER_BOOLEAN = 0x01,
    KHUB__DER_INTEGER = 0x02,
    KHUB__DER_BIT_STRING = 0x03,
    KHUB__DER_OCTET_STRING = 0x04,
    KHUB__DER_NULL = 0x05,
    KHUB__DER_OID = 0x06,
    KHUB__DER_UTF8 = 0x0C,
    KHUB__DER_PRINTABLE = 0x13,
    KHUB__DER_IA5 = 0x16,
    KHUB__DER_UTC_TIME = 0x17,
    KHUB__DER_TIME = 0x18, /* GeneralizedTime */
    KHUB__DER_SEQUENCE = 0x30,
    KHUB__DER_SET = 0x31,
    KHUB__DER_CONTEXT = 0x80, /* + number */
    KHUB__DER_INNER = 0xA0    /* + number: a context tag around other elements */
};

/* 1: the same bytes. */
int khub__span_is(khub__span a, khub__span b);

/* The tag of the next element; -1 at the end. */
int khub__der_next(const khub__span *from);

/* Takes the next element of *from, which must have `tag`. *whole and *content may be NULL. 0, or -1: there is
 * none or it isn't DER. */
int khub__der_take(khub__span *from, int tag, khub__span *content);
int khub__der_take_whole(khub__span *from, int tag, khub__span *whole);

/* The same where it may be absent: then *content is left as it is. */
int khub__der_take_optional(khub__span *from, int tag, khub__span *content);

/* An INTEGER of 0 … 2^31-1; a BIT STRING without spare bits; a BOOLEAN. 0 or -1. */
int khub__der_small(int *out, khub__span *from);
int khub__der_bits(khub__span *out, khub__span *from);
int khub__der_boolean(int *out, khub__span *from);

/* UTCTime or GeneralizedTime in UTC, in microseconds since 1970; a fraction of a second only where allowed.
 */
int khub__der_time(int64_t *out_us, khub__span *from, int fraction);

/* Microseconds since 1970 of a day and a time of day; -1 when there is no such day or time, which none of
 * these formats can say otherwise. */
int64_t khub__time_us(const int part[6]);

/* 1: the bytes are exactly one element, DER all the way down: every string of its character set, every number
 * and set in its one form. Deeper than 24 isn't. */
int khub__der_strict(khub__span bytes);

/* 1: `whole` is a distinguished name: sets of types with texts. */
int khub__der_is_name(khub__span whole);

/* 1: the elements stand in the order of a set's, none twice. */
int khub__der_ordered(khub__span elements);

/* 1: valid UTF-8 without what steers a terminal (and so without NUL). */
int khub__der_is_text(khub__span bytes);

#endif
