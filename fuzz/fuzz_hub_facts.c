/* The two answers that hold one fact each: a revision's commit, an organization's trust. */
#include "hub/listing.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char commit[KHUB__COMMIT_MAX + 1] = "";
    int trusted = 7;
    khub_error err = {0};
    if (khub__listing_commit(commit, (const char *)data, size, "revision", &err) == KHUB_OK &&
        !khub__is_commit(commit))
        abort();
    khub_error_clear(&err);
    khub__listing_publisher(&trusted, (const char *)data, size, "overview", &err);
    if (trusted != 0 && trusted != 1) abort();
    return 0;
}
