/* Versions that a user leaves open: ">=1,<3". */
#ifndef HUB_RANGE_H
#define HUB_RANGE_H

#include <khub/error.h>

enum { KHUB__RANGE_EXCEPT = 8, KHUB__RANGE_TEXT = 250 };

typedef struct khub__range {
    int64_t min, max; /* both belong to it; INT64_MAX: no end */
    int64_t except[KHUB__RANGE_EXCEPT];
    size_t except_count;
} khub__range;

/* 1: what stands behind "@" begins as a range does. */
int khub__is_range(const char *text);

/* Parts between commas, each ">=", ">", "<=", "<", "==" or "!=" and a number; versions are whole numbers,
 * so 1.0 is 1 and ">=1.5" is ">=2". KHUB_E_INVAL says what isn't right with it, also that no version is in
 * it. */
int khub__range_parse(khub__range *out, const char *text, khub_error *err);

int khub__range_has(const khub__range *range, int64_t version);

/* The one form of each range: ">=1,<3". */
void khub__range_text(char out[KHUB__RANGE_TEXT], const khub__range *range);

#endif
