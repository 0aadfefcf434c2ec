#include "base/home.h"

#include "base/memory.h"

#include <pwd.h>
#include <stdlib.h>
#include <unistd.h>

int khub__home_of(char **out, const char *user)
{
    const char *home = user ? NULL : khub__env("HOME");
    char text[4096]; /* the record of one user; longer ones count as unknown */
    struct passwd record, *found = NULL;
    if (user)
        getpwnam_r(user, &record, text, sizeof(text), &found);
    else if (!home)
        getpwuid_r(getuid(), &record, text, sizeof(text), &found);
    if (found) home = found->pw_dir;
    *out = khub__strdup(home);
    return home && !*out ? -1 : 0;
}
