/* khub_check_kernel: from a name to the files that are checked. */
#include "base/error.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/path.h"
#include "base/text.h"
#include "kernel/repository.h"
#include "platform/version.h"
#include "publish/checking.h"

static int check_library(khub__checking *c, const char *path)
{
    khub__opened opened;
    khub__variant_name name;
    char *parent = khub__path_parent(path);
    const char *folder = parent ? khub__path_name(parent) : NULL;
    if (!parent) return khub__fail_memory(c->err, "checking a library");
    int rc = khub__opened_open(&opened, c, "", "", path);
    if (rc == KHUB_OK) khub__opened_judge(&opened, c, khub__variant_name_parse(&name, folder) ? &name : NULL);
    if (rc == KHUB_OK) rc = khub__opened_load(&opened, c, NULL);
    khub__opened_close(&opened);
    khub__free(parent);
    return rc;
}

static int check_one(khub__checking *c, khub__common *common, const khub__repository *repository,
                     const char *name, const char *shown)
{
    char *build = khub__repository_build(repository, name), *label = khub__path_join("build", name);
    char *full = label ? khub__path_join(shown, label) : NULL;
    int rc = build && full ? khub__check_build(c, common, build, full, name)
                           : khub__fail_memory(c->err, "checking a kernel");
    khub__free(build);
    khub__free(label);
    khub__free(full);
    return rc;
}

/* Each build of a repository at `path`, or the one that is wanted. */
static int check_repository(khub__checking *c, const char *path, const char *shown)
{
    khub__repository repository;
    khub__common common = {0};
    const char *wanted = c->options.variant;
    size_t checked = 0;
    int rc = khub__repository_open(&repository, path, c->err);
    for (size_t i = 0; rc == KHUB_OK && i < repository.count; i++) {
        if (wanted && strcmp(repository.names[i], wanted) != 0) continue;
        rc = check_one(c, &common, &repository, repository.names[i], shown);
        checked++;
    }
    if (rc == KHUB_OK && !checked && wanted)
        rc = khub__fail(c->err, KHUB_E_NOTFOUND, "%s: has no build %s", shown, wanted);
    if (rc == KHUB_OK && !checked) {
        c->report->file = shown;
        khub__finding(c->report, "builds", KHUB_CHECK_LEVEL_ERROR, NULL, NULL, "holds no build");
        c->report->file = NULL;
    }
    khub__common_free(&common);
    khub__repository_close(&repository);
    return rc;
}

/* The libraries in a directory that is nothing else. */
static int check_libraries(khub__checking *c, const char *path)
{
    char **names = NULL;
    size_t count = 0, found = 0;
    int rc = khub__dir_list(&names, &count, path, c->err);
    for (size_t i = 0; rc == KHUB_OK && i < count; i++) {
        if (!khub__is_library_name(names[i])) continue;
        khub__opened opened;
        rc = khub__opened_open(&opened, c, path, path, names[i]);
        if (rc == KHUB_OK) khub__opened_judge(&opened, c, NULL);
        if (rc == KHUB_OK) rc = khub__opened_load(&opened, c, NULL);
        khub__opened_close(&opened);
        found++;
    }
    if (rc == KHUB_OK && !found)
        rc = khub__fail(c->err, KHUB_E_NOTFOUND, "%s: holds neither build/, nor metadata.json, nor a library",
                        path);
    khub__free(names);
    return rc;
}

/* -1: no memory. */
static int has(const char *directory, const char *name, enum khub__file_kind kind)
{
    char *path = khub__path_join(directory, name);
    int found = path ? khub__file_kind(path) == kind : -1;
    khub__free(path);
    return found;
}

/* "x/build/VARIANT/" and "." have names too. */
static const char *own_name(const char *path)
{
    const char *name = khub__path_name(path);
    return *name && strcmp(name, ".") != 0 && strcmp(name, "..") != 0 ? name : NULL;
}

