/* khub_get: the journey of a kernel from its name to a library in memory. */
#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/path.h"
#include "base/text.h"
#include "kernel/build.h"
#include "kernel/kernel.h"
#include "kernel/machine.h"
#include "kernel/repository.h"
#include "kernel/runtime.h"

/* The build asked for by name, whatever the machine. */
static int take_variant(char **variant, const khub__repository *repository, const char *wanted,
                        khub_error *err)
{
    khub__text names = {0};
    for (size_t i = 0; i < repository->count; i++) {
        if (!strcmp(repository->names[i], wanted)) {
            khub__text_free(&names);
            *variant = khub__strdup(wanted);
            return *variant ? KHUB_OK : khub__fail_memory(err, "choosing a build");
        }
        khub__text_addf(&names, "%s%s", i ? ", " : "", repository->names[i]);
    }
    char *list = khub__text_take(&names);
    int rc = list ? khub__fail(err, KHUB_E_NOTFOUND, "%s: has no build %s; it has: %s", repository->path,
                               wanted, list)
                  : khub__fail_memory(err, "choosing a build");
    khub__free(list);
    return rc;
}

static int choose(char **variant, const khub__repository *repository, const khub_get_options *options,
                  const char *name, khub_error *err)
{
    if (options->variant) return take_variant(variant, repository, options->variant, err);
    const khub_platform *platform;
    khub_platform *owned;
    khub_choice *choice = NULL;
    int rc = khub__machine(&platform, &owned, options->platform, options->backend, err);
    if (rc == KHUB_OK) rc = khub__repository_choose(&choice, repository, platform, err);
    if (rc == KHUB_OK) rc = khub_choice_require(choice, name, err);
    if (rc == KHUB_OK && !(*variant = khub__strdup(khub_choice_chosen(choice)->name)))
        rc = khub__fail_memory(err, "choosing a build");
    khub_choice_free(choice);
    khub_platform_free(owned);
    return rc;
}

/* From the name to the directory of the build. */
static int resolve(khub_kernel *kernel, const khub_get_options *options, khub_error *err)
{
    char *path = NULL;
    khub__repository repository = {0};
    int rc = khub__repository_find(&path, kernel->name, err);
    if (rc == KHUB_OK) rc = khub__repository_open(&repository, path, err);
    if (rc == KHUB_OK) rc = choose(&kernel->variant, &repository, options, kernel->name, err);
    if (rc == KHUB_OK && !(kernel->build = khub__repository_build(&repository, kernel->variant)))
        rc = khub__fail_memory(err, "choosing a build");
    khub__repository_close(&repository);
    khub__free(path);
    return rc;
}

static void note_needs(const khub_kernel *kernel, const khub__metadata *metadata)
{
    for (size_t i = 0; i < metadata->need_count; i++)
        khub__log(KHUB_LOG_WARNING, "get", kernel->name,
                  "needs the kernel %s, which this version doesn't fetch", metadata->needs[i].repo_id);
}

/* From the directory of the build to the path of its library. */
static int read_build(char **library, khub_kernel *kernel, khub_error *err)
{
    *library = NULL;
    khub__metadata metadata = {0};
    char *file = khub__path_join(kernel->build, "metadata.json");
    int rc =
        file ? khub__metadata_read(&metadata, file, err) : khub__fail_memory(err, "reading metadata.json");
    if (rc == KHUB_OK) {
        kernel->version = metadata.version;
        note_needs(kernel, &metadata);
        rc = khub__build_library(library, kernel->build, &metadata, err);
    }
    khub__metadata_free(&metadata);
    khub__free(file);
    return rc;
}

/* A kernel in C may do without libtvm_ffi; that it isn't there matters once the loader misses something. */
static int load(khub_kernel *kernel, const char *path, khub_error *err)
{
    khub_error no_runtime = {0}, why = {0};
    int runtime = khub__runtime_open(&no_runtime);
    if (runtime == KHUB_E_NOMEM) return khub__fail_memory(err, "opening libtvm_ffi");
    if (runtime != KHUB_OK)
        khub__log(KHUB_LOG_DEBUG, "get", kernel->name, "without libtvm_ffi: %s", no_runtime.message);
    int rc = khub__library_open(&kernel->library, path, &why);
    if (rc == KHUB_OK) return KHUB_OK;
    if (runtime == KHUB_OK || !strstr(why.message, "tvm_ffi")) return khub__fail(err, rc, "%s", why.message);
    return khub__fail(err, rc, "%s (%s)", why.message, no_runtime.message);
}

static int get(khub_kernel *kernel, const char *name, const khub_get_options *options, khub_error *err)
{
    kernel->name = khub__strdup(name);
    if (!kernel->name) return khub__fail_memory(err, "getting a kernel");
    char *path = NULL;
    int rc = resolve(kernel, options, err);
    if (rc == KHUB_OK) rc = read_build(&path, kernel, err);
    if (rc == KHUB_OK) rc = load(kernel, path, err);
    khub__free(path);
    return rc;
}

int khub_get(khub_kernel **out, const char *name, const khub_get_options *options, khub_error *err)
{
    int missing = khub__given("khub_get", out != NULL, err);
    if (missing != KHUB_OK) return missing;
    *out = NULL;
    if (!name || !*name) return khub__fail(err, KHUB_E_INVAL, "khub_get: no name is given");
    khub_get_options ours;
    int rc = khub__options(&ours, sizeof(ours), options, "khub_get_options", err);
    if (rc != KHUB_OK) return rc;
    khub_kernel *kernel = khub__calloc(1, sizeof(*kernel));
    if (!kernel) return khub__fail_memory(err, "getting a kernel");
    rc = get(kernel, name, &ours, err);
    if (rc == KHUB_OK)
        *out = kernel;
    else
        khub_kernel_close(kernel);
    return rc;
}
