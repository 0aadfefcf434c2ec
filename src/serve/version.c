#include "serve/version.h"

#include "base/error.h"
#include "base/json.h"
#include "base/memory.h"

#include <string.h>

enum { METADATA_MAX = 1 << 20 };

/* *version stays as it is when the file says none. */
static int version_in(int64_t *version, const serve_entry *entry, khub_error *err)
{
    if (!entry->where || entry->size > METADATA_MAX) return KHUB_OK;
    size_t size = (size_t)entry->size;
    char *text = khub__malloc(size + 1);
    json_t *root = NULL;
    const khub__json_source source = {entry->path, NULL};
    int rc = text ? KHUB_OK : KHUB_E_NOMEM;
    int64_t length = text ? serve_root_read(text, size, entry->where) : -1;
    if (length >= 0) rc = khub__json_parse(&root, text, (size_t)length, entry->path, NULL);
    if (rc == KHUB_OK && root) khub__json_integer(version, root, "version", &source);
    json_decref(root);
    khub__free(text);
    return rc == KHUB_E_NOMEM ? khub__fail_memory(err, "reading metadata.json") : KHUB_OK;
}

/* build/VARIANT/metadata.json */
static int is_metadata(const char *path)
{
    const char *variant = strncmp(path, "build/", 6) ? NULL : strchr(path + 6, '/');
    return variant && !strcmp(variant, "/metadata.json");
}

int serve_version_of(int64_t *version, const serve_listing *listing, khub_error *err)
{
    size_t at = 0;
    int rc = KHUB_OK;
    *version = -1;
    for (const serve_entry *entry;
         rc == KHUB_OK && *version < 0 && (entry = serve_listing_next(listing, &at, "build", 1));)
        if (is_metadata(entry->path)) rc = version_in(version, entry, err);
    return rc;
}
