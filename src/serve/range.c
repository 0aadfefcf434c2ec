#include "serve/range.h"

#include <string.h>

/* Reads digits; 0, or -1: there are none or the number is too large. */
static int number(uint64_t *out, const char **at)
{
    const char *from = *at;
    *out = 0;
    for (; **at >= '0' && **at <= '9'; ++*at) {
        if (*out > UINT64_MAX / 10 - 1) return -1;
        *out = *out * 10 + (uint64_t)(**at - '0');
    }
    return *at == from ? -1 : 0;
}

/* "-COUNT": the last bytes. */
static serve_range last_bytes(uint64_t *first, uint64_t *count, const char *at, uint64_t size)
{
    if (number(count, &at) != 0 || *at) return SERVE_RANGE_ALL;
    if (!*count || !size) return SERVE_RANGE_NONE;
    if (*count > size) *count = size;
    *first = size - *count;
    return SERVE_RANGE_PART;
}

serve_range serve_range_read(uint64_t *first, uint64_t *count, const char *header, uint64_t size)
{
    uint64_t last = UINT64_MAX;
    if (!header || strncasecmp(header, "bytes=", 6) != 0) return SERVE_RANGE_ALL;
    const char *at = header + 6;
    if (*at == '-') return last_bytes(first, count, at + 1, size);
    if (number(first, &at) != 0 || *at++ != '-') return SERVE_RANGE_ALL;
    if (*at && (number(&last, &at) != 0 || *at || last < *first)) return SERVE_RANGE_ALL;
    if (*first >= size) return SERVE_RANGE_NONE;
    *count = (last < size - 1 ? last : size - 1) - *first + 1;
    return SERVE_RANGE_PART;
}

int serve_etag_matches(const char *list, const char *etag)
{
    size_t length = strlen(etag);
    for (const char *at = list; *at;) {
        at += strspn(at, " \t,");
        if (*at == '*') return 1;
        if (!strncmp(at, "W/", 2)) at += 2;
        int quoted = *at == '"';
        at += quoted;
        size_t n = strcspn(at, quoted ? "\"" : ", \t");
        if (n == length && !memcmp(at, etag, n)) return 1;
        at += n + (quoted && at[n]);
    }
    return 0;
}
