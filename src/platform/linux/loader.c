#include "platform/loader.h"

#include "base/memory.h"
#include "base/text.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_PATH = 4096 };

#if defined(__x86_64__)
#define MULTIARCH "x86_64-linux-gnu"
enum { THIS_MACHINE = EM_X86_64 };
#elif defined(__aarch64__)
#define MULTIARCH "aarch64-linux-gnu"
enum { THIS_MACHINE = EM_AARCH64 };
#else
#define MULTIARCH "."
enum { THIS_MACHINE = EM_NONE };
#endif

/* Two files are one when device and inode agree. */
typedef struct identity {
    dev_t device;
    ino_t inode;
} identity;

static int identify(identity *out, const char *path, int want_directory)
{
    struct stat st;
    if (stat(path, &st) != 0 || !S_ISDIR(st.st_mode) != !want_directory) return 0;
    *out = (identity){st.st_dev, st.st_ino};
    return 1;
}

static int seen(const identity *known, size_t count, const identity *one)
{
    for (size_t i = 0; i < count; i++)
        if (known[i].device == one->device && known[i].inode == one->inode) return 1;
    return 0;
}

/* Debian's directories, and those of systems that keep 64-bit libraries apart; /lib is a link on most. */
static void find_dirs(khub__loader *loader)
{
    static const char *const dirs[] = {
        "/usr/lib/" MULTIARCH, "/lib/" MULTIARCH, "/usr/lib64", "/lib64", "/usr/lib", "/lib"};
    identity known[KHUB__LOADER_DIRS];
    char path[MAX_PATH];
    for (size_t i = 0; i < sizeof(dirs) / sizeof(*dirs); i++) {
        snprintf(path, sizeof(path), "%s%s", loader->root, dirs[i]);
        if (!identify(&known[loader->dir_count], path, 1) ||
            seen(known, loader->dir_count, &known[loader->dir_count]))
            continue;
        loader->dirs[loader->dir_count++] = dirs[i];
    }
}

void khub__loader_open(khub__loader *loader, const char *root, const char *library_path)
{
    char path[MAX_PATH];
    memset(loader, 0, sizeof(*loader));
    loader->root = root;
    loader->library_path = library_path && *library_path ? library_path : NULL;
    snprintf(path, sizeof(path), "%s/etc/ld.so.cache", root);
    khub__file_map(&loader->cache, path, NULL);
    find_dirs(loader);
}

void khub__loader_close(khub__loader *loader)
{
    khub__bytes_free(&loader->cache);
}

/* What khub__loader_find has found so far. */
typedef struct finds {
    const char **paths;
    size_t count, max;
    identity known[16];
    khub__pool *pool;
} finds;

static void take(finds *f, const char *path)
{
    if (f->count == f->max || f->count == sizeof(f->known) / sizeof(*f->known)) return;
    if (!identify(&f->known[f->count], path, 0) || seen(f->known, f->count, &f->known[f->count])) return;
    const char *copy = khub__pool_text(f->pool, path);
    if (copy) f->paths[f->count++] = copy;
}

/* Entries are separated by ":" or ";"; an empty one is the working directory. */
static void search_library_path(finds *f, const char *list, const char *name)
{
    char path[MAX_PATH];
    for (;;) {
        size_t n = strcspn(list, ":;");
        int length = snprintf(path, sizeof(path), "%.*s%s%s", (int)(n < MAX_PATH ? n : MAX_PATH), list,
                              n ? "/" : "./", name);
        if (length > 0 && (size_t)length < sizeof(path)) take(f, path);
        if (!list[n]) return;
        list += n + 1;
    }
}

size_t khub__loader_find(const char **paths, size_t max, const khub__loader *loader, const char *name,
                         khub__pool *pool)
{
    finds f = {.paths = paths, .max = max, .pool = pool};
    char path[MAX_PATH];
    if (loader->library_path) search_library_path(&f, loader->library_path, name);
    const char *cached = khub__loader_cache_find(loader->cache.data, loader->cache.length, name);
    if (cached && (size_t)snprintf(path, sizeof(path), "%s%s", loader->root, cached) < sizeof(path))
        take(&f, path);
    for (size_t i = 0; i < loader->dir_count && f.count < max; i++) {
        snprintf(path, sizeof(path), "%s%s/%s", loader->root, loader->dirs[i], name);
        take(&f, path);
    }
    return f.count;
}

const char *khub__loader_places(const khub__loader *loader, khub__pool *pool)
{
    khub__text text = {0};
    if (loader->library_path) khub__text_add(&text, "LD_LIBRARY_PATH, ");
    if (loader->cache.length) khub__text_add(&text, "/etc/ld.so.cache, ");
    for (size_t i = 0; i < loader->dir_count; i++)
        khub__text_addf(&text, "%s%s", i ? ", " : "", loader->dirs[i]);
    char *list = khub__text_take(&text);
    const char *copy = khub__pool_text(pool, list);
    if (!list) pool->failed = 1;
    khub__free(list);
    return copy;
}

/* What dl_iterate_phdr's callback looks for, and the name it found. */
typedef struct lookup {
    const char *name;
    char path[MAX_PATH];
} lookup;

static int match_object(struct dl_phdr_info *info, size_t size, void *user)
{
    lookup *l = user;
    const char *slash = strrchr(info->dlpi_name, '/'), *file = slash ? slash + 1 : info->dlpi_name;
    size_t n = strlen(l->name);
    (void)size;
    if (strncmp(file, l->name, n) != 0 || (file[n] && file[n] != '.')) return 0;
    snprintf(l->path, sizeof(l->path), "%s", info->dlpi_name);
    return 1;
}

const char *khub__loaded_path(const char *name, khub__pool *pool)
{
    lookup l = {.name = name};
    return dl_iterate_phdr(match_object, &l) ? khub__pool_text(pool, l.path) : NULL;
}

void *khub__loaded_symbol(const char *path, const char *name)
{
    void *handle = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
    void *symbol = handle ? dlsym(handle, name) : NULL;
    if (handle) dlclose(handle); /* gives back our count of it, the library stays */
    return symbol;
}

const char *khub__library_judge(const unsigned char *head, long length)
{
    static const char pointer[] = "version https://git-lfs";
    uint16_t machine, type;
    if (length == 0) return "is empty";
    if (length >= (long)sizeof(pointer) - 1 && !memcmp(head, pointer, sizeof(pointer) - 1))
        return "is a git-lfs pointer file, not the content";
    if (length < 20 || memcmp(head, ELFMAG, SELFMAG) != 0) return "isn't a library (no ELF header)";
    memcpy(&type, head + 16, 2);
    memcpy(&machine, head + 18, 2);
    if (head[EI_CLASS] != (sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32) ||
        (THIS_MACHINE != EM_NONE && machine != THIS_MACHINE))
        return "is a library for another kind of machine";
    return type == ET_DYN ? NULL : "is an ELF file, but not a library";
}

const char *khub__not_a_library(const char *path)
{
    unsigned char head[64];
    if (khub__file_kind(path) == KHUB__FILE_DIRECTORY)
        return "is a directory, the path of a library is expected";
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return access(path, F_OK) == 0 ? "can't be read" : "isn't there";
    long length = (long)read(fd, head, sizeof(head));
    close(fd);
    return length < 0 ? "can't be read" : khub__library_judge(head, length);
}
