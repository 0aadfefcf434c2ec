/* All files below a build's directory, as those see them who must prove each of them. */
#ifndef TRUST_FILES_H
#define TRUST_FILES_H

#include <khub/error.h>

typedef enum khub__found_kind {
    KHUB__FOUND_FILE,      /* a regular file, or a link to one that stays where links may lead */
    KHUB__FOUND_OUT,       /* a link to a file elsewhere */
    KHUB__FOUND_DIRECTORY, /* a link to a directory: nothing goes into it, so nothing in it is proven */
    KHUB__FOUND_BROKEN,    /* a link that leads nowhere */
    KHUB__FOUND_OTHER      /* a pipe, a device, a socket */
} khub__found_kind;

typedef struct khub__found {
    char *path; /* from the build's directory, parts separated by "/" */
    khub__found_kind kind;
    char *target; /* where a link leads that may not lead there; NULL for the others */
} khub__found;

typedef struct khub__files {
    khub__found *items; /* sorted by the path's bytes */
    size_t count, capacity;
    char **directories; /* all that were walked, in no order, "" for the build's: empty ones too */
    size_t directory_count, directory_capacity;
} khub__files;

/* Lists them. Links may lead to files within `build` and within `also` (may be NULL): the folder of the
 * cache's blobs, for a snapshot. More than 100,000 of them or of
 * directories, or deeper than 64 directories: KHUB_E_FORMAT; KHUB_E_NOTFOUND, KHUB_E_IO, KHUB_E_NOMEM. A
 * failure leaves *out zeroed. */
int khub__files_find(khub__files *out, const char *build, const char *also, khub_error *err);

/* "is a link that leads …": what is wrong with one, to follow its path in a message. NULL: nothing. The
 * caller's memory is `room`. */
const char *khub__found_fault(const khub__found *found, char *room, size_t size);

void khub__files_free(khub__files *files); /* and zeroes it */

#endif
