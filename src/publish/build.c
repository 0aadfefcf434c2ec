/* A build: its metadata.json, its library and its layers.json, each by itself and against the others. */
#include "publish/checking.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/text.h"
#include "kernel/build.h"
#include "kernel/layers_json.h"
#include "trust/digest.h"
#include "variant/archs.h"

typedef struct build {
    khub__checking *c;
    const char *directory, *shown;
    const khub__variant_name *variant; /* NULL: the directory's name isn't one */
    khub__metadata metadata;
    int has_metadata;
    char **names; /* of its files */
    size_t name_count;
    khub__opened *libraries;
    size_t library_count;
    const khub__opened *main; /* the one that is loaded; NULL: none, or it isn't known */
} build;

/* What follows is about a file of the build, "" for the build itself. *path is the caller's; 0: no memory. */
static int speak_of(const build *b, const char *name, char **path, char **shown)
{
    *path = khub__path_join(b->directory, name);
    *shown = *name ? khub__path_join(b->shown, name) : khub__strdup(b->shown);
    b->c->report->file = *shown;
    if (*path && *shown) return 1;
    b->c->report->failed = 1;
    return 0;
}

static void spoke(const build *b, char *path, char *shown)
{
    b->c->report->file = NULL;
    khub__free(path);
    khub__free(shown);
}

static void say(const build *b, const char *about, khub_check_level level, const char *value,
                const char *words)
{
    khub__finding(b->c->report, about, level, value, NULL, "%s", words);
}

/* ---- metadata.json ---- */

static void judge_provenance(const build *b)
{
    const khub__metadata *m = &b->metadata;
    if (m->kernel.dirty || m->builder.dirty)
        say(b, "provenance", KHUB_CHECK_LEVEL_WARNING, m->kernel.commit,
            "was built from sources with changes that no commit has, so nobody can build it again");
    else if (m->kernel.commit)
        khub__finding(b->c->report, "provenance", KHUB_CHECK_LEVEL_NOTE, m->kernel.commit, NULL,
                      "built from commit %s", m->kernel.commit);
}

/* "-" and "_" are one letter, for names that become those of modules. */
static int holds(const char *text, const char *name)
{
    size_t n = strlen(name);
    for (; strlen(text) >= n; text++) {
        size_t i = 0;
        while (i < n && (text[i] == '-' ? '_' : text[i]) == (name[i] == '-' ? '_' : name[i]))
            i++;
        if (i == n) return 1;
    }
    return 0;
}

static void judge_names(const build *b)
{
    const khub__metadata *m = &b->metadata;
    if (!holds(m->id, m->name))
        khub__finding(b->c->report, "id", KHUB_CHECK_LEVEL_WARNING, m->id, NULL,
                      "the id is %s, which doesn't hold the name, %s", m->id, m->name);
    if (b->variant && b->variant->backend && strcmp(b->variant->backend->name, m->backend) != 0)
        khub__finding(b->c->report, "backend", KHUB_CHECK_LEVEL_ERROR, m->backend, NULL,
                      "the backend is %s, the build's name says %s", m->backend, b->variant->backend->name);
}

static void judge_archs(const build *b)
{
    const khub__metadata *m = &b->metadata;
    int cuda = !strcmp(m->backend, "cuda"), rocm = !strcmp(m->backend, "rocm");
    if (!cuda && !rocm) return;
    if (!m->arch_count && b->variant && b->variant->framework != KHUB__NOARCH)
        say(b, "archs", KHUB_CHECK_LEVEL_WARNING, NULL,
            "\"archs\" is missing: machines whose GPU the code isn't for take this build too, and fail at "
            "the first "
            "call");
    for (size_t i = 0; i < m->arch_count; i++) {
        khub__arch_fit fit =
            cuda ? khub__cuda_arch_fits(m->archs[i], "9.0") : khub__rocm_arch_fits(m->archs[i], "gfx90a");
        if (fit == KHUB__ARCH_UNREADABLE)
            khub__finding(b->c->report, "archs", KHUB_CHECK_LEVEL_ERROR, m->archs[i], NULL,
                          "\"archs\" has \"%s\", which is no %s architecture", m->archs[i],
                          cuda ? "CUDA" : "ROCm");
    }
}

