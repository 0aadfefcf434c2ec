/* khub_get: the journey of a kernel from its name to a library in memory. */
#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/text.h"
#include "kernel/build.h"
#include "kernel/judge.h"
#include "kernel/kernel.h"
#include "kernel/machine.h"
#include "kernel/memo.h"
#include "kernel/needs.h"
#include "kernel/place.h"
#include "kernel/rehearsal.h"
#include "kernel/runtime.h"
#include "trust/held.h"
#include "trust/trust.h"
#include "variant/name.h"

#include <stdio.h>

enum { MAX_NEEDS = 1000 }; /* kernels that one needs, directly or not */

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

/* Most repositories have none, and then nobody looks for a libtorch. */
static int has_torch_builds(const khub__repository *repository)
{
    for (size_t i = 0; i < repository->count; i++)
        if (!strncmp(repository->names[i], "torch", 5)) return 1;
    return 0;
}

static int choose(char **variant, const khub__repository *repository, const khub_get_options *options,
                  const char *name, khub_error *err)
{
    if (options->variant) return take_variant(variant, repository, options->variant, err);
    const khub_platform *platform;
    khub_platform *owned;
    khub_choice *choice = NULL;
    int rc = khub__machine(&platform, &owned, options, has_torch_builds(repository), err);
    if (rc == KHUB_OK && repository->remote)
        rc = khub__way_describe(repository->remote->session, platform, err);
    if (rc == KHUB_OK) rc = khub__repository_choose(&choice, repository, platform, err);
    if (rc == KHUB_OK) rc = khub_choice_require(choice, name, err);
    if (rc == KHUB_OK && !(*variant = khub__strdup(khub_choice_chosen(choice)->name)))
        rc = khub__fail_memory(err, "choosing a build");
    khub_choice_free(choice);
    khub_platform_free(owned);
    return rc;
}

static int get_one(khub_kernel *kernel, khub__way *way, const khub_get_options *options,
                   const khub__chain *before, khub_error *err);

static int is_done(const khub__way *way, const char *name)
{
    for (size_t i = 0; i < way->done_count; i++)
        if (!strcmp(way->done[i], name)) return 1;
    return 0;
}

/* Two kernels that need two that need two …: without this the way would double at each step. */
static int note_done(khub__way *way, const char *name, khub_error *err)
{
    if (way->done_count >= MAX_NEEDS)
        return khub__fail(err, KHUB_E_FORMAT, "more than %d kernels are needed", MAX_NEEDS);
    char *copy = khub__strdup(name);
    if (!copy || khub__grow((void **)&way->done, &way->done_capacity, way->done_count + 1, sizeof(*way->done),
                            MAX_NEEDS)) {
        khub__free(copy);
        return khub__fail_memory(err, "getting a kernel");
    }
    way->done[way->done_count++] = copy;
    return KHUB_OK;
}

/* A kernel that has its name and nothing else yet. */
static int new_kernel(khub_kernel **out, const char *name, khub_error *err)
{
    *out = khub__calloc(1, sizeof(**out));
    if (*out && ((*out)->name = khub__strdup(name))) return KHUB_OK;
    khub_kernel_close(*out);
    *out = NULL;
    return khub__fail_memory(err, "getting a kernel");
}

/* One of metadata.json's "kernel-depends": it is loaded, and so stays; the view of it isn't needed. */
static int get_need(const khub__metadata_need *need, khub__way *way, const khub_get_options *options,
                    const khub__chain *before, khub_error *err)
{
    char name[KHUB__NEED_NAME_MAX];
    khub_error why = {0};
    int rc = khub__need_name(name, need, &why);
    if (rc != KHUB_OK) return khub__fail(err, rc, "%s (needed by %s)", why.message, before->name);
    if (is_done(way, name)) return KHUB_OK;
    rc = khub__chain_check(before, name, err);
    if (rc != KHUB_OK) return rc;
    khub_kernel *kernel;
    khub_get_options theirs = *options;
    theirs.variant = NULL;
    rc = new_kernel(&kernel, name, &why);
    if (rc == KHUB_OK) rc = get_one(kernel, way, &theirs, before, &why);
    khub_kernel_close(kernel);
    if (rc == KHUB_OK) rc = note_done(way, name, &why);
    return rc == KHUB_OK ? rc : khub__fail(err, rc, "%s (needed by %s)", why.message, before->name);
}

static int take_facts(khub_kernel *kernel, const khub__place *place, khub_error *err)
{
    kernel->build = khub__repository_build(&place->repository, kernel->variant);
    if (place->repository.remote) kernel->commit = khub__strdup(place->remote.at.commit);
    return kernel->build && (!place->repository.remote || kernel->commit)
               ? KHUB_OK
               : khub__fail_memory(err, "choosing a build");
}

