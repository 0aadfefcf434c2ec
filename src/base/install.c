/* Where khub is installed, from where its code was loaded. */
#include "base/file.h"
#include "base/self.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

typedef struct place {
    char library_dir[4096], prefix[4096];
} place;

static _Atomic(place *) known;

static void put(char *to, const char *from)
{
    size_t n = strlen(from);
    if (n < sizeof(((place *)0)->prefix)) memcpy(to, from, n + 1);
}

/* "/a/b" becomes "/a", "/a" becomes "/". */
static void cut_last(char *path)
{
    char *slash = strrchr(path, '/');
    if (slash) slash[slash == path] = 0;
}

/* From the directory that this code is in, which is changed: that of the library, or of a program. */
static void take(place *out, char *dir, int is_program)
{
    static const char *const homes[] = {"/" KHUB_BINDIR, "/" KHUB_LIBEXECDIR "/khub"};
    put(out->library_dir, dir);
    for (size_t i = 0; is_program && i < sizeof(homes) / sizeof(*homes); i++) {
        size_t n = strlen(dir), tail = strlen(homes[i]);
        if (n <= tail || strcmp(dir + n - tail, homes[i]) != 0) continue;
        dir[n - tail] = 0;
        put(out->prefix, dir);
        snprintf(out->library_dir, sizeof(out->library_dir), "%s/" KHUB_LIBDIR, dir);
        return;
    }
    cut_last(dir);
    put(out->prefix, dir);
}

static void find(place *out)
{
    const char *set = getenv("KHUB_PREFIX");
    int is_program = 0;
    if (set && *set) {
        put(out->prefix, set);
        snprintf(out->library_dir, sizeof(out->library_dir), "%s/" KHUB_LIBDIR, set);
        return;
    }
    char *file = khub__own_file(&is_program);
    if (file) {
        cut_last(file);
        take(out, file, is_program);
    }
    free(file);
}

/* Takes the C library's memory: what khub's allocator refused once would be missing for good. */
static const place *here(void)
{
    place *first = atomic_load(&known), *made;
    if (first || !(made = calloc(1, sizeof(*made)))) return first;
    find(made);
    if (atomic_compare_exchange_strong(&known, &first, made)) return made;
    free(made); /* another thread was faster */
    return first;
}

const char *khub__library_dir(void)
{
    const place *p = here();
    return p && p->library_dir[0] ? p->library_dir : NULL;
}

const char *khub__install_prefix(void)
{
    const place *p = here();
    return p && p->prefix[0] ? p->prefix : NULL;
}
