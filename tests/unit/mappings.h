/* Mappings as tests write them: JSON text. */
#ifndef UNIT_MAPPINGS_H
#define UNIT_MAPPINGS_H

#include "unit.h"

#include <khub/mapping.h>

/* Until the next one is made; NULL for NULL. */
static inline const khub_mapping *mapping_of(const char *text)
{
    static khub_mapping *last;
    khub_error err = {0};
    khub_mapping_free(last);
    last = NULL;
    if (text) ck_khub_ok(khub_mapping_parse(&last, text, NULL, &err), &err);
    return last;
}

#endif
