/* The Range header. */
#ifndef SERVE_RANGE_H
#define SERVE_RANGE_H

#include <stdint.h>

typedef enum serve_range { SERVE_RANGE_ALL, SERVE_RANGE_PART, SERVE_RANGE_NONE } serve_range;

/* Which bytes of `size` the header (may be NULL) asks for. PART: *first and *count. NONE: it can't be
 * satisfied (416). ALL: no header, or one that isn't understood or asks for several ranges, which a server
 * may ignore. */
serve_range serve_range_read(uint64_t *first, uint64_t *count, const char *header, uint64_t size);

/* 1 when a list of entity tags ("W/" allowed; "*" is all) has `etag` (without quotes). */
int serve_etag_matches(const char *list, const char *etag);

#endif
