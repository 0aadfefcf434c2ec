/* What khub serve reads of a stranger: the address and its query (also as a form), the Range header, lists of
 * entity tags, git-lfs pointers; the input's lines, in this order. */
#include "serve/address.h"
#include "serve/form.h"
#include "serve/pointer.h"
#include "serve/range.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(int holds)
{
    if (!holds) abort();
}

/* The next line of *rest, cut off; "" when there is none. */
static char *line(char **rest)
{
    char *start = *rest, *end = strchr(start, '\n');
    *rest = end ? end + 1 : start + strlen(start);
    if (end) *end = 0;
    return start;
}

/* Nothing that is accepted can lead out of a folder. */
static void check_stays(const char *path)
{
    check(path[0] != '/' && !strstr(path, "//") && !strchr(path, '\\') && strlen(path) <= SERVE_PATH_MAX);
    for (const char *at = path; at; at = strchr(at, '/') ? strchr(at, '/') + 1 : NULL) {
        size_t n = strcspn(at, "/");
        check(!(n == 1 && at[0] == '.') && !(n == 2 && !memcmp(at, "..", 2)));
    }
    for (const char *at = path; *at; at++)
        check((unsigned char)*at >= 0x20 && *at != 0x7F);
}

/* What was understood, written as an address and read again, is the same. */
static void check_again(const serve_address *address)
{
    char text[3 * (SERVE_PATH_MAX + SERVE_REVISION_MAX) + SERVE_ID_MAX + 64],
        revision[3 * SERVE_REVISION_MAX + 1], path[3 * SERVE_PATH_MAX + 1];
    serve_address again;
    unsigned status;
    serve_encode(revision, address->revision, 0);
    serve_encode(path, address->path, 1);
    if (address->what == SERVE_TREE)
        snprintf(text, sizeof(text), "/api/%s/%s/tree/%s%s%s",
                 address->kind == SERVE_KERNEL ? "kernels" : "models", address->id, revision,
                 *path ? "/" : "", path);
    else if (address->what == SERVE_RESOLVE)
        snprintf(text, sizeof(text), "%s/%s/resolve/%s/%s", address->kind == SERVE_KERNEL ? "/kernels" : "",
                 address->id, revision, path);
    else
        return;
    check(serve_address_parse(&again, &status, text, NULL) == NULL);
    check(again.what == address->what && again.kind == address->kind && !strcmp(again.id, address->id) &&
          !strcmp(again.revision, address->revision) && !strcmp(again.path, address->path));
}

static void read_address(const char *path, const char *query)
{
    serve_address address;
    unsigned status;
    const char *fault = serve_address_parse(&address, &status, path, query);
    check((fault == NULL) == (status == 200) && (status == 200 || status == 400 || status == 404));
    if (fault) return;
    check_stays(address.path);
    check_stays(address.revision);
    check_stays(address.id);
    check_again(&address);
}

static void read_range(const char *header)
{
    static const uint64_t sizes[] = {0, 1, 1000, UINT64_MAX / 2};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
        uint64_t first = 0, count = 0;
        if (serve_range_read(&first, &count, header, sizes[i]) != SERVE_RANGE_PART) continue;
        check(count && first < sizes[i] && count <= sizes[i] - first);
    }
}

static void read_pointer(const char *text)
{
    char sha256[65] = "";
    uint64_t size = 0;
    if (serve_pointer_read(sha256, &size, text, strlen(text)) == 0) check(strlen(sha256) == 64);
}

static void read_form(const char *text)
{
    size_t room = strlen(text), count, used = 0;
    char *form = strdup(text);
    if (form && serve_form_values(&count, form, "paths") == 0)
        for (; count; count--)
            used += strlen(form + used) + 1;
    check(used <= room + 1);
    free(form);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1), *rest = text;
    if (!text) return 0;
    memcpy(text, data, size);
    text[size] = 0;
    const char *path = line(&rest), *query = line(&rest);
    read_address(path, query);
    read_form(query);
    read_range(line(&rest));
    serve_etag_matches(line(&rest), "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391");
    read_pointer(rest);
    free(text);
    return 0;
}
