/* refs of any bytes: names that can be asked for, commits that are commits. */
#include "hub/listing.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(int holds)
{
    if (!holds) abort();
}

static void check_refs(const khub__ref *refs, size_t count)
{
    for (size_t i = 0; refs && i < count; i++)
        check(khub__is_commit(refs[i].commit) && khub__is_repo_path(refs[i].name, strlen(refs[i].name)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    khub__refs refs;
    khub_error err = {0};
    int rc = khub__listing_refs(&refs, (const char *)data, size, "refs", &err);
    check((rc == KHUB_OK) == !err.message[0]);
    check(rc == KHUB_OK || (!refs.branches && !refs.tags));
    check_refs(refs.branches, refs.branch_count);
    check_refs(refs.tags, refs.tag_count);
    khub__refs_free(&refs);
    return 0;
}