static int judge_digest(const build *b, const char *path)
{
    khub__digest_claim claim;
    khub__violations violations;
    khub_error why = {0};
    if (!b->metadata.digest) {
        say(b, "digest", KHUB_CHECK_LEVEL_NOTE, NULL,
            "has no digest, so nothing proves that the files are those that were built");
        return KHUB_OK;
    }
    int rc = khub__digest_read(&claim, b->metadata.digest, path, &why);
    if (rc == KHUB_OK) rc = khub__digest_check(&violations, &claim, b->directory, b->c->also, &why);
    if (rc != KHUB_OK) return khub__finding_why(b->c, "digest", path, &why);
    for (size_t i = 0; i < violations.count; i++) {
        khub__text words = {0};
        khub__violation_words(&words, &violations.items[i]);
        if (words.failed)
            b->c->report->failed = 1;
        else
            say(b, "digest", KHUB_CHECK_LEVEL_ERROR, violations.items[i].path, words.data);
        khub__text_free(&words);
    }
    khub__violations_free(&violations);
    return KHUB_OK;
}

static int check_metadata(build *b)
{
    char *path, *shown;
    khub_error why = {0};
    int rc = KHUB_OK;
    if (speak_of(b, "metadata.json", &path, &shown)) {
        if (khub__metadata_read(&b->metadata, path, &why) != KHUB_OK) {
            rc = khub__finding_why(b->c, "metadata", path, &why);
        } else {
            b->has_metadata = 1;
            judge_names(b);
            judge_archs(b);
            judge_provenance(b);
            rc = judge_digest(b, path);
        }
    }
    spoke(b, path, shown);
    return rc;
}

/* ---- what the builds of one repository share ---- */

void khub__common_free(khub__common *common)
{
    for (size_t i = 0; i < common->ids.count; i++)
        khub__free((void *)(uintptr_t)common->ids.items[i]);
    khub__names_free(&common->ids);
    khub__free(common->build);
    khub__free(common->name);
    khub__free(common->license);
    memset(common, 0, sizeof(*common));
}

static void start_common(const build *b, khub__common *common)
{
    common->build = khub__strdup(b->shown);
    common->name = khub__strdup(b->metadata.name);
    common->license = khub__strdup(b->metadata.license);
    common->version = b->metadata.version;
    if (!common->build || !common->name || !common->license) b->c->report->failed = 1;
}

static void compare_texts(const build *b, const khub__common *common, const char *key, const char *ours,
                          const char *theirs)
{
    if (strcmp(ours, theirs) != 0)
        khub__finding(b->c->report, "builds", KHUB_CHECK_LEVEL_ERROR, key, NULL,
                      "the %s is %s, in %s it is %s", key, ours, common->build, theirs);
}

static void compare_common(const build *b, khub__common *common)
{
    const khub__metadata *m = &b->metadata;
    char ours[24], theirs[24], *id = khub__strdup(m->id);
    snprintf(ours, sizeof(ours), "%lld", (long long)m->version);
    snprintf(theirs, sizeof(theirs), "%lld", (long long)common->version);
    compare_texts(b, common, "name", m->name, common->name);
    compare_texts(b, common, "version", ours, theirs);
    compare_texts(b, common, "license", m->license, common->license);
    if (khub__names_have(&common->ids, m->id))
        khub__finding(b->c->report, "builds", KHUB_CHECK_LEVEL_ERROR, "id", NULL,
                      "the id %s is that of another build too", m->id);
    if (id) khub__names_add(&common->ids, id);
    if (id && common->ids.failed) khub__free(id);
    if (!id || common->ids.failed) b->c->report->failed = 1;
}

static void check_common(const build *b, khub__common *common)
{
    char *path, *shown;
    if (!common->build) start_common(b, common);
    if (b->c->report->failed) return;
    if (speak_of(b, "metadata.json", &path, &shown)) compare_common(b, common);
    spoke(b, path, shown);
}

/* ---- the libraries ---- */

static int open_libraries(build *b)
{
    b->libraries = khub__calloc(b->name_count + 1, sizeof(*b->libraries));
    if (!b->libraries) return khub__fail_memory(b->c->err, "checking a build");
    int rc = KHUB_OK;
    for (size_t i = 0; rc == KHUB_OK && i < b->name_count; i++)
        if (khub__is_library_name(b->names[i]))
            rc = khub__opened_open(&b->libraries[b->library_count++], b->c, b->directory, b->shown,
                                   b->names[i]);
    return rc;
}