/* A repository at a path, or one that has a name already. */
static int check_local(khub__checking *c, const char *path)
{
    char *name = khub__path_is_local(path) ? khub__strdup(path) : khub__path_join(".", path);
    if (!name) return khub__fail_memory(c->err, "checking a kernel");
    if (!c->name) c->name = name;
    int rc = check_repository(c, path, path);
    c->name = NULL;
    khub__free(name);
    return rc;
}

static int check_directory(khub__checking *c, const char *path)
{
    khub__variant_name name;
    char *plain = khub__strdup(path);
    int is_repository = has(path, "build", KHUB__FILE_DIRECTORY),
        is_build = has(path, "metadata.json", KHUB__FILE_REGULAR);
    if (!plain || is_repository < 0 || is_build < 0) {
        khub__free(plain);
        return khub__fail_memory(c->err, "checking a kernel");
    }
    for (size_t n = strlen(plain); n > 1 && plain[n - 1] == '/'; n--)
        plain[n - 1] = 0;
    const char *own = own_name(plain);
    if (own && khub__variant_name_parse(&name, own)) is_build = 1;
    int rc = is_build        ? khub__check_build(c, NULL, plain, plain, own)
             : is_repository ? check_local(c, plain)
                             : check_libraries(c, plain);
    khub__free(plain);
    return rc;
}

/* Where the cache keeps the content that a snapshot's links lead to. */
static char *blobs_of(const char *snapshot)
{
    char *snapshots = khub__path_parent(snapshot),
         *repository = snapshots ? khub__path_parent(snapshots) : NULL;
    char *blobs = repository ? khub__path_join(repository, "blobs") : NULL;
    khub__free(snapshots);
    khub__free(repository);
    return blobs;
}

/* Code of a publisher whom nobody trusts isn't run. */
static int may_load(khub__checking *c, const char *repository)
{
    khub_error why = {0};
    if (!c->options.load) return KHUB_OK;
    int rc = khub_trusted(repository, c->options.hub, &why);
    if (rc == KHUB_OK) return KHUB_OK;
    if (rc != KHUB_E_UNTRUSTED) return khub__fail(c->err, rc, "%s", why.message);
    c->options.load = 0;
    khub__finding(c->report, "load", KHUB_CHECK_LEVEL_NOTE, "untrusted", NULL, "isn't loaded: %s",
                  why.message);
    return KHUB_OK;
}

static int check_snapshot(khub__checking *c, const khub_snapshot *snapshot, const char *name)
{
    char *blobs = blobs_of(khub_snapshot_path(snapshot));
    khub__text exact = {0}; /* "ORG/NAME@COMMIT": the very files that are checked */
    khub__text_addf(&exact, "%s@%s", khub_snapshot_repository(snapshot), khub_snapshot_commit(snapshot));
    if (!blobs || exact.failed) {
        khub__free(blobs);
        khub__text_free(&exact);
        return khub__fail_memory(c->err, "checking a kernel");
    }
    c->also = blobs;
    c->name = exact.data;
    c->report->file = name;
    khub__finding(c->report, "commit", KHUB_CHECK_LEVEL_NOTE, khub_snapshot_commit(snapshot), NULL,
                  "is %s at commit %s", khub_snapshot_repository(snapshot), khub_snapshot_commit(snapshot));
    int rc = may_load(c, khub_snapshot_repository(snapshot));
    c->report->file = NULL;
    if (rc == KHUB_OK) rc = check_repository(c, khub_snapshot_path(snapshot), name);
    c->also = c->name = NULL;
    khub__free(blobs);
    khub__text_free(&exact);
    return rc;
}

/* Reading a stranger's files runs nothing of them, so they are fetched whoever published them; whether they
 * are loaded, the caller's own options say. */
