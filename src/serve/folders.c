/* A repository as folders: each folder of ORG/NAME is a branch; or ORG/NAME is itself the only state there
 * is: then it is the branch main, and vN where its builds say that they are version N. */
#include "serve/layout.h"

#include "base/error.h"
#include "serve/folder.h"
#include "serve/version.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { PATH_SIZE = 1024 };

/* 1 when the folder is a state rather than a folder of states. */
static int is_state(const char *where, serve_kind kind)
{
    char path[PATH_SIZE];
    serve_identity identity;
    snprintf(path, sizeof(path), "%s/%s", where, kind == SERVE_KERNEL ? "build" : "config.json");
    if (kind == SERVE_KERNEL) return serve_root_is_directory(path);
    int fd = serve_root_file(&identity, path);
    if (fd >= 0) close(fd);
    return fd >= 0;
}

static int look_at_state(serve_look *look, const char *where, khub_error *err)
{
    serve_listing *listing;
    int rc = serve_folder_list(&listing, where, NULL, NULL, err);
    if (rc != KHUB_OK) return rc;
    char name[24];
    int64_t version;
    rc = serve_version_of(&version, listing, err);
    snprintf(name, sizeof(name), "v%lld", (long long)version);
    if (rc == KHUB_OK) rc = serve_refs_add(look->refs, "main", listing->commit, SERVE_BRANCH, err);
    if (rc == KHUB_OK && version >= 0)
        rc = serve_refs_add(look->refs, name, listing->commit, SERVE_BRANCH, err);
    int kept = look->keep(look->self, listing, rc == KHUB_OK ? err : NULL);
    return rc == KHUB_OK ? kept : rc;
}

/* A folder of the repository's folder: a branch of that name. */
static int look_at_branch(serve_look *look, const char *where, const char *name, khub_error *err)
{
    char path[PATH_SIZE];
    serve_listing *listing;
    if (name[0] == '.' || !serve_is_path(name)) return KHUB_OK;
    if (snprintf(path, sizeof(path), "%s/%s", where, name) >= (int)sizeof(path)) return KHUB_OK;
    if (!serve_root_is_directory(path)) return KHUB_OK;
    int rc = serve_folder_list(&listing, path, NULL, NULL, err);
    if (rc != KHUB_OK) return rc;
    rc = serve_refs_add(look->refs, name, listing->commit, SERVE_BRANCH, err);
    int kept = look->keep(look->self, listing, rc == KHUB_OK ? err : NULL);
    return rc == KHUB_OK ? kept : rc;
}

static int look_folders(serve_look *look, const char *where, serve_kind kind, khub_error *err)
{
    if (is_state(where, kind)) return look_at_state(look, where, err);
    int fd = serve_root_at(where, O_RDONLY | O_DIRECTORY);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (!dir) {
        int reason = errno;
        if (fd >= 0) close(fd);
        return khub__fail(err, KHUB_E_NOTFOUND, "%s: %s", where, strerror(reason));
    }
    int rc = KHUB_OK;
    for (struct dirent *entry; rc == KHUB_OK && (entry = readdir(dir));)
        rc = look_at_branch(look, where, entry->d_name, err);
    closedir(dir);
    return rc;
}

const serve_layout serve_layout_folders = {.is = serve_root_is_directory, .look = look_folders};
