#include "kernel/repository.h"

#include "base/error.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/text.h"
#include "kernel/local_kernels.h"
#include "kernel/metadata.h"
#include "variant/archs.h"
#include "variant/choice.h"

#include <khub/kernel.h>

/* One name of letters, digits, "-", "_" and ".", which doesn't start with a dot: nothing that leads
 * elsewhere. */
static int is_plain(const char *name)
{
    size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.");
    return n > 0 && n <= 200 && !name[n] && name[0] != '.';
}

static int fail_no_built_in(const char *name, const char *kernels, khub_error *err)
{
    khub__text list = {0};
    char **names = NULL;
    size_t count = 0;
    int rc = khub__dir_list_dirs(&names, &count, kernels, NULL);
    for (size_t i = 0; i < count; i++)
        khub__text_addf(&list, "%s khub/%s", i ? "," : "", names[i]);
    if (rc == KHUB_E_NOMEM || list.failed)
        rc = khub__fail_memory(err, "looking for a built-in kernel");
    else
        rc = khub__fail(err, KHUB_E_NOTFOUND, "khub/%s: there is no such built-in kernel in %s; there are:%s",
                        name, kernels, list.data ? list.data : " none");
    khub__text_free(&list);
    khub__free(names);
    return rc;
}

/* `name` without its "khub/". */
static int find_built_in(char **path, const char *name, khub_error *err)
{
    const char *prefix = khub__install_prefix();
    char *kernels = prefix ? khub__path_join(prefix, "share/khub/kernels/khub") : NULL;
    *path = kernels ? khub__path_join(kernels, name) : NULL;
    int rc = *path ? KHUB_OK : khub__fail_memory(err, "looking for a built-in kernel");
    if (*path && khub__file_kind(*path) != KHUB__FILE_DIRECTORY) {
        rc = fail_no_built_in(name, kernels, err);
        khub__free(*path);
        *path = NULL;
    }
    khub__free(kernels);
    return rc;
}

int khub__repository_find(char **path, const char *name, khub_error *err)
{
    int rc = khub__local_kernel(path, name, err);
    if (rc != KHUB_OK || *path) return rc;
    if (khub__path_is_local(name)) {
        *path = khub__strdup(name);
        return *path ? KHUB_OK : khub__fail_memory(err, "opening a kernel repository");
    }
    if (!strncmp(name, "khub/", 5) && is_plain(name + 5)) return find_built_in(path, name + 5, err);
    const char *slash = strchr(name, '/'), *colon = strchr(name, ':');
    if (colon)
        return khub__fail(err, KHUB_E_INVAL,
                          "%s: no function or layer is wanted here; the repository alone: %.*s", name,
                          (int)(colon - name), name);
    if (khub__file_kind(name) == KHUB__FILE_DIRECTORY)
        return khub__fail(err, KHUB_E_INVAL,
                          "%s: is a directory; a path starts with \"/\", \"./\" or \"../\": ./%s", name,
                          name);
    if (!slash || slash == name || !slash[1] || strchr(slash + 1, '/'))
        return khub__fail(err, KHUB_E_INVAL,
                          "%s: is neither a path (\"./DIR\"), nor a built-in kernel (\"khub/norm\"), "
                          "nor ORG/NAME@REV",
                          name);
    return khub__fail(err, KHUB_E_UNSUPPORTED,
                      "%s: is a name of the Hub, which this version doesn't reach yet; give the "
                      "path of a repository on this machine (\"./DIR\")",
                      name);
}

void khub__repository_close(khub__repository *repository)
{
    khub__free(repository->path);
    khub__free(repository->builds);
    khub__free(repository->names);
    memset(repository, 0, sizeof(*repository));
}

static int fail_missing(const char *path, khub_error *err)
{
    if (khub__file_kind(path) != KHUB__FILE_DIRECTORY)
        return khub__fail(err, KHUB_E_NOTFOUND, "%s: there is no such directory", path);
    return khub__fail(err, KHUB_E_NOTFOUND, "%s: is no kernel repository: it holds no directory build/",
                      path);
}

int khub__repository_open(khub__repository *out, const char *path, khub_error *err)
{
    khub_error why = {0};
    memset(out, 0, sizeof(*out));
    out->path = khub__strdup(path);
    out->builds = khub__path_join(path, "build");
    int rc = out->path && out->builds ? khub__dir_list_dirs(&out->names, &out->count, out->builds, &why)
                                      : khub__fail_memory(&why, "opening a kernel repository");
    if (rc == KHUB_OK) return KHUB_OK;
    khub__repository_close(out);
    return rc == KHUB_E_NOTFOUND ? fail_missing(path, err) : khub__fail(err, rc, "%s", why.message);
}

char *khub__repository_build(const khub__repository *repository, const char *name)
{
    return khub__path_join(repository->builds, name);
}

typedef struct look_context {
    const khub__repository *repository;
    const khub_platform *platform;
} look_context;

/* The build's name stands beside the remark, so that its path can go. */
static const char *without_folder(const char *message, const char *folder)
{
    size_t n = strlen(folder);
    return !strncmp(message, folder, n) && message[n] == '/' ? message + n + 1 : message;
}

static int look_at_metadata(void *user, khub__verdict *verdict, const char *text,
                            const khub__variant_name *name, khub_error *err)
{
    const look_context *context = user;
    char *build = khub__repository_build(context->repository, text);
    char *path = build ? khub__path_join(build, "metadata.json") : NULL;
    khub__metadata metadata = {0};
    khub_error why = {0};
    int rc = path ? khub__metadata_read(&metadata, path, &why) : khub__fail_memory(&why, "choosing a build");
    if (rc == KHUB_OK && khub__archs_matter(name->backend))
        khub__archs_decide(verdict, name, context->platform, (const char *const *)metadata.archs,
                           metadata.arch_count);
    else if (rc != KHUB_OK && rc != KHUB_E_NOMEM)
        khub__verdict_add(verdict, "can't be loaded: %s", without_folder(why.message, build));
    khub__metadata_free(&metadata);
    khub__free(path);
    khub__free(build);
    return rc == KHUB_E_NOMEM ? khub__fail(err, rc, "%s", why.message) : KHUB_OK;
}

int khub__repository_choose(khub_choice **out, const khub__repository *repository,
                            const khub_platform *platform, khub_error *err)
{
    look_context context = {repository, platform};
    return khub__choose(out, (const char *const *)repository->names, repository->count, platform,
                        look_at_metadata, &context, err);
}

int khub_choose_in(khub_choice **out, const char *name, const khub_platform *platform, khub_error *err)
{
    int missing = khub__given("khub_choose_in", out && name, err);
    if (out) *out = NULL;
    if (missing != KHUB_OK) return missing;
    char *path;
    khub__repository repository = {0};
    int rc = khub__repository_find(&path, name, err);
    if (rc == KHUB_OK) rc = khub__repository_open(&repository, path, err);
    if (rc == KHUB_OK) rc = khub__repository_choose(out, &repository, platform, err);
    khub__repository_close(&repository);
    khub__free(path);
    return rc;
}
