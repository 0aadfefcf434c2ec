#include "base/home.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/text.h"

#include <ctype.h>
#include <stdlib.h>

const char *khub__env(const char *name)
{
    const char *value = getenv(name);
    return value && value[strspn(value, " \t\r\n")] ? value : NULL;
}

int khub__env_is_true(const char *name)
{
    static const char *const words[] = {"1", "ON", "YES", "TRUE"};
    const char *value = getenv(name);
    for (size_t i = 0; value && i < sizeof(words) / sizeof(*words); i++)
        if (khub__is_word(value, strlen(value), words[i])) return 1;
    return 0;
}

/* Adds what stands for the "~" or "~USER" at the start of `path`; returns what comes after it. */
static const char *add_home(khub__text *out, const char *path)
{
    size_t length = strcspn(path, "/");
    char *user = length > 1 ? khub__strndup(path + 1, length - 1) : NULL, *home = NULL;
    out->failed = (length > 1 && !user) || khub__home_of(&home, user) != 0;
    khub__free(user);
    if (!home) return path;
    size_t end = strlen(home);
    while (end > 0 && home[end - 1] == '/')
        end--;
    khub__text_add_bytes(out, home, end);
    khub__free(home);
    return path + length;
}

/* Adds the value of the variable at `at` ("$NAME" or "${NAME}"), or as it is written; returns what follows.
 */
static const char *add_variable(khub__text *out, const char *at)
{
    int braces = at[1] == '{';
    const char *name = at + 1 + braces, *end = name;
    while (braces ? *end && *end != '}' : isalnum((unsigned char)*end) || *end == '_')
        end++;
    const char *after = end + braces;
    if (end == name || (braces && !*end)) {
        khub__text_add(out, "$");
        return at + 1;
    }
    char *copy = khub__strndup(name, (size_t)(end - name));
    if (!copy) out->failed = 1;
    const char *value = copy ? getenv(copy) : NULL;
    khub__free(copy);
    if (value)
        khub__text_add(out, value);
    else
        khub__text_add_bytes(out, at, (size_t)(after - at));
    return after;
}

char *khub__path_expand(const char *path)
{
    khub__text out = {0};
    if (*path == '~') path = add_home(&out, path);
    while (*path && !out.failed) {
        if (*path == '$') {
            path = add_variable(&out, path);
            continue;
        }
        size_t plain = strcspn(path, "$");
        khub__text_add_bytes(&out, path, plain);
        path += plain;
    }
    khub__text_add(&out, "");
    return khub__text_take(&out);
}

int khub__hf_home(char **out, khub_error *err)
{
    const char *home = khub__env("HF_HOME"), *cache = khub__env("XDG_CACHE_HOME");
    char *joined = home || !cache ? NULL : khub__path_join(cache, "huggingface");
    if (!home && cache && !joined) return khub__fail_memory(err, "looking for the cache");
    *out = khub__path_expand(home ? home : joined ? joined : "~/.cache/huggingface");
    khub__free(joined);
    if (!*out) return khub__fail_memory(err, "looking for the cache");
    if ((*out)[0] != '~') return KHUB_OK;
    khub__free(*out);
    *out = NULL;
    return khub__fail(err, KHUB_E_NOTFOUND,
                      "there is no home directory to keep things in: set HOME or HF_HOME");
}
