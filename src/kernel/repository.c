#include "kernel/repository.h"

#include "base/error.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/text.h"
#include "kernel/local_kernels.h"
#include "kernel/machine.h"
#include "kernel/metadata.h"
#include "platform/platform.h"
#include "trust/signed.h"
#include "variant/archs.h"
#include "variant/choice.h"

#include <stdlib.h>

#define METADATA "metadata.json"
#define BUNDLE   "metadata.json.sigstore"

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
        rc = khub__fail(
            err, KHUB_E_NOTFOUND,
            "khub/%s: there is no such built-in kernel in %s; there are:%s (one of a Hub has a version: "
            "khub/%s@v1)",
            name, kernels, list.data ? list.data : " none", name);
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

int khub__repository_is_built_in(const char *path)
{
    static const char below[] = "/share/khub/kernels/khub/";
    const char *prefix = khub__install_prefix();
    size_t length = prefix ? strlen(prefix) : 0;
    if (!prefix || strncmp(path, prefix, length) != 0 ||
        strncmp(path + length, below, sizeof(below) - 1) != 0)
        return 0;
    return is_plain(path + length + sizeof(below) - 1); /* "khub/../../elsewhere" is somewhere else */
}

int khub__repository_find(char **path, const char *name, khub_error *err)
{
    int rc = khub__local_kernel(path, name, err);
    if (rc != KHUB_OK || *path) return rc;
    khub_name_kind kind = khub_name_kind_of(name);
    if (kind == KHUB_NAME_PATH) {
        *path = khub__strdup(name);
        return *path ? KHUB_OK : khub__fail_memory(err, "opening a kernel repository");
    }
    if (!strncmp(name, "khub/", 5) && is_plain(name + 5)) return find_built_in(path, name + 5, err);
    const char *colon = strchr(name, ':');
    if (kind == KHUB_NAME_ADDRESS)
        return khub__fail(err, KHUB_E_INVAL,
                          "%s: is an address; a kernel of the Hub is named ORG/NAME@VERSION", name);
    if (colon)
        return khub__fail(err, KHUB_E_INVAL,
                          "%s: no function or layer is wanted here; the repository alone: %.*s", name,
                          (int)(colon - name), name);
    if (khub__file_kind(name) == KHUB__FILE_DIRECTORY)
        return khub__fail(err, KHUB_E_INVAL,
                          "%s: is a directory; a path starts with \"/\", \"./\" or \"../\": ./%s", name,
                          name);
    if (kind != KHUB_NAME_HUB)
        return khub__fail(err, KHUB_E_INVAL,
                          "%s: is neither a path (\"./DIR\"), nor a built-in kernel (\"khub/norm\"), "
                          "nor ORG/NAME@REV",
                          name);
    return KHUB_OK;
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

/* The names of folders below build/, once each: the tree is in byte order, so that a folder's files stand
 * together, if not always beside each other ("a-b/x" stands before "a/x"). */
static size_t build_name(const char **name, const char *path)
{
    if (strncmp(path, "build/", 6) != 0) return 0;
    *name = path + 6;
    const char *end = strchr(*name, '/');
    return end ? (size_t)(end - *name) : 0;
}

static int by_bytes(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Fills pointers and text of one allocation; with `names` NULL only counts the bytes. */
static size_t take_names(char **names, char *text, size_t *count, const khub__tree *tree)
{
    const char *name, *last = "";
    size_t bytes = 0, last_length = 0;
    *count = 0;
    for (size_t i = 0; i < tree->count; i++) {
        size_t n = build_name(&name, tree->files[i].path);
        if (!n || (n == last_length && !memcmp(name, last, n))) continue;
        last = name;
        last_length = n;
        if (names) {
            names[*count] = memcpy(text + bytes, name, n);
            text[bytes + n] = 0;
        }
        bytes += n + 1;
        ++*count;
    }
    return bytes;
}

static void sort_names(khub__repository *repository)
{
    if (!repository->count) return;
    qsort(repository->names, repository->count, sizeof(char *), by_bytes);
    size_t kept = 1;
    for (size_t i = 1; i < repository->count; i++)
        if (strcmp(repository->names[i], repository->names[kept - 1]) != 0)
            repository->names[kept++] = repository->names[i];
    repository->count = kept;
}

int khub__repository_of(khub__repository *out, khub__remote *remote, khub_error *err)
{
    memset(out, 0, sizeof(*out));
    size_t bytes = take_names(NULL, NULL, &out->count, &remote->tree), pointers = out->count * sizeof(char *);
    if (!out->count)
        return khub__fail(err, KHUB_E_NOTFOUND,
                          "%s@%s: is no kernel repository: it holds no directory build/", remote->at.repo.id,
                          remote->wanted.revision);
    out->remote = remote;
    out->path = khub__strdup(remote->path);
    out->builds = khub__path_join(remote->path, "build");
    out->names = khub__malloc(pointers + bytes);
    if (!out->path || !out->builds || !out->names) {
        khub__repository_close(out);
        return khub__fail_memory(err, "opening a kernel repository");
    }
    take_names(out->names, (char *)out->names + pointers, &out->count, &remote->tree);
    sort_names(out);
    return KHUB_OK;
}

typedef struct build_pick {
    const char *build;
    const char *files[2]; /* {NULL}: all that count */
} build_pick;

static int ends_in(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n >= m && !strcmp(text + n - m, end);
}

static int pick_build(void *user, const char *path)
{
    const build_pick *pick = user;
    const char *name;
    size_t n = build_name(&name, path);
    if (!n || strncmp(name, pick->build, n) != 0 || pick->build[n]) return 0;
    for (size_t i = 0; i < 2 && pick->files[i]; i++)
        if (!strcmp(name + n + 1, pick->files[i])) return 1;
    if (pick->files[0]) return 0;
    return !strstr(name + n, "/__pycache__/") && !ends_in(path, ".pyc");
}

static int check_size(const khub__repository *repository, const char *build, const char *file, size_t most,
                      khub_error *err)
{
    khub__text path = {0};
    khub__text_addf(&path, "build/%s/%s", build, file);
    char *name = khub__text_take(&path);
    int rc = name ? khub__remote_check_size(repository->remote, name, most, err)
                  : khub__fail_memory(err, "choosing a build");
    khub__free(name);
    return rc;
}

static int check_metadata(const khub__repository *repository, const char *build, khub_error *err)
{
    return repository->remote ? check_size(repository, build, METADATA, KHUB__METADATA_MAX, err) : KHUB_OK;
}

int khub__repository_bring_metadata(const khub__repository *repository, const char *build, int signature,
                                    khub_error *err)
{
    build_pick pick = {build, {METADATA, NULL}};
    khub_error longer = {0};
    int rc = check_metadata(repository, build, err);
    if (rc != KHUB_OK || !repository->remote) return rc;
    if (signature) rc = check_size(repository, build, BUNDLE, KHUB__SIGNATURE_MAX_BYTES, &longer);
    if (rc == KHUB_E_NOMEM) return khub__fail_memory(err, "choosing a build");
    if (signature && rc == KHUB_OK) pick.files[1] = BUNDLE; /* else it is refused as it is (trust/signed.h) */
    return khub__remote_fetch(repository->remote, pick_build, &pick, err);
}

int khub__repository_pick(khub__picked *out, const khub__repository *repository, const char *build,
                          khub_error *err)
{
    build_pick pick = {build, {NULL, NULL}};
    return khub__remote_pick(out, repository->remote, pick_build, &pick, err);
}

char *khub__repository_build(const khub__repository *repository, const char *name)
{
    return khub__path_join(repository->builds, name);
}

/* Of a remote it is what its name says. */
static int read_metadata(khub__metadata *out, const khub__repository *repository, const char *build,
                         const char *path, khub_error *err)
{
    if (!repository->remote) return khub__metadata_read(out, path, err);
    khub__bytes text;
    khub_error why = {0};
    char *inside = khub__path_join(build, METADATA), *file = inside ? khub__path_join("build", inside) : NULL;
    int rc = file ? khub__remote_read(&text, repository->remote, file, KHUB__METADATA_MAX, &why)
                  : khub__fail_memory(&why, "choosing a build");
    if (rc == KHUB_E_NOTFOUND)
        khub__fail(err, rc, "%s: is missing; no build is loaded without one (docs/writing.md)", path);
    else if (rc != KHUB_OK)
        khub__fail(err, rc, "%s", why.message);
    if (rc == KHUB_OK) {
        rc = khub__metadata_parse(out, text.data, text.length, path, err);
        khub__bytes_free(&text);
    }
    khub__free(file);
    khub__free(inside);
    return rc;
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
    if (context->repository->remote && !khub__archs_matter(name->backend))
        return KHUB_OK; /* no request for a remark */
    char *build = khub__repository_build(context->repository, text);
    char *path = build ? khub__path_join(build, "metadata.json") : NULL;
    khub__metadata metadata = {0};
    khub_error why = {0};
    int brought = path ? KHUB_OK : khub__fail_memory(err, "choosing a build");
    int rc = path ? check_metadata(context->repository, text, &why) : brought;
    if (rc == KHUB_OK) rc = brought = khub__repository_bring_metadata(context->repository, text, 0, err);
    if (rc == KHUB_OK) rc = read_metadata(&metadata, context->repository, text, path, &why);
    if (rc == KHUB_OK && khub__archs_matter(name->backend))
        khub__archs_decide(verdict, name, context->platform, (const char *const *)metadata.archs,
                           metadata.arch_count);
    else if (brought == KHUB_OK && rc != KHUB_OK && rc != KHUB_E_NOMEM)
        khub__verdict_add(verdict, "can't be loaded: %s", without_folder(why.message, build));
    khub__metadata_free(&metadata);
    khub__free(path);
    khub__free(build);
    if (brought != KHUB_OK) return brought;
    return rc == KHUB_E_NOMEM ? khub__fail(err, rc, "%s", why.message) : KHUB_OK;
}

static int choose_for(khub_choice **out, const khub__repository *repository, const khub_platform *platform,
                      khub_error *err)
{
    look_context context = {repository, platform};
    return khub__choose(out, (const char *const *)repository->names, repository->count, platform,
                        look_at_metadata, &context, err);
}

/* khub's own are for every machine: without a build for its accelerator the CPU's, unless the backend was
 * asked for by name. */
static int choose_for_cpu(khub_choice **out, const khub__repository *repository,
                          const khub_platform *platform, khub_error *err)
{
    khub_platform *cpu;
    if (khub_choice_chosen(*out) || platform->is_selected || !khub__repository_is_built_in(repository->path))
        return KHUB_OK;
    int rc = khub__machine_copy(&cpu, platform, err);
    if (rc != KHUB_OK) return rc;
    khub_choice *choice = NULL;
    rc = khub_platform_select(cpu, "cpu", err);
    if (rc == KHUB_OK) rc = choose_for(&choice, repository, cpu, err);
    if (rc == KHUB_OK) {
        khub_choice_free(*out);
        *out = choice;
    }
    khub_platform_free(cpu);
    return rc;
}

int khub__repository_choose(khub_choice **out, const khub__repository *repository,
                            const khub_platform *platform, khub_error *err)
{
    const khub__remote *remote = repository->remote;
    *out = NULL;
    int rc = choose_for(out, repository, platform, err);
    if (rc == KHUB_OK && !remote) rc = choose_for_cpu(out, repository, platform, err);
    if (rc == KHUB_OK && remote) rc = khub__choice_from(*out, remote->wanted.repo.id, remote->at.commit, err);
    if (rc == KHUB_OK) return rc;
    khub_choice_free(*out);
    *out = NULL;
    return rc;
}
