/* The platforms of well-known machines that come with khub: one file each. */
#include "platform/platform.h"

#include "base/error.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/text.h"

#include <stdlib.h>

#define ENDING ".json"

static int open_folder(char **out, khub_error *err)
{
    const char *prefix = khub__install_prefix();
    *out = prefix ? khub__path_join(prefix, "share/khub/platforms") : NULL;
    return *out ? KHUB_OK : khub__fail_memory(err, "looking for known platforms");
}

static int by_name(const void *left, const void *right)
{
    return strcmp(*(char *const *)left, *(char *const *)right);
}

/* The names of files without their ending; what ends otherwise is nobody's. */
static void keep_names(char **names, size_t *count)
{
    size_t kept = 0;
    for (size_t i = 0; i < *count; i++) {
        size_t length = strlen(names[i]), ending = strlen(ENDING);
        if (length <= ending || strcmp(names[i] + length - ending, ENDING) != 0) continue;
        names[i][length - ending] = 0;
        names[kept++] = names[i];
    }
    if (kept) qsort(names, kept, sizeof(*names), by_name);
    *count = kept;
}

static int names_in(char ***names, size_t *count, const char *folder, khub_error *err)
{
    int rc = khub__dir_list(names, count, folder, err);
    if (rc == KHUB_OK) keep_names(*names, count);
    return rc;
}

int khub_platform_known_names(char ***names, size_t *count, khub_error *err)
{
    char *folder;
    int missing = khub__given("khub_platform_known_names", names && count, err);
    if (missing != KHUB_OK) return missing;
    *names = NULL;
    *count = 0;
    int rc = open_folder(&folder, err);
    if (rc == KHUB_OK) rc = names_in(names, count, folder, err);
    khub__free(folder);
    return rc;
}

/* The names end the message: they may be more than it holds. */
static int fail_unknown(const char *name, char *const *names, size_t count, khub_error *err)
{
    khub__text list = {0};
    for (size_t i = 0; i < count; i++)
        khub__text_addf(&list, "%s%s", i ? ", " : "", names[i]);
    char *text = khub__text_take(&list);
    int rc = text ? khub__fail(err, KHUB_E_NOTFOUND, "platform %s: is none that khub knows, which are %s",
                               name, *text ? text : "none")
                  : khub__fail_memory(err, "looking for known platforms");
    khub__free(text);
    return rc;
}

static int read_named(khub_platform **out, const char *folder, const char *name, khub_error *err)
{
    khub__text path = {0};
    khub__text_addf(&path, "%s/%s" ENDING, folder, name);
    char *file = khub__text_take(&path);
    int rc = file ? khub_platform_read(out, file, err) : khub__fail_memory(err, "reading a known platform");
    khub__free(file);
    return rc;
}

static int read_known(khub_platform **out, const char *folder, const char *name, khub_error *err)
{
    char **names = NULL;
    size_t count = 0, i = 0;
    int rc = names_in(&names, &count, folder, err);
    while (i < count && strcmp(names[i], name) != 0)
        i++;
    if (rc == KHUB_OK)
        rc = i < count ? read_named(out, folder, name, err) : fail_unknown(name, names, count, err);
    khub__free(names);
    return rc;
}

int khub_platform_known(khub_platform **out, const char *name, khub_error *err)
{
    char *folder;
    int missing = khub__given("khub_platform_known", out && name, err);
    if (missing != KHUB_OK) return missing;
    *out = NULL;
    int rc = open_folder(&folder, err);
    if (rc == KHUB_OK) rc = read_known(out, folder, name, err);
    khub__free(folder);
    return rc;
}
