/* Mappings as words of a command line: "default,maps/m.json,GeLU=org/repo@v1:GeLU,LayerNorm=". */
#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"
#include "layer/mapping.h"

enum { LONGEST = 1 << 16 };

static int starts_path(const char *part)
{
    return part[0] == '/' || part[0] == '.';
}

/* Behind the object that begins at `at`: its braces, whatever stands in strings. */
static size_t object_length(const char *at)
{
    size_t n = 0, depth = 0;
    int quoted = 0;
    for (; at[n]; n++) {
        if (quoted && at[n] == '\\' && at[n + 1])
            n++;
        else if (at[n] == '"')
            quoted = !quoted;
        else if (!quoted && at[n] == '{')
            depth++;
        else if (!quoted && at[n] == '}' && !--depth)
            return n + 1;
    }
    return n;
}

/* Where the object of "LAYER={...}" begins; 0: there is none. */
static size_t object_at(const char *part)
{
    size_t n = strcspn(part, "=,");
    return part[n] == '=' && part[n + 1] == '{' ? n + 1 : 0;
}

/* The end of a part: a comma, unless what follows it goes on with a range of versions (">=1,<3"), or it
 * stands in an object. */
static size_t part_length(const char *at)
{
    size_t n = object_at(at);
    if (n) n += object_length(at + n);
    for (;; n++) {
        n += strcspn(at + n, ",");
        if (!at[n]) return n;
        char next = at[n + 1 + strspn(at + n + 1, " ")];
        if (!next || !strchr("<>=!", next)) return n;
    }
}

/* One "LAYER={...}", an entry as a mapping's file has it. */
static int read_object(khub_mapping **out, const char *key, const char *object, const char *item,
                       khub_error *err)
{
    khub__text text = {0};
    khub__text_addf(&text, "{\"%s\": %s}", key, object);
    int rc = text.failed ? khub__fail_memory(err, "reading a mapping's items")
                         : khub_mapping_parse(out, text.data, item, err);
    khub__text_free(&text);
    return rc;
}

/* One "LAYER=NAME". */
static int read_item(khub_mapping **out, const char *item, khub_error *err)
{
    const char *equals = strchr(item, '=');
    char *key = khub__strndup(item, (size_t)(equals - item));
    if (!key) return khub__fail_memory(err, "reading a mapping's items");
    if (equals[1] == '{') {
        int read = read_object(out, key, equals + 1, item, err);
        khub__free(key);
        return read;
    }
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
