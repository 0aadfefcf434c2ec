#include "hub/repo.h"

#include "base/error.h"
#include "base/text.h"

#include <stdio.h>
#include <stdlib.h>

enum { PATH_MAX_BYTES = 1000, PART_MAX_BYTES = 255 };

/* What the Hub allows in a name: letters, digits, "-", "_", ".", not at its ends, no ".." and no "--" (which
 * the cache puts between the parts). */
static int is_name(const char *text, size_t length)
{
    if (length == 0 || length > 96) return 0;
    for (size_t i = 0; i < length; i++) {
        char c = text[i];
        int mark = c == '-' || c == '.';
        if (!mark && !(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') && !(c >= '0' && c <= '9') &&
            c != '_')
            return 0;
        if (mark && (i == 0 || i + 1 == length || text[i + 1] == c)) return 0;
    }
    return 1;
}

static int check_id(const khub__repo *repo, const char *given, khub_error *err)
{
    const char *slash = strchr(repo->id, '/'), *name = slash ? slash + 1 : repo->id;
    if (repo->kind == KHUB__REPO_KERNEL && !slash)
        return khub__fail(err, KHUB_E_INVAL, "%s: a kernel is named ORG/NAME", given);
    if ((slash && !is_name(repo->id, (size_t)(slash - repo->id))) || !is_name(name, strlen(name)))
        return khub__fail(err, KHUB_E_INVAL,
                          "%s: isn't a repository's name: ORG/NAME of letters, digits, \"-\", \"_\", \".\"",
                          given);
    return KHUB_OK;
}

/* Git's own rules for a ref, so that it can stand in an address and be a path in the cache. */
static int is_revision(const char *text)
{
    size_t length = strlen(text);
    if (length == 0 || length > KHUB__REVISION_MAX || text[0] == '-' || text[length - 1] == '.') return 0;
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)text[i] <= ' ' || text[i] == 127 || strchr("~^:?*[\\@", text[i])) return 0;
    return khub__is_repo_path(text, length);
}

int64_t khub__version_of(const char *branch)
{
    char *end;
    if (branch[0] != 'v' || branch[1] < '0' || branch[1] > '9' || strlen(branch) > 18) return -1;
    if (branch[1] == '0' && branch[2]) return -1;
    long long version = strtoll(branch + 1, &end, 10);
    return *end ? -1 : version;
}

/* The same without the "v", as a user may write it. */
static int64_t version_of(const char *text)
{
    char branch[KHUB__REVISION_MAX + 2] = "v";
    if (*text == 'v') return khub__version_of(text);
    memcpy(branch + 1, text, strlen(text) + 1);
    return khub__version_of(branch);
}

/* A range of one version is that version. */
static int take_range(khub__wanted *out, const char *text, const char *name, khub_error *err)
{
    khub_error why = {0};
    if (out->repo.kind != KHUB__REPO_KERNEL)
        return khub__fail(err, KHUB_E_INVAL, "%.300s: only kernels have versions to take from a range", name);
    if (khub__range_parse(&out->range, text, &why) != KHUB_OK)
        return khub__fail(err, KHUB_E_INVAL, "%s: %s", out->repo.id, why.message);
    out->is_range = out->range.min < out->range.max;
    if (out->is_range) {
        khub__range_text(out->revision, &out->range);
    } else {
        out->version = out->range.min;
        snprintf(out->revision, sizeof(out->revision), "v%lld", (long long)out->version);
    }
    return KHUB_OK;
}

/* As git does: a commit's digits may be capitals. */
static void lower_commit(char *revision)
{
    size_t length = strspn(revision, "0123456789abcdefABCDEF");
    if (revision[length] || (length != 40 && length != 64)) return;
    for (; *revision; revision++)
        if (*revision < 'a' && *revision > '9') *revision = (char)(*revision - 'A' + 'a');
}

