#include <khub/export.h>

#define TEXT_OF(x) #x
#define TEXT(x)    TEXT_OF(x)

const char *khub_version(void)
{
    return TEXT(KHUB_VERSION_MAJOR) "." TEXT(KHUB_VERSION_MINOR) "." TEXT(KHUB_VERSION_PATCH);
}
