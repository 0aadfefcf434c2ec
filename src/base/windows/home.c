#include "base/home.h"

#include "base/memory.h"

#include <stdlib.h>

void khub__env_all(const char **values, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        values[i] = getenv(names[i]);
}

/* Another user's is unknown, as it is to Python here: it takes the folder beside ours for it. */
int khub__home_of(char **out, const char *user)
{
    const char *home = user ? NULL : khub__env("USERPROFILE");
    *out = khub__strdup(home);
    return home && !*out ? -1 : 0;
}
