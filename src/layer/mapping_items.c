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
        if (!at[n] || !at[n + 1] || !strchr("<>=!", at[n + 1])) return n;
    }
}

/* One "LAYER=NAME". */
static int read_item(khub_mapping **out, char *item, khub_error *err)
{
    char *equals = strchr(item, '=');
    *equals = 0;
    khub_mapping_entry entry;
    KHUB_INIT(&entry);
    entry.kernel = equals + 1;
    khub__key *key;
    khub_error why = {0};
    int rc = khub__key_parse(&key, item, "item", &why);
    *out = NULL;
    for (size_t i = 0; rc == KHUB_OK && i < key->part_count; i++)
        if (!khub__layer_find(key->part[i].layer))
            rc = khub__fail(&why, KHUB_E_INVAL, "there is no layer \"%s\"; docs/layers.md lists them",
                            key->part[i].layer);
    khub__free(rc == KHUB_OK || rc == KHUB_E_INVAL ? key : NULL);
    if (rc == KHUB_OK) rc = khub_mapping_new(out, &why);
    if (rc == KHUB_OK) rc = khub_mapping_set(*out, item, &entry, &why);
    *equals = '=';
    if (rc == KHUB_OK) return KHUB_OK;
    khub_mapping_free(*out);
    *out = NULL;
    return khub__fail(err, rc == KHUB_E_NOMEM ? rc : KHUB_E_INVAL, "%s: %s", item, why.message);
}

static int read_part(khub_mapping **out, char *part, khub_error *err)
{
    if (!starts_path(part) && strchr(part, '=')) return read_item(out, part, err);
    if (!strcmp(part, "default")) return khub__mapping_default(out, err);
    return khub_mapping_read(out, part, err);
}

static int lay_over(khub_mapping **all, char *part, khub_error *err)
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
