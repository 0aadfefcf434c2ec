#include "kernel/posix/search.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/ours.h"
#include "base/path.h"

#include <limits.h>
#include <stdio.h>

static int fail_here(const khub__elf *elf, const char *what, const char *place, size_t length,
                     khub_error *err)
{
    return khub__fail(err, KHUB_E_LOAD, "%s: %s\"%.*s\", which is looked for in the current directory",
                      elf->path, what, (int)length, place);
}

/* What follows $ORIGIN, which the loader takes for the library's directory only as a whole part of a path:
 * "" or "/…"; NULL: it doesn't stand there. */
static const char *behind_origin(const char *place)
{
    static const char *const forms[] = {"$ORIGIN", "${ORIGIN}"};
    for (size_t i = 0; i < sizeof(forms) / sizeof(*forms); i++) {
        const char *rest = place + strlen(forms[i]);
        if (!strncmp(place, forms[i], strlen(forms[i])) && (*rest == '/' || *rest == 0)) return rest;
    }
    return NULL;
}

/* What isn't there belongs to whoever may make it. */
static int check_owner(const khub__elf *elf, const char *place, khub_error *err)
{
    khub_error why = {0};
    char *at = khub__strdup(place);
    int rc = at ? khub__path_is_ours(NULL, at, &why) : khub__fail_memory(&why, "opening a library");
    while (rc == KHUB_E_NOTFOUND && strcmp(at, "/") != 0) {
        char *above = khub__path_parent(at);
        khub__free(at);
        at = above;
        khub_error_clear(&why);
        rc = at ? khub__path_is_ours(NULL, at, &why) : khub__fail_memory(&why, "opening a library");
    }
    khub__free(at);
    if (rc == KHUB_E_NOMEM) return khub__fail_memory(err, "opening a library");
    return rc == KHUB_OK ? KHUB_OK
                         : khub__fail(err, KHUB_E_UNTRUSTED, "%s: looks for libraries in %s: %s", elf->path,
                                      place, why.message);
}

static int check_place(const khub__elf *elf, const char *place, int is_proven, khub_error *err)
{
    if (behind_origin(place)) return KHUB_OK;
    if (place[0] != '/' || strchr(place, '$')) /* the loader knows other words, too */
        return fail_here(elf, "its search path has ", place, strlen(place), err);
    return is_proven ? check_owner(elf, place, err) : KHUB_OK;
}

/* An empty place is the current directory, too; no path at all is not. */
static int check_path(const khub__elf *elf, int is_proven, khub_error *err)
{
    char place[PATH_MAX];
    const char *at = khub__elf_runpath(elf);
    int rc = KHUB_OK;
    for (int more = at && *at; more && rc == KHUB_OK;) {
        size_t length = strcspn(at, ":");
        if (!length || length >= sizeof(place))
            return fail_here(elf, "its search path has ", at, length, err);
        memcpy(place, at, length);
        place[length] = 0;
        rc = check_place(elf, place, is_proven, err);
        more = at[length] == ':';
        at += length + (size_t)more;
    }
    return rc;
}

/* Takes the last part of `path` away; 0: there is none. */
static int go_up(char *path)
{
    char *slash = strrchr(path, '/');
    if (!path[0]) return 0;
    *(slash ? slash : path) = 0;
    return 1;
}

/* Adds a part of `length` bytes; 0: it leads out, or is too long. */
static int go_on(char path[PATH_MAX], const char *part, size_t length)
{
    size_t n = strlen(path);
    if (!length || (length == 1 && part[0] == '.')) return 1;
    if (length == 2 && !memcmp(part, "..", 2)) return go_up(path);
    if (n + length + 2 > PATH_MAX) return 0;
    snprintf(path + n, PATH_MAX - n, "%s%.*s", n ? "/" : "", (int)length, part);
    return 1;
}

const khub__proven_file *khub__search_beside(const khub__proven *proven, const char *name, const char *needed)
{
    char path[PATH_MAX];
    const char *at = behind_origin(needed);
    if (!at || snprintf(path, sizeof(path), "%s", name) >= PATH_MAX) return NULL;
    go_up(path);
    while (*at) {
        size_t length = strcspn(at, "/");
        if (!go_on(path, at, length)) return NULL;
        at += length + (at[length] == '/');
    }
    return khub__proven_find(proven, path);
}

static int check_needed(const khub__elf *elf, const char *needed, const khub__proven *proven,
                        const char *name, khub_error *err)
{
    if (!strchr(needed, '/')) return KHUB_OK;
    if (needed[0] != '/' && !behind_origin(needed))
        return fail_here(elf, "needs ", needed, strlen(needed), err);
    if (!proven) return KHUB_OK;
    if (needed[0] == '/') return check_owner(elf, needed, err);
    return khub__search_beside(proven, name, needed)
               ? KHUB_OK
               : khub__fail(err, KHUB_E_LOAD, "%s: needs %s, which isn't a library of its build", elf->path,
                            needed);
}

int khub__search_check(const khub__elf *elf, const khub__proven *proven, const char *name, khub_error *err)
{
    const char *needed, *filter = khub__elf_filter(elf);
    if (filter)
        return khub__fail(err, KHUB_E_LOAD,
                          "%s: wants its symbols from %s (DT_FILTER, DT_AUXILIARY), which "
                          "no kernel does",
                          elf->path, filter);
    int rc = check_path(elf, proven != NULL, err);
    for (size_t i = 0; rc == KHUB_OK && (needed = khub__elf_needed(elf, i)) != NULL; i++)
        rc = check_needed(elf, needed, proven, name, err);
    return rc;
}
