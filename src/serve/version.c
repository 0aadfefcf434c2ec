#include "serve/version.h"

#include "base/json.h"
#include "base/memory.h"

#include <string.h>
#include <unistd.h>

enum { METADATA_MAX = 1 << 20 };

static int read_file(char *text, size_t size, const char *where)
{
    serve_identity identity;
    int fd = serve_root_file(&identity, where);
    if (fd < 0) return -1;
    size_t have = 0;
    ssize_t n = identity.size == size ? 1 : 0;
    while (n > 0 && have < size) {
        n = read(fd, text + have, size - have);
        if (n > 0) have += (size_t)n;
    }
    close(fd);
    return have == size ? 0 : -1;
}

static int64_t version_in(const serve_entry *entry)
{
    if (!entry->where || entry->size > METADATA_MAX) return -1;
    char *text = khub__malloc((size_t)entry->size + 1);
    json_t *root = NULL;
    int64_t version = -1;
    const khub__json_source source = {entry->path, NULL};
    if (text && read_file(text, (size_t)entry->size, entry->where) == 0 &&
        khub__json_parse(&root, text, (size_t)entry->size, entry->path, NULL) == KHUB_OK)
        khub__json_integer(&version, root, "version", &source);
    json_decref(root);
    khub__free(text);
    return version;
}

/* build/VARIANT/metadata.json */
static int is_metadata(const char *path)
{
    const char *variant = strncmp(path, "build/", 6) ? NULL : strchr(path + 6, '/');
    return variant && !strcmp(variant, "/metadata.json");
}

int64_t serve_version_of(const serve_listing *listing)
{
    size_t at = 0;
    for (const serve_entry *entry; (entry = serve_listing_next(listing, &at, "build", 1));) {
        int64_t version = is_metadata(entry->path) ? version_in(entry) : -1;
        if (version >= 0) return version;
    }
    return -1;
}
