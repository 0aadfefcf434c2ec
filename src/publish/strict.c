#include "publish/strict.h"

#include "base/error.h"
#include "base/json.h"
#include "variant/archs.h"

#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGITS  "0123456789"

int khub__is_git_address(const char *text)
{
    static const char *const schemes[] = {"https://", "http://",      "ssh://",
                                          "git://",   "git+https://", "git+ssh://"};
    static const char host[] = LETTERS DIGITS "-.", path[] = LETTERS DIGITS "-._~:/?#[]@!$&'()*+,;=%";
    const char *rest = NULL;
    for (size_t i = 0; i < sizeof(schemes) / sizeof(*schemes) && !rest; i++)
        if (!strncmp(text, schemes[i], strlen(schemes[i]))) rest = text + strlen(schemes[i]);
    if (!rest) { /* git@github.com:org/name.git */
        size_t user = strspn(text, LETTERS DIGITS "-._"),
               server = text[user] == '@' ? strspn(text + user + 1, host) : 0;
        rest = user && server && text[user + 1 + server] == ':' ? text + user + 1 : "";
    }
    return strspn(rest, host) > 0 && !rest[strspn(rest, path)];
}

static int check_address(const json_t *metadata, const char *key, const khub__json_source *source)
{
    const char *text = NULL;
    int rc = khub__json_string(&text, metadata, key, source);
    if (rc != KHUB_OK || !text || khub__is_git_address(text)) return rc;
    return khub__fail(source->err, KHUB_E_FORMAT,
                      "%s: \"%s\" is \"%.100s\"; the address of a git repository is expected (https://…)",
                      source->file, key, text);
}

/* Three numbers. */
static int is_version(const char *text)
{
    for (int part = 0; part < 3; part++) {
        size_t n = strspn(text, DIGITS);
        if (n == 0 || n > 9 || text[n] != (part < 2 ? '.' : 0)) return 0;
        text += n + (part < 2);
    }
    return 1;
}

static int check_minver(const json_t *metadata, const khub__json_source *source)
{
    const char *text = NULL;
    int rc = khub__json_string(&text, metadata, "kernels-minver", source);
    if (rc != KHUB_OK || !text || is_version(text)) return rc;
    return khub__fail(source->err, KHUB_E_FORMAT,
                      "%s: \"kernels-minver\" is \"%.40s\"; a version has three numbers, as 0.17.0",
                      source->file, text);
}

/* "commit" (before: "sha") of one of provenance's parts. */
static int check_commit(const json_t *provenance, const char *part, const khub__json_source *source)
{
    const json_t *state = NULL;
    const char *commit = NULL;
    int rc = khub__json_object(&state, provenance, part, source);
    if (rc == KHUB_OK) rc = khub__json_string(&commit, state, "commit", source);
    if (rc == KHUB_OK && !commit) rc = khub__json_string(&commit, state, "sha", source);
    size_t n = commit ? strspn(commit, DIGITS "abcdefABCDEF") : 0;
    if (rc != KHUB_OK || !commit || (!commit[n] && (n == 40 || n == 64))) return rc;
    return khub__fail(
        source->err, KHUB_E_FORMAT,
        "%s: the commit of \"provenance\"'s \"%s\" is \"%.70s\"; 40 or 64 hexadecimal digits are expected",
        source->file, part, commit);
}

static int check_provenance(const json_t *metadata, const khub__json_source *source)
{
    const json_t *provenance = NULL, *builder = NULL;
    int rc = khub__json_object(&provenance, metadata, "provenance", source);
    if (rc != KHUB_OK || !provenance) return rc;
    rc = khub__json_object(&builder, provenance, "kernel-builder", source);
    if (rc == KHUB_OK && !builder)
        rc = khub__fail(source->err, KHUB_E_FORMAT, "%s: \"provenance\" has no \"kernel-builder\"",
                        source->file);
    if (rc == KHUB_OK && !json_is_string(json_object_get(builder, "version")))
        rc = khub__fail(source->err, KHUB_E_FORMAT,
                        "%s: \"provenance\"'s \"kernel-builder\" has no \"version\"", source->file);
    if (rc == KHUB_OK) rc = check_commit(provenance, "kernel-builder", source);
    return rc == KHUB_OK ? check_commit(provenance, "kernel", source) : rc;
}

static int is_arch(const char *backend, const char *text)
{
    if (!strcmp(backend, "cuda")) return khub__cuda_arch_fits(text, "9.0") != KHUB__ARCH_UNREADABLE;
    return khub__rocm_arch_fits(text, "gfx942") != KHUB__ARCH_UNREADABLE;
}

static int check_archs(const json_t *metadata, const khub__json_source *source)
{
    const json_t *backend = json_object_get(metadata, "backend"), *archs = json_object_get(backend, "archs"),
                 *arch;
    const char *type = json_string_value(json_object_get(backend, "type"));
    const khub__backend *known = type ? khub__backend_find(type) : NULL;
    size_t i;
    if (!known || json_array_size(archs) == 0) return KHUB_OK;
    if (!khub__archs_matter(known))
        return khub__fail(source->err, KHUB_E_FORMAT,
                          "%s: \"archs\" are those of cuda and rocm, the backend is %s", source->file, type);
    json_array_foreach (archs, i, arch)
        if (!is_arch(type, json_string_value(arch)))
            return khub__fail(source->err, KHUB_E_FORMAT, "%s: \"archs\" has \"%.32s\"; %s", source->file,
                              json_string_value(arch),
                              !strcmp(type, "cuda")
                                  ? "one of cuda is \"9.0\", \"9.0a\", \"10.0f\" or \"9.0+PTX\""
                                  : "one of rocm is \"gfx942\"");
    return KHUB_OK;
}

int khub__strict_check(const json_t *metadata, const char *file, khub_error *err)
{
    khub__json_source source = {file, err};
    int rc = check_address(metadata, "upstream", &source);
    if (rc == KHUB_OK) rc = check_address(metadata, "source", &source);
    if (rc == KHUB_OK) rc = check_minver(metadata, &source);
    if (rc == KHUB_OK) rc = check_archs(metadata, &source);
    return rc == KHUB_OK ? check_provenance(metadata, &source) : rc;
}
