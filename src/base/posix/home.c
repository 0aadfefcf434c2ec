#include "base/home.h"

#include "base/memory.h"

#include <pwd.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

extern char **environ;

/* The bit of a name's first character, in a set of them. */
static uint64_t bit_of(char first)
{
    return UINT64_C(1) << ((unsigned char)first & 63);
}

/* What follows "NAME="; NULL: it is another variable. */
static const char *value_in(const char *variable, const char *name)
{
    for (; *name && *variable == *name; name++)
        variable++;
    return !*name && *variable == '=' ? variable + 1 : NULL;
}

void khub__env_all(const char **values, const char *const *names, size_t count)
{
    uint64_t firsts = 0;
    for (size_t i = 0; i < count; i++) {
        values[i] = NULL;
        firsts |= bit_of(names[i][0]);
    }
    for (char **variable = environ; variable && *variable; variable++)
        for (size_t i = 0; firsts & bit_of((*variable)[0]) && i < count; i++)
            if (!values[i]) values[i] = value_in(*variable, names[i]);
}

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
