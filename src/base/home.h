/* Where the user's things are, as the Hugging Face tools find them. */
#ifndef BASE_HOME_H
#define BASE_HOME_H

#include <khub/error.h>

/* The value of a variable of the environment; NULL when it is unset, empty or blank. */
const char *khub__env(const char *name);

/* 1 for "1", "ON", "YES", "TRUE" in any case: how the Hugging Face tools read a variable. */
int khub__env_is_true(const char *name);

/* The value of each of `names`, as getenv has it (NULL: unset), in one look at the environment. One source
 * per operating system. */
void khub__env_all(const char **values, const char *const *names, size_t count);

/* `path` with "~", "~USER" at its start and "$NAME", "${NAME}" anywhere replaced as Python's expanduser and
 * expandvars do; what isn't known stays as it is written. The caller's; NULL: no memory. */
char *khub__path_expand(const char *path);

/* The home directory of a user, NULL for the one who runs this: HOME, else what the system's list of users
 * says. *out is the caller's; NULL: unknown. 0, or -1: no memory. One source per operating system. */
int khub__home_of(char **out, const char *user);

/* HF_HOME, else $XDG_CACHE_HOME/huggingface, else ~/.cache/huggingface. KHUB_E_NOTFOUND (there is no home
 * directory), KHUB_E_NOMEM. *out is the caller's. */
int khub__hf_home(char **out, khub_error *err);

#endif