/* Which library is loaded, as khub_get finds it. */
static int find_main(build *b)
{
    char *path;
    khub_error why = {0};
    if (!b->has_metadata || (b->variant && b->variant->framework == KHUB__NOARCH)) return KHUB_OK;
    int rc = khub__build_library(&path, b->directory, &b->metadata, &why);
    if (rc != KHUB_OK) return khub__finding_why(b->c, "library", b->directory, &why);
    for (size_t i = 0; i < b->library_count; i++)
        if (!strcmp(b->libraries[i].path, path)) b->main = &b->libraries[i];
    khub__free(path);
    return KHUB_OK;
}

static void judge_library_name(const build *b)
{
    const char *name = khub__path_name(b->main->path), *id = b->metadata.id;
    size_t n = strlen(id);
    if (!strncmp(name, id, n) && (!strcmp(name + n, ".so") || !strcmp(name + n, ".abi3.so"))) return;
    khub__finding(b->c->report, "id", KHUB_CHECK_LEVEL_WARNING, name, NULL,
                  "is called %s, the id says %s.so or %s.abi3.so", name, id, id);
}

/* 1: code for `arch` is what an entry of `length` bytes asks for. ("gfx90a" takes its features as they come.)
 */
static int is_for(const char *arch, const char *entry, size_t length)
{
    return !strncmp(arch, entry, length) && (!arch[length] || arch[length] == ':');
}

/* Of all its libraries: is there code for the entry? */
static int has_code(const build *b, const char *entry, size_t length, int ptx)
{
    for (size_t i = 0; i < b->library_count; i++)
        for (size_t k = 0; k < b->libraries[i].objects.count; k++) {
            const khub__object *o = &b->libraries[i].objects.items[k];
            for (size_t n = 0; n < o->code_count; n++)
                if (o->codes[n].ptx == ptx && is_for(o->codes[n].arch, entry, length)) return 1;
        }
    return 0;
}

/* "9.0+PTX" is code for 9.0, and PTX of it for later GPUs. */
static void judge_entry(const build *b, const char *entry)
{
    size_t length = strcspn(entry, "+");
    int ptx = !strcmp(entry + length, "+PTX");
    if (!ptx) length = strlen(entry);
    if (!has_code(b, entry, length, 0))
        khub__finding(b->c->report, "archs", KHUB_CHECK_LEVEL_ERROR, entry, NULL,
                      "\"archs\" has \"%s\", but the library holds no code for it", entry);
    else if (ptx && !has_code(b, entry, length, 1))
        khub__finding(b->c->report, "archs", KHUB_CHECK_LEVEL_ERROR, entry, NULL,
                      "\"archs\" has \"%s\", but the library holds no PTX of it for later GPUs", entry);
}

static void judge_code(const build *b, const khub__gpu_code *code)
{
    for (size_t i = 0; i < b->metadata.arch_count; i++) {
        const char *entry = b->metadata.archs[i], *ptx = strstr(entry, "+PTX");
        size_t length = ptx ? (size_t)(ptx - entry) : strlen(entry);
        if ((ptx || !code->ptx) && is_for(code->arch, entry, length)) return;
    }
    khub__finding(b->c->report, "archs", KHUB_CHECK_LEVEL_WARNING, code->arch, NULL,
                  "the library holds %s for %s, which isn't in \"archs\": no such machine takes this build",
                  code->ptx ? "PTX" : "code", code->arch);
}

static void judge_codes(const build *b)
{
    const khub__metadata *m = &b->metadata;
    size_t codes = 0;
    for (size_t i = 0; i < b->library_count; i++)
        for (size_t k = 0; k < b->libraries[i].objects.count; k++) {
            const khub__object *o = &b->libraries[i].objects.items[k];
            codes += o->code_count;
            for (size_t n = 0; m->arch_count && n < o->code_count; n++)
                judge_code(b, &o->codes[n]);
        }
    int gpu = !strcmp(m->backend, "cuda") || !strcmp(m->backend, "rocm");
    if (codes && !gpu)
        khub__finding(b->c->report, "archs", KHUB_CHECK_LEVEL_ERROR, m->backend, NULL,
                      "the libraries hold code for GPUs, the backend is %s", m->backend);
    if (!codes && gpu)
        say(b, "archs", KHUB_CHECK_LEVEL_WARNING, NULL,
            "the libraries hold no code for GPUs that khub can find");
    for (size_t i = 0; codes && i < m->arch_count; i++)
        judge_entry(b, m->archs[i]);
}

