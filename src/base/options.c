#include "base/options.h"

#include "base/error.h"

enum { LARGEST = 4096 }; /* bytes; more than any options struct will have: an uninitialised one has */

int khub__options(void *ours, size_t size, const void *given, const char *name, khub_error *err)
{
    memset(ours, 0, size);
    if (!given) return KHUB_OK;
    size_t theirs;
    memcpy(&theirs, given, sizeof(theirs));
    if (theirs < sizeof(theirs) || theirs > LARGEST)
        return khub__fail(err, KHUB_E_INVAL, "%s: struct_size isn't set; start with KHUB_INIT", name);
    const unsigned char *bytes = given;
    for (size_t i = size; i < theirs; i++)
        if (bytes[i])
            return khub__fail(err, KHUB_E_INVAL, "%s: an option is set that khub %s doesn't know", name,
                              khub_version());
    memcpy(ours, given, theirs < size ? theirs : size);
    return KHUB_OK;
}
