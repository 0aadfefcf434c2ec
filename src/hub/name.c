/* khub_name_kind_of: the one place that tells paths from names of the Hub. */
#include "base/path.h"

#include <khub/hub.h>

/* "ORG/NAME" with something on both sides, up to an "@": what follows may hold "/". */
static int has_form(const char *name)
{
    size_t length = strcspn(name, "@");
    const char *slash = memchr(name, '/', length);
    return slash && slash > name && slash + 1 < name + length && name[0] != '.' && name[0] != '~' &&
           !memchr(slash + 1, '/', length - (size_t)(slash + 1 - name));
}

khub_name_kind khub_name_kind_of(const char *name)
{
    if (!name) return KHUB_NAME_OTHER;
    if (khub__path_is_local(name)) return KHUB_NAME_PATH;
    if (strstr(name, "://") || !strncmp(name, "hf.co/", 6) || !strncmp(name, "huggingface.co/", 15))
        return KHUB_NAME_ADDRESS;
    return has_form(name) ? KHUB_NAME_HUB : KHUB_NAME_OTHER;
}