int khub__wanted_parse(khub__wanted *out, khub__repo_kind kind, const char *name, khub_error *err)
{
    memset(out, 0, sizeof(*out));
    out->repo.kind = kind;
    out->version = -1;
    const char *at = strchr(name, '@');
    size_t length = at ? (size_t)(at - name) : strlen(name);
    if (length > KHUB__REPO_ID_MAX)
        return khub__fail(err, KHUB_E_INVAL, "%.60s...: is too long for a repository's name", name);
    memcpy(out->repo.id, name, length);
    int rc = check_id(&out->repo, name, err);
    if (rc != KHUB_OK || !at) return rc;
    if (khub__is_range(at + 1)) return take_range(out, at + 1, name, err);
    if (!is_revision(at + 1))
        return khub__fail(err, KHUB_E_INVAL,
                          "%.300s: \"%.300s\" after \"@\" is no version, branch, tag or commit", name,
                          at + 1);
    khub__copy(out->revision, sizeof(out->revision), at + 1);
    lower_commit(out->revision);
    out->is_commit = khub__is_commit(out->revision);
    if (!out->is_commit) out->version = version_of(out->revision);
    if (out->version >= 0 && out->revision[0] != 'v') { /* version 1 is branch v1 */
        out->revision[0] = 'v';
        khub__copy(out->revision + 1, sizeof(out->revision) - 1, at + 1);
    }
    return KHUB_OK;
}

const char *khub__repo_api(khub__repo_kind kind)
{
    return kind == KHUB__REPO_KERNEL ? "kernels" : "models";
}

void khub__repo_owner(char out[KHUB__REPO_ID_MAX + 1], const khub__repo *repo)
{
    const char *slash = strchr(repo->id, '/');
    size_t length = slash ? (size_t)(slash - repo->id) : 0;
    memcpy(out, repo->id, length);
    out[length] = 0;
}

int khub__is_commit(const char *text)
{
    size_t length = strspn(text, "0123456789abcdef");
    return !text[length] && (length == 40 || length == 64);
}

const char *khub__commit_hint(const char *revision)
{
    size_t length = strspn(revision, "0123456789abcdefABCDEF");
    return !revision[length] && length >= 7 && length < 40 ? "; a commit has 40 digits" : "";
}

/* Bytes of the UTF-8 character at `text`, of which `length` are left; 0: it is none (RFC 3629). */
static size_t character(const unsigned char *text, size_t length)
{
    if (text[0] < 0x80) return 1;
    size_t n = text[0] >= 0xF0 ? 4 : text[0] >= 0xE0 ? 3 : 2;
    if (text[0] < 0xC2 || text[0] > 0xF4 || n > length) return 0;
    for (size_t i = 1; i < n; i++)
        if ((text[i] & 0xC0) != 0x80) return 0;
    if ((text[0] == 0xE0 && text[1] < 0xA0) || (text[0] == 0xED && text[1] > 0x9F) ||
        (text[0] == 0xF0 && text[1] < 0x90) || (text[0] == 0xF4 && text[1] > 0x8F))
        return 0;
    return n;
}

static int is_part(const char *text, size_t length)
{
    if (length == 0 || length > PART_MAX_BYTES) return 0;
    return !(text[0] == '.' && (length == 1 || (length == 2 && text[1] == '.')));
}

int khub__is_repo_path(const char *path, size_t length)
{
    if (length == 0 || length > PATH_MAX_BYTES) return 0;
    const unsigned char *text = (const unsigned char *)path;
    if (length >= 2 && path[1] == ':') return 0; /* a drive */
    for (size_t i = 0, n; i < length; i += n) {
        n = character(text + i, length - i);
        if (n == 0 || text[i] < ' ' || text[i] == 127 || text[i] == '\\') return 0;
        if (n == 2 && text[i] == 0xC2 && text[i + 1] < 0xA0) return 0; /* control characters of Latin-1 */
    }
    for (size_t at = 0; at <= length;) {
        const char *slash = memchr(path + at, '/', length - at);
        size_t end = slash ? (size_t)(slash - path) : length;
        if (!is_part(path + at, end - at)) return 0;
        at = end + 1;
    }
    return 1;
}
