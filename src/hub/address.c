#include "hub/address.h"

#include "base/error.h"
#include "base/memory.h"
#include "hub/url.h"

static void start(khub__text *text, const char *endpoint, const khub__repo *repo, const char *what)
{
    khub__text_addf(text, "%s/api/%s/", endpoint, khub__repo_api(repo->kind));
    khub__url_add_path(text, repo->id);
    khub__text_add(text, what);
}

char *khub__address_refs(const char *endpoint, const khub__repo *repo)
{
    khub__text text = {0};
    start(&text, endpoint, repo, "/refs");
    return khub__text_take(&text);
}

char *khub__address_revision(const char *endpoint, const khub__repo *repo, const char *revision)
{
    khub__text text = {0};
    start(&text, endpoint, repo, "/revision/");
    khub__url_add_segment(&text, revision);
    return khub__text_take(&text);
}

char *khub__address_tree(const char *endpoint, const khub__repo *repo, const char *commit)
{
    khub__text text = {0};
    start(&text, endpoint, repo, "/tree/");
    khub__url_add_segment(&text, commit);
    khub__text_add(&text, "?recursive=true");
    return khub__text_take(&text);
}

char *khub__address_overview(const char *endpoint, const char *org)
{
    khub__text text = {0};
    khub__text_addf(&text, "%s/api/organizations/", endpoint);
    khub__url_add_segment(&text, org);
    khub__text_add(&text, "/overview");
    return khub__text_take(&text);
}

char *khub__address_file(const char *endpoint, const khub__repo *repo, const char *commit, const char *path)
{
    khub__text text = {0};
    khub__text_addf(&text, "%s%s/", endpoint, repo->kind == KHUB__REPO_KERNEL ? "/kernels" : "");
    khub__url_add_path(&text, repo->id);
    khub__text_add(&text, "/resolve/");
    khub__url_add_segment(&text, commit);
    khub__text_add(&text, "/");
    khub__url_add_path(&text, path);
    return khub__text_take(&text);
}

int khub__address_page(char **out, const char *endpoint, const char *page, const char *next, khub_error *err)
{
    char *url;
    khub__url home, to;
    int rc = khub__url_resolve_any(&url, page, next, err);
    if (rc != KHUB_OK) return rc;
    if (khub__url_parse(&home, endpoint) != 0 || khub__url_parse(&to, url) != 0) {
        khub__free(url);
        return khub__fail(err, KHUB_E_NETWORK, "%s: isn't an address", endpoint);
    }
    if (khub__url_same_origin(&home, &to)) {
        *out = url;
        return KHUB_OK;
    }
    size_t prefix = strlen(home.path);
    khub__text text = {0};
    khub__text_add_bytes(&text, endpoint, strlen(endpoint) - prefix);
    int has_prefix = strncmp(to.path, home.path, prefix) == 0 && strchr("/?", to.path[prefix]);
    if (!has_prefix) khub__text_add(&text, home.path);
    khub__text_add(&text, to.path);
    khub__free(url);
    *out = khub__text_take(&text);
    return *out ? KHUB_OK : khub__fail_memory(err, "listing a repository");
}

/* What follows `start` in *text; NULL when it doesn't start so, or there is nothing already. */
static const char *after(const char *text, const char *start)
{
    size_t length = strlen(start);
    return text && strncmp(text, start, length) == 0 ? text + length : NULL;
}

int khub__address_repo(khub__repo *out, const char *endpoint, khub__repo_kind kind, const char *word,
                       const char *url)
{
    khub__wanted wanted;
    char id[KHUB__REPO_ID_MAX + 1];
    const char *at = after(after(after(after(url, endpoint), "/api/"), khub__repo_api(kind)), "/");
    size_t whole = at ? strcspn(at, "?#") : 0, tail = strlen(word) + 1;
    size_t length = whole > tail ? whole - tail : 0;
    if (!length || at[length] != '/' || memcmp(at + length + 1, word, tail - 1) != 0 ||
        length > KHUB__REPO_ID_MAX || memchr(at, '@', length))
        return 0;
    memcpy(id, at, length);
    id[length] = 0;
    if (khub__wanted_parse(&wanted, kind, id, NULL) != KHUB_OK) return 0;
    *out = wanted.repo;
    return 1;
}