/* With a receipt this needn't be tried again. What can't be kept is. */
static int keep_rehearsal(const khub__judging *judging, khub_error *err)
{
    const khub__proof *proof = &judging->proof;
    khub__text company = {0};
    khub_error why = {0};
    if (!proof->receipt.text) return KHUB_OK;
    int rc = KHUB_OK;
    if (khub__company_write(&company))
        rc = khub__receipt_keep_company(&proof->receipt, proof->store, proof->commit, proof->variant,
                                        company.data, &why);
    int no_memory = company.failed || rc == KHUB_E_NOMEM;
    if (rc != KHUB_OK)
        khub__log(KHUB_LOG_DEBUG, "get", proof->about, "that it loads isn't kept: %s", why.message);
    khub__text_free(&company);
    return no_memory ? khub__fail_memory(err, "writing a receipt") : KHUB_OK;
}

/* Where that is asked for, a library of which it isn't known that it loads is tried in a child process first.
 */
static int open_tried(khub_kernel *kernel, const char *path, const char *operators,
                      const khub__judging *judging, const khub_get_options *options, khub_error *err)
{
    const khub__proven *proven = judging->is_proven ? &judging->proven : NULL;
    int try = options->rehearse && !judging->built_in &&
              !khub__company_is(khub__receipt_company(&judging->proof.receipt));
    int rc = try ? khub__rehearse(path, operators, proven, err) : KHUB_OK;
    if (rc == KHUB_OK) rc = khub__library_open(&kernel->library, path, operators, proven, err);
    return rc == KHUB_OK && try ? keep_rehearsal(judging, err) : rc;
}

/* A kernel in C may do without libtvm_ffi; that it isn't there matters once the loader misses something. */
static int open_for_tvm_ffi(khub_kernel *kernel, const char *path, const khub__judging *judging,
                            const khub_get_options *options, khub_error *err)
{
    khub_error no_runtime = {0}, why = {0};
    int runtime = khub__runtime_open(&no_runtime);
    if (runtime == KHUB_E_NOMEM) return khub__fail_memory(err, "opening libtvm_ffi");
    if (runtime != KHUB_OK)
        khub__log(KHUB_LOG_DEBUG, "get", kernel->name, "without libtvm_ffi: %s", no_runtime.message);
    int rc = open_tried(kernel, path, NULL, judging, options, &why);
    if (rc == KHUB_OK) return KHUB_OK;
    if (runtime == KHUB_OK || !strstr(why.message, "tvm_ffi")) return khub__fail(err, rc, "%s", why.message);
    return khub__fail(err, rc, "%s (%s)", why.message, no_runtime.message);
}

/* Its operators' namespace is the build's id. */
static int open_for_torch(khub_kernel *kernel, const char *path, const khub__judging *judging,
                          const khub_get_options *options, khub_error *err)
{
    int rc = khub__machine_open_torch(options, !strcmp(judging->metadata.backend, "cuda"), err);
    if (rc != KHUB_OK) return rc;
    return open_tried(kernel, path, judging->metadata.id, judging, options, err);
}

static int open_library(khub_kernel *kernel, const char *path, const khub__judging *judging,
                        const khub_get_options *options, khub_error *err)
{
    khub__variant_name name;
    int is_torch = khub__variant_name_parse(&name, kernel->variant) &&
                   (name.framework == KHUB__TORCH || name.framework == KHUB__TORCH_STABLE);
    return is_torch ? open_for_torch(kernel, path, judging, options, err)
                    : open_for_tvm_ffi(kernel, path, judging, options, err);
}

/* What serves which layer is told by what was proven, too. */
static void take_layers(khub_kernel *kernel, khub__judging *judging)
{
    khub__proven *proven = &judging->proven;
    kernel->layers_text = (khub__layers_text){judging->is_proven, proven->layers, proven->layers_bytes};
    proven->layers = NULL;
}

/* Exactly what was proven, if it had to be. Somebody who opens a library for writing after that is let in,
 * and what is loaded is a copy in memory, proven anew. */
static int load(khub_kernel *kernel, khub__judging *judging, const khub_get_options *options, khub_error *err)
{
    char *path;
    khub_error why = {0};
    const khub__proven *proven = judging->is_proven ? &judging->proven : NULL;
    int rc = khub__build_library(&path, kernel->build, &judging->metadata, err);
    if (rc != KHUB_OK || judging->way->only_fetch) {
        khub__free(path);
        return rc;
    }
    rc = open_library(kernel, path, judging, options, &why);
    if (rc == KHUB_E_UNTRUSTED && proven && !khub__proven_still(proven)) {
        khub_error_clear(&why);
        rc = khub__judge_content(judging, 1, &why);
        if (rc == KHUB_OK) rc = open_library(kernel, path, judging, options, &why);
    }
    khub__free(path);
    if (rc == KHUB_OK) take_layers(kernel, judging);
    return rc == KHUB_OK ? rc : khub__fail(err, rc, "%s", why.message);
}

/* The rest of the build, then everything that it needs, then its library. */
static int bring_and_load(khub__judging *judging, khub__way *way, const khub_get_options *options,
                          const khub__chain *before, khub_error *err)
{
    const khub__chain here = {judging->kernel->name, before};
    int rc = khub__judge_bring(judging, err);
    for (size_t i = 0; i < judging->metadata.need_count && rc == KHUB_OK; i++)
        rc = get_need(&judging->metadata.needs[i], way, options, &here, err);
    if (rc == KHUB_OK) rc = khub__judge_content(judging, 0, err);
    return rc == KHUB_OK ? load(judging->kernel, judging, options, err) : rc;
}

