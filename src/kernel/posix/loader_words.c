#include "kernel/posix/loader_words.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/text.h"
#include "kernel/posix/elf.h"
#include "kernel/provider.h"

#include <dlfcn.h>
#include <stdlib.h>

/* A C++ name as written in the source, the caller's to free() (the C++ library allocated it); NULL: it isn't
 * one, or no C++ library is in the process. */
static char *demangle(const char *symbol)
{
    char *(*cxa_demangle)(const char *, char *, size_t *, int *);
    void *at = strncmp(symbol, "_Z", 2) == 0 ? dlsym(RTLD_DEFAULT, "__cxa_demangle") : NULL;
    if (!at) return NULL;
    memcpy(&cxa_demangle, &at, sizeof(at));
    int status;
    return cxa_demangle(symbol, NULL, NULL, &status);
}

/* "Ss" is std::string of before C++11, and stands for nothing else at a place where a type can stand. */
static int has_old_strings(const char *symbol, const char *plain)
{
    return plain ? strstr(plain, "std::string") != NULL
                 : strncmp(symbol, "_Z", 2) == 0 && strstr(symbol, "Ss") != NULL;
}

/* "OBJECT: undefined symbol: SYMBOL", perhaps with ", version V" or the object once more behind it. */
static int fail_symbol(khub_error *err, const char *path, const char *words, const char *symbol)
{
    size_t length = strcspn(symbol, ", \t\n");
    char *name = khub__strndup(symbol, length);
    char *object = khub__strndup(words, (size_t)(symbol - words) - strlen(": undefined symbol: "));
    if (!name || !object) {
        khub__free(name);
        khub__free(object);
        return khub__fail_memory(err, "explaining an undefined symbol");
    }
    char *plain = demangle(name);
    const khub__provider *provider = khub__symbol_provider(name);
    int sibling = strcmp(object, path) != 0;
    int rc = khub__fail(
        err, KHUB_E_LOAD, "%s: undefined symbol %s%s%s%s%s%s%s%s%s%s", path, name, plain ? " = " : "",
        plain ? plain : "", symbol[length] == ',' ? symbol + length : "", sibling ? ", needed by " : "",
        sibling ? object : "", provider ? "; it belongs to " : "", provider ? provider->words : "",
        has_old_strings(name, plain) ? "; it takes pre-C++11 strings (_GLIBCXX_USE_CXX11_ABI=0)" : "",
        provider ? "" : "; nothing in this process has it");
    free(plain);
    khub__free(name);
    khub__free(object);
    return rc;
}

/* 1 when the library at `path` itself needs `name`. */
static int needs(const char *path, const char *name)
{
    khub__elf elf;
    if (khub__elf_open(&elf, path, NULL) != KHUB_OK) return 0;
    const char *needed;
    int found = 0;
    for (size_t i = 0; !found && (needed = khub__elf_needed(&elf, i)) != NULL; i++)
        found = !strcmp(needed, name);
    khub__elf_close(&elf);
    return found;
}

/* Which library beside `path` needs `name`; the caller's. NULL: `path` itself, or it isn't known. */
static char *needing_sibling(const char *path, const char *name)
{
    khub__elf elf;
    if (needs(path, name) || khub__elf_open(&elf, path, NULL) != KHUB_OK) return NULL;
    char *dir = khub__path_parent(path), *found = NULL;
    const char *needed;
    for (size_t i = 0; dir && !found && (needed = khub__elf_needed(&elf, i)) != NULL; i++) {
        found = khub__path_join(dir, khub__path_name(needed));
        if (found && !needs(found, name)) {
            khub__free(found);
            found = NULL;
        }
    }
    khub__free(dir);
    khub__elf_close(&elf);
    return found;
}

/* The places where the loader looked for what the library at `path` needs. */
static void add_places(khub__text *text, const char *path)
{
    khub__elf elf;
    char *dir = khub__path_parent(path);
    const char *runpath = NULL, *environment = getenv("LD_LIBRARY_PATH");
    int open = khub__elf_open(&elf, path, NULL) == KHUB_OK;
    if (open) runpath = khub__elf_runpath(&elf);
    if (runpath && *runpath) khub__text_add(text, " the library's own path ");
    while (dir && runpath && *runpath) {
        const char *origin = strstr(runpath, "$ORIGIN"), *braces = strstr(runpath, "${ORIGIN}");
        const char *next = !origin || (braces && braces < origin) ? braces : origin;
        khub__text_add_bytes(text, runpath, next ? (size_t)(next - runpath) : strlen(runpath));
        if (next) khub__text_add(text, dir);
        runpath = next ? next + (next == braces ? strlen("${ORIGIN}") : strlen("$ORIGIN")) : NULL;
    }
    if (open && khub__elf_runpath(&elf)) khub__text_add(text, ",");
    if (environment && *environment) khub__text_addf(text, " LD_LIBRARY_PATH (%s),", environment);
    khub__text_add(text, " the system's library directories");
    if (open) khub__elf_close(&elf);
    khub__free(dir);
}

/* "NAME: cannot open shared object file: …" */
static int fail_library(khub_error *err, const char *path, const char *words, size_t length)
{
    char *name = khub__strndup(words, length);
    char *sibling = name ? needing_sibling(path, name) : NULL;
    khub__text places = {0};
    add_places(&places, sibling ? sibling : path);
    char *where = khub__text_take(&places);
    const khub__provider *provider = name ? khub__library_provider(name) : NULL;
    int rc = name && where
                 ? khub__fail(err, KHUB_E_LOAD, "%s: needs %s%s%s%s%s%s, which isn't there; looked in%s",
                              path, name, provider ? " (" : "", provider ? provider->words : "",
                              provider ? ")" : "", sibling ? " for " : "", sibling ? sibling : "", where)
                 : khub__fail_memory(err, "explaining a missing library");
    khub__free(where);
    khub__free(sibling);
    khub__free(name);
    return rc;
}

static int fail_in_plain_words(khub_error *err, const char *path, const char *words)
{
    static const char undefined[] = ": undefined symbol: ", missing[] = ": cannot open shared object file: ";
    const char *at = strstr(words, undefined);
    if (at) return fail_symbol(err, path, words, at + strlen(undefined));
    at = strstr(words, missing);
    if (at && strncmp(words, path, strlen(path)) != 0)
        return fail_library(err, path, words, (size_t)(at - words));
    return khub__fail(err, KHUB_E_LOAD, "%s: the loader says: %s", path, words);
}

int khub__loader_fail(khub_error *err, const char *path, const char *words)
{
    char *copy =
        khub__strdup(words ? words : "no reason given"); /* the next dlsym takes dlerror's text away */
    int rc = copy ? fail_in_plain_words(err, path, copy)
                  : khub__fail_memory(err, "explaining what the loader says");
    khub__free(copy);
    return rc;
}