/* The library that is loaded, against the rest of the build. */
static void judge_main(const build *b)
{
    b->c->report->file = b->main->shown;
    judge_library_name(b);
    if (!b->variant || b->variant->framework != KHUB__NOARCH) judge_codes(b);
    for (size_t i = 0; i < b->main->objects.count; i++) {
        khub__case j = {b->c->report, &b->main->objects.items[i], &b->c->options, b->main->path, b->variant};
        khub__check_functions(&j, b->metadata.id);
    }
    b->c->report->file = NULL;
}

static int judge_libraries(const build *b, const char *variant)
{
    int rc = KHUB_OK;
    for (size_t i = 0; rc == KHUB_OK && i < b->library_count; i++) {
        khub__opened_judge(&b->libraries[i], b->c, b->variant);
        if (&b->libraries[i] != b->main) continue;
        judge_main(b);
        rc = khub__opened_load(b->main, b->c, variant);
    }
    return rc;
}

/* ---- layers.json ---- */

static void judge_layers(const build *b, const khub__layers *layers)
{
    int callable = !b->variant || b->variant->framework == KHUB__TVM_FFI;
    for (size_t i = 0; i < layers->count; i++) {
        const khub_layer_spec *spec = layers->specs[i];
        const char *wanted[] = {spec->function, spec->prepare_arg ? spec->prepare_function : NULL};
        for (size_t k = 0; callable && k < 2; k++)
            for (size_t n = 0; wanted[k] && n < b->main->objects.count; n++)
                if (!khub__exports_function(&b->main->objects.items[n], wanted[k]))
                    khub__finding(b->c->report, "layers", KHUB_CHECK_LEVEL_ERROR, wanted[k], NULL,
                                  "%s is served by %s, which the library doesn't export (__tvm_ffi_%s)",
                                  spec->layer, wanted[k], wanted[k]);
    }
}

static int check_layers(const build *b)
{
    char *path, *shown;
    khub__layers layers;
    khub_error why = {0};
    int rc = KHUB_OK;
    if (speak_of(b, "layers.json", &path, &shown) && khub__file_kind(path) != KHUB__FILE_NONE) {
        if (khub__layers_read(&layers, path, &why) != KHUB_OK)
            rc = khub__finding_why(b->c, "layers", path, &why);
        else if (b->main)
            judge_layers(b, &layers);
        if (!why.code) khub__layers_free(&layers);
    }
    spoke(b, path, shown);
    return rc;
}

/* ---- the whole ---- */

static void judge_variant(const build *b, const char *variant)
{
    b->c->report->file = b->shown;
    if (variant && !b->variant)
        khub__finding(b->c->report, "variant", KHUB_CHECK_LEVEL_WARNING, variant, NULL,
                      "%s is no name of a build that khub knows: it is passed over", variant);
    if (b->variant && b->variant->framework == KHUB__NOARCH && b->library_count)
        say(b, "variant", KHUB_CHECK_LEVEL_WARNING, variant,
            "the build's name says that it is Python alone, and there are libraries in it");
    b->c->report->file = NULL;
}

static int check_all(build *b, khub__common *common, const char *variant)
{
    int rc = khub__dir_list(&b->names, &b->name_count, b->directory, b->c->err);
    if (rc == KHUB_OK) rc = check_metadata(b);
    if (rc == KHUB_OK && b->has_metadata && common) check_common(b, common);
    if (rc == KHUB_OK) rc = open_libraries(b);
    b->c->report->file = b->shown;
    if (rc == KHUB_OK) rc = find_main(b);
    b->c->report->file = NULL;
    if (rc != KHUB_OK) return rc;
    judge_variant(b, variant);
    rc = judge_libraries(b, b->variant ? variant : NULL);
    return rc == KHUB_OK ? check_layers(b) : rc;
}

int khub__check_build(khub__checking *c, khub__common *common, const char *directory, const char *shown,
                      const char *variant)
{
    khub__variant_name name;
    build b = {.c = c, .directory = directory, .shown = shown};
    if (variant && khub__variant_name_parse(&name, variant)) b.variant = &name;
    int rc = check_all(&b, common, variant);
    for (size_t i = 0; i < b.library_count; i++)
        khub__opened_close(&b.libraries[i]);
    khub__free(b.libraries);
    khub__free(b.names);
    khub__metadata_free(&b.metadata);
    return rc;
}
