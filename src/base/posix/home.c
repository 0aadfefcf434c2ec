#include "base/home.h"

#include "base/memory.h"

#include <pwd.h>
#include <stdlib.h>
#include <unistd.h>

char *khub__home_of(const char *user)
{
    const char *home = user ? NULL : khub__env("HOME");
    if (home) return khub__strdup(home);
    char text[4096]; /* the record of one user; longer ones count as unknown */
    struct passwd record, *found = NULL;
    if (user)
        getpwnam_r(user, &record, text, sizeof(text), &found);
    else
        getpwuid_r(getuid(), &record, text, sizeof(text), &found);
    return found ? khub__strdup(found->pw_dir) : NULL;
}
