#include "hub/range.h"

#include "base/error.h"

#include <stdio.h>

#define LARGEST INT64_C(999999999999999999) /* 18 digits, as many as a version's branch can have */

int khub__is_range(const char *text)
{
    text += strspn(text, " ");
    return *text && strchr("<>=!~", *text);
}

/* "1", "1.0", "1.5": the whole part, and whether something follows it. 0: it is no number. */
static int take_number(const char **at, int64_t *whole, int *more)
{
    const char *start = *at;
    *whole = *more = 0;
    for (; **at >= '0' && **at <= '9'; ++*at) {
        if (*whole > LARGEST / 10) return 0;
        *whole = *whole * 10 + (**at - '0');
    }
    if (*at == start) return 0;
    while (**at == '.') {
        start = ++*at;
        for (; **at >= '0' && **at <= '9'; ++*at)
            *more |= **at != '0';
        if (*at == start) return 0;
    }
    return 1;
}

static int take_operator(const char **at, const char **out)
{
    static const char *const operators[] = {">=", "<=", "==", "!=", ">", "<"};
    for (size_t i = 0; i < sizeof(operators) / sizeof(*operators); i++) {
        size_t n = strlen(operators[i]);
        if (strncmp(*at, operators[i], n) != 0) continue;
        *at += n;
        *out = operators[i];
        return 1;
    }
    return 0;
}

static void at_least(khub__range *range, int64_t version)
{
    if (range->min < version) range->min = version;
}

static void at_most(khub__range *range, int64_t version)
{
    if (range->max > version) range->max = version;
}

/* Narrows the range by one part. `more`: the number lies between `version` and the next. 0: too many. */
static int narrow(khub__range *range, const char *operator, int64_t version, int more)
{
    switch (operator[0]) {
    case '>':
        at_least(range, version + (more || !operator[1]));
        return 1;
    case '<':
        at_most(range, version - (!more && !operator[1]));
        return 1;
    case '=':
        at_least(range, version + more);
        at_most(range, version);
        return 1;
    default:
        if (more) return 1;
        if (range->except_count == KHUB__RANGE_EXCEPT) return 0;
        range->except[range->except_count++] = version;
        return 1;
    }
}

static int is_excepted(const khub__range *range, int64_t version)
{
    for (size_t i = 0; i < range->except_count; i++)
        if (range->except[i] == version) return 1;
    return 0;
}

/* Exceptions at the ends are ends, those outside aren't any, and each is said once, lowest first: so that two
 * texts for the same versions become one. */
static void tidy(khub__range *range)
{
    while (range->min <= range->max && is_excepted(range, range->min))
        range->min++;
    while (range->max >= range->min && is_excepted(range, range->max))
        range->max--;
    int64_t last = range->min;
    size_t count = 0;
    int64_t sorted[KHUB__RANGE_EXCEPT];
    for (;;) {
        int64_t next = INT64_MAX;
        for (size_t i = 0; i < range->except_count; i++)
            if (range->except[i] > last && range->except[i] < range->max && range->except[i] < next)
                next = range->except[i];
        if (next == INT64_MAX) break;
        sorted[count++] = last = next;
    }
    memcpy(range->except, sorted, count * sizeof(*sorted));
    range->except_count = count;
}

int khub__range_parse(khub__range *out, const char *text, khub_error *err)
{
    *out = (khub__range){0, INT64_MAX, {0}, 0};
    for (const char *at = text;; at++) {
        const char *operator;
        int64_t version;
        int more;
        at += strspn(at, " ");
        int good = take_operator(&at, &operator);
        at += strspn(at, " ");
        good = good && take_number(&at, &version, &more) && narrow(out, operator, version, more);
        at += strspn(at, " ");
        if (!good || (*at && *at != ','))
            return khub__fail(
                err, KHUB_E_INVAL,
                "\"%.200s\": a range of versions is like >=1,<3 (>=, >, <=, <, ==, up to %d times !=)", text,
                KHUB__RANGE_EXCEPT);
        if (!*at) break;
    }
    tidy(out);
    if (out->min > out->max)
        return khub__fail(err, KHUB_E_INVAL, "\"%.200s\": no version is in this range", text);
    return KHUB_OK;
}

int khub__range_has(const khub__range *range, int64_t version)
{
    return version >= range->min && version <= range->max && !is_excepted(range, version);
}

void khub__range_text(char out[KHUB__RANGE_TEXT], const khub__range *range)
{
    int n;
    if (range->min == range->max)
        n = snprintf(out, KHUB__RANGE_TEXT, "==%lld", (long long)range->min);
    else if (range->max == INT64_MAX)
        n = snprintf(out, KHUB__RANGE_TEXT, ">=%lld", (long long)range->min);
    else if (range->min == 0)
        n = snprintf(out, KHUB__RANGE_TEXT, "<%lld", (long long)range->max + 1);
    else
        n = snprintf(out, KHUB__RANGE_TEXT, ">=%lld,<%lld", (long long)range->min, (long long)range->max + 1);
    for (size_t i = 0; i < range->except_count; i++) /* 8 of 20 digits at most: there is room */
        n += snprintf(out + n, KHUB__RANGE_TEXT - (size_t)n, ",!=%lld", (long long)range->except[i]);
}