/* From the chosen build to its library. */
static int judge_and_load(khub_kernel *kernel, khub__place *place, khub__way *way,
                          const khub_get_options *options, const khub__chain *before, khub_error *err)
{
    khub__judging judging;
    int rc = khub__judge_open(&judging, kernel, place, way, err);
    if (rc == KHUB_OK) rc = khub__judge_metadata(&judging, err);
    if (rc == KHUB_OK && !way->only_metadata) rc = bring_and_load(&judging, way, options, before, err);
    khub__judge_close(&judging);
    return rc;
}

static int get_one(khub_kernel *kernel, khub__way *way, const khub_get_options *options,
                   const khub__chain *before, khub_error *err)
{
    khub__place place = {0};
    int rc = khub__place_open(&place, way, kernel->name, err);
    if (rc == KHUB_OK) rc = choose(&kernel->variant, &place.repository, options, kernel->name, err);
    if (rc == KHUB_OK) rc = take_facts(kernel, &place, err);
    if (rc == KHUB_OK) rc = judge_and_load(kernel, &place, way, options, before, err);
    khub__place_close(&place);
    return rc;
}

/* How far the way is gone. */
enum extent { TO_METADATA, TO_BUILD, TO_LOAD };

/* From nothing: what the process got already isn't looked at. */
static int get_anew(khub_kernel *kernel, const khub_get_options *options, enum extent extent, khub_error *err)
{
    khub__way way;
    int rc = khub__way_open(&way, options->hub, options->lock, err);
    way.only_fetch = extent != TO_LOAD;
    way.only_metadata = extent == TO_METADATA;
    if (!khub__machine_is_narrowed(options))
        way.platform = options->platform ? options->platform : khub__known_machine();
    if (rc == KHUB_OK) rc = get_one(kernel, &way, options, NULL, err);
    khub__way_close(&way);
    return rc;
}

static int get(khub_kernel *kernel, const khub_get_options *options, khub_error *err)
{
    char *key;
    int rc = khub__memo_key(&key, kernel->name, options, err);
    if (rc == KHUB_OK && !(key && khub__memo_find(kernel, key))) {
        int64_t since_ns = khub__file_clock_ns();
        rc = get_anew(kernel, options, TO_LOAD, err);
        if (rc == KHUB_OK && key) rc = khub__memo_keep(kernel, key, since_ns, err);
    }
    khub__free(key);
    return rc;
}

/* What khub_get and khub_prefetch have in common: the checks, and a kernel that has its name. */
static int begin(khub_kernel **out, khub_get_options *ours, const char *function, const char *name,
                 const khub_get_options *options, khub_error *err)
{
    *out = NULL;
    if (!name || !*name) return khub__fail(err, KHUB_E_INVAL, "%s: no name is given", function);
    int rc = khub__options(ours, sizeof(*ours), options, "khub_get_options", err);
    return rc == KHUB_OK ? new_kernel(out, name, err) : rc;
}

int khub_get(khub_kernel **out, const char *name, const khub_get_options *options, khub_error *err)
{
    int missing = khub__given("khub_get", out != NULL, err);
    if (missing != KHUB_OK) return missing;
    khub_get_options ours;
    int rc = begin(out, &ours, "khub_get", name, options, err);
    if (rc == KHUB_OK) rc = get(*out, &ours, err);
    if (rc == KHUB_OK) return rc;
    khub_kernel_close(*out);
    *out = NULL;
    return rc;
}

int khub_prefetch(char **build, const char *name, const khub_get_options *options, khub_error *err)
{
    if (build) *build = NULL;
    khub_kernel *kernel;
    khub_get_options ours;
    int rc = begin(&kernel, &ours, "khub_prefetch", name, options, err);
    if (rc == KHUB_OK) rc = get_anew(kernel, &ours, TO_BUILD, err);
    if (rc == KHUB_OK && build) {
        *build = kernel->build;
        kernel->build = NULL;
    }
    khub_kernel_close(kernel);
    return rc;
}

int khub_judge(khub_trust **out, const char *name, int whole, const khub_get_options *options,
               khub_error *err)
{
    int missing = khub__given("khub_judge", out != NULL, err);
    if (missing != KHUB_OK) return missing;
    *out = NULL;
    khub_kernel *kernel;
    khub_get_options ours;
    khub_error why = {0};
    int rc = begin(&kernel, &ours, "khub_judge", name, options, err);
    if (rc != KHUB_OK) return rc;
    rc = get_anew(kernel, &ours, whole ? TO_BUILD : TO_METADATA, &why);
    int is_verdict = rc == KHUB_OK || (rc == KHUB_E_UNTRUSTED && khub__trust_end(kernel->trust, NULL) == rc);
    if (is_verdict) {
        *out = kernel->trust;
        kernel->trust = NULL;
    }
    khub_kernel_close(kernel);
    return is_verdict ? KHUB_OK : khub__fail(err, rc, "%s", why.message);
}
