/* Mappings as words of a command line: "default,maps/m.json,GeLU=org/repo@v1:GeLU,LayerNorm=". */
#include "base/error.h"
#include "base/memory.h"
#include "layer/mapping.h"

enum { LONGEST = 1 << 16 };

static int starts_path(const char *part)
{
    return part[0] == '/' || part[0] == '.';
}

/* The end of a part: a comma, unless what follows it goes on with a range of versions (">=1,<3"). */
static size_t part_length(const char *at)
{
    size_t n = 0;
    for (;; n++) {
        n += strcspn(at + n, ",");
        if (!at[n]) return n;
        char next = at[n + 1 + strspn(at + n + 1, " ")];
        if (!next || !strchr("<>=!", next)) return n;
    }
}

/* One "LAYER=NAME". */
static int read_item(khub_mapping **out, const char *item, khub_error *err)
{
    const char *equals = strchr(item, '=');
    char *key = khub__strndup(item, (size_t)(equals - item));
    if (!key) return khub__fail_memory(err, "reading a mapping's items");
    khub_mapping_entry entry;
    KHUB_INIT(&entry);
    entry.kernel = equals + 1;
    int rc = khub__mapping_begin(out, item, err);
    if (rc == KHUB_OK) rc = khub__mapping_put(*out, key, &entry, item, err);
    khub__free(key);
    if (rc == KHUB_OK) return KHUB_OK;
    khub_mapping_free(*out);
    *out = NULL;
    return rc;
}

static int read_part(khub_mapping **out, const char *part, khub_error *err)
{
    if (!starts_path(part) && strchr(part, '=')) return read_item(out, part, err);
    if (!strcmp(part, "default")) return khub__mapping_default(out, err);
    return khub_mapping_read(out, part, err);
}

static int lay_over(khub_mapping **all, const char *part, khub_error *err)
{
    khub_mapping *over;
    int rc =
        *part ? read_part(&over, part, err)
              : khub__fail(err, KHUB_E_INVAL, "a mapping's item is empty: LAYER=NAME, a file or \"default\"");
    if (rc != KHUB_OK) return rc;
    if (!*all) {
        *all = over;
        return KHUB_OK;
    }
    rc = khub_mapping_merge(*all, over, err);
    khub_mapping_free(over);
    return rc;
}

static int read_parts(khub_mapping **all, char *text, khub_error *err)
{
    int rc = !starts_path(text) && memchr(text, '=', part_length(text)) ? khub__mapping_default(all, err)
                                                                        : KHUB_OK;
    while (rc == KHUB_OK) {
        size_t n = part_length(text);
        int more = text[n] == ',';
        text[n] = 0;
        rc = lay_over(all, text, err);
        if (!more) return rc;
        text += n + 1;
    }
    return rc;
}

int khub_mapping_items(khub_mapping **out, const char *items, khub_error *err)
{
    int rc = khub__given("khub_mapping_items", out && items, err);
    if (rc != KHUB_OK) return rc;
    *out = NULL;
    if (strlen(items) > LONGEST)
        return khub__fail(err, KHUB_E_INVAL, "a mapping's items are longer than 64 KiB");
    char *text = khub__strdup(items);
    rc = text ? read_parts(out, text, err) : khub__fail_memory(err, "reading a mapping's items");
    khub__free(text);
    if (rc == KHUB_OK) return KHUB_OK;
    khub_mapping_free(*out);
    *out = NULL;
    return rc;
}
