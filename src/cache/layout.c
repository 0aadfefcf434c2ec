#include "cache/layout.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"

#include <stdio.h>

int khub__layout_of_commit(char out[KHUB__LAYOUT_MAX], const char *dir, const char *commit, const char *path,
                           khub_error *err)
{
    if (!khub__is_commit(commit)) return khub__fail(err, KHUB_E_INVAL, "\"%.70s\" isn't a commit", commit);
    if (path && !khub__is_repo_path(path, strlen(path)))
        return khub__fail(err, KHUB_E_INVAL, "\"%.200s\" isn't a path to make on disk", path);
    snprintf(out, KHUB__LAYOUT_MAX, path ? "%s/%s/%s" : "%s/%s", dir, commit, path);
    return KHUB_OK;
}

static const char receipt[] = "receipt.";

int khub__layout_receipt(char out[KHUB__LAYOUT_MAX], const char *commit, const char *build, khub_error *err)
{
    size_t length = strlen(build);
    if (!khub__is_commit(commit)) return khub__fail(err, KHUB_E_INVAL, "\"%.70s\" isn't a commit", commit);
    if (!khub__is_repo_path(build, length) || strchr(build, '/') || length > 200)
        return khub__fail(err, KHUB_E_INVAL, "\"%.200s\" isn't a build to make a file for", build);
    char *end = stpcpy(stpcpy(out, receipt), commit);
    stpcpy(stpcpy(stpcpy(end, "."), build), ".txt");
    return KHUB_OK;
}

int khub__layout_is_receipt_of(const char *name, const char *commit)
{
    size_t before = strlen(receipt), length = strlen(commit);
    return !strncmp(name, receipt, before) && !strncmp(name + before, commit, length) &&
           name[before + length] == '.';
}

int khub__layout_ref(char out[KHUB__LAYOUT_MAX], const char *revision, khub_error *err)
{
    if (!khub__is_repo_path(revision, strlen(revision)))
        return khub__fail(err, KHUB_E_INVAL, "\"%.200s\" isn't a name for a ref", revision);
    snprintf(out, KHUB__LAYOUT_MAX, "refs/%s", revision);
    return KHUB_OK;
}

void khub__layout_link(char out[KHUB__LAYOUT_MAX], const char *path, const char *etag)
{
    char *at = out;
    for (; *path; path++)
        if (*path == '/') at = stpcpy(at, "../");
    snprintf(at, (size_t)(out + KHUB__LAYOUT_MAX - at), "../../blobs/%s", etag);
}

char *khub__layout_folder(const khub__repo *repo)
{
    khub__text text = {0};
    khub__text_add(&text, khub__repo_api(repo->kind));
    khub__text_add(&text, "--");
    for (const char *at = repo->id; *at;) {
        size_t part = strcspn(at, "/");
        khub__text_add_bytes(&text, at, part);
        if (at[part]) khub__text_add(&text, "--");
        at += part + (at[part] != 0);
    }
    return khub__text_take(&text);
}

const char *khub__layout_kind(const char **name, const char *folder)
{
    static const char *const kinds[] = {"kernel", "model", "dataset", "space"};
    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
        size_t n = strlen(kinds[i]);
        if (strncmp(folder, kinds[i], n) != 0 || strncmp(folder + n, "s--", 3) != 0 || !folder[n + 3])
            continue;
        *name = folder + n + 3;
        return kinds[i];
    }
    return NULL;
}