static int check_remote(khub__checking *c, const char *name)
{
    khub__text pattern = {0};
    khub_download_options download;
    khub_hub_options hub = {0};
    khub_snapshot *snapshot = NULL;
    char *repository = khub__strndup(name, strcspn(name, "@"));
    const char *const trust[] = {repository, NULL};
    khub__text_add(&pattern, "build/");
    if (c->options.variant) khub__text_addf(&pattern, "%s/", c->options.variant);
    khub__text_add(&pattern, "*");
    const char *const patterns[] = {pattern.data, NULL};
    if (!repository || pattern.failed) {
        khub__free(repository);
        khub__text_free(&pattern);
        return khub__fail_memory(c->err, "checking a kernel");
    }
    int rc = khub__options(&hub, sizeof(hub), c->options.hub, "khub_hub_options", c->err);
    hub.struct_size = sizeof(hub);
    hub.trust = trust;
    KHUB_INIT(&download);
    download.patterns = patterns;
    download.hub = &hub;
    if (rc == KHUB_OK) rc = khub_download(&snapshot, name, &download, c->err);
    if (rc == KHUB_OK) rc = check_snapshot(c, snapshot, name);
    khub_snapshot_free(snapshot);
    khub__free(repository);
    khub__text_free(&pattern);
    return rc;
}

/* A file or directory of this machine by any name for it; else what khub_get would take. */
static int check_name(khub__checking *c, const char *name)
{
    char *path;
    enum khub__file_kind kind = khub__file_kind(name);
    if (kind == KHUB__FILE_REGULAR || kind == KHUB__FILE_OTHER || kind == KHUB__FILE_BROKEN)
        return check_library(c, name);
    if (kind == KHUB__FILE_DIRECTORY) return check_directory(c, name);
    int rc = khub__repository_find(&path, name, c->err);
    if (rc == KHUB_OK && path && khub__file_kind(path) == KHUB__FILE_NONE)
        rc = khub__fail(c->err, KHUB_E_NOTFOUND, "%s: there is no such file or directory", path);
    c->name = name;
    if (rc == KHUB_OK) rc = path ? check_directory(c, path) : check_remote(c, name);
    khub__free(path);
    return rc;
}

static int check_version(const char *option, const char *text, khub_error *err)
{
    khub__version version;
    if (!text || khub__version_parse(&version, text) == 0) return KHUB_OK;
    return khub__fail(err, KHUB_E_INVAL, "%s: \"%s\" is no version such as 3.9", option, text);
}

static int read_options(khub__checking *c, const khub_check_options *options)
{
    khub_check_options *o = &c->options;
    int rc = khub__options(o, sizeof(*o), options, "khub_check_options", c->err);
    if (rc != KHUB_OK) return rc;
    if (!o->manylinux) o->manylinux = "manylinux_2_28";
    if (!o->python) o->python = "3.9";
    if (!o->macos) o->macos = "15.0";
    rc = khub__manylinux_check(o->manylinux, c->err);
    if (rc == KHUB_OK) rc = check_version("python", o->python, c->err);
    if (rc == KHUB_OK) rc = check_version("macos", o->macos, c->err);
    return rc == KHUB_OK ? check_version("torch", o->torch, c->err) : rc;
}

int khub_check_kernel(khub_check_report **out, const char *name, const khub_check_options *options,
                      khub_error *err)
{
    int rc = khub__given("khub_check_kernel", out && name, err);
    if (out) *out = NULL;
    if (rc != KHUB_OK) return rc;
    khub__checking c = {.options = {0}, .err = err};
    rc = read_options(&c, options);
    if (rc != KHUB_OK) return rc;
    c.report = khub__calloc(1, sizeof(*c.report));
    if (!c.report) return khub__fail_memory(err, "checking a kernel");
    rc = check_name(&c, name);
    if (rc == KHUB_OK && c.report->failed) rc = khub__fail_memory(err, "checking a kernel");
    if (rc == KHUB_OK)
        *out = c.report;
    else
        khub_check_report_free(c.report);
    return rc;
}
