/* khub_pack: from a directory with a library to a build of a kernel repository. */
#include <khub/pack.h>

#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/path.h"
#include "kernel/layers_json.h"
#include "kernel/metadata.h"
#include "publish/description.h"
#include "publish/folder.h"
#include "publish/object.h"
#include "trust/digest.h"
#include "trust/files.h"

#include <stdio.h>

/* One directory on its way to a build. */
typedef struct packing {
    const char *directory, *repository;
    khub_pack_options options;
    khub__files files; /* of the directory */
    json_t *base;      /* its metadata.json; NULL: none */
    char variant[256];
    khub__variant_name name;
    const char *library; /* the name of the kernel's file; NULL: there is none, and has to be none */
    char id[256];
    json_t *metadata;
    khub__folder *folder;
    khub_error *err;
} packing;

static int no_memory(const packing *p)
{
    return khub__fail_memory(p->err, "packing a kernel");
}

static khub__described described(const packing *p)
{
    return (khub__described){p->directory, &p->options, p->base, &p->name, p->variant};
}

/* 1 for what a system, an editor or git hid there. */
static int is_hidden(const char *path)
{
    return path[0] == '.' || strstr(path, "/.") != NULL;
}

/* 1 for what isn't part of a build. */
static int is_left_out(const char *path)
{
    return is_hidden(path) || !khub__digest_covers(path);
}

static int look_at_files(packing *p)
{
    char room[600];
    const char *some = NULL;
    size_t hidden = 0;
    int rc = khub__files_find(&p->files, p->directory, NULL, p->err);
    for (size_t i = 0; rc == KHUB_OK && i < p->files.count; i++) {
        const khub__found *file = &p->files.items[i];
        const char *fault = khub__found_fault(file, room, sizeof(room));
        if (is_hidden(file->path))
            hidden++, some = file->path;
        else if (!strcmp(file->path, "metadata.json.sigstore"))
            khub__log(KHUB_LOG_WARNING, "pack", file->path, "is left out: metadata.json is written anew");
        else if (fault)
            rc = khub__fail(p->err, KHUB_E_FORMAT, "%s/%s: %s", p->directory, file->path, fault);
    }
    if (rc == KHUB_OK && hidden) /* a whole .git may be there */
        khub__log(KHUB_LOG_NOTICE, "pack", p->directory,
                  "left out: %zu file%s with a dot before a name, as %s", hidden, hidden == 1 ? "" : "s",
                  some);
    return rc;
}

static int read_base(packing *p)
{
    char *path = khub__path_join(p->directory, "metadata.json");
    int rc = path ? KHUB_OK : no_memory(p);
    if (rc == KHUB_OK && khub__file_kind(path) != KHUB__FILE_NONE)
        rc = khub__json_read(&p->base, path, KHUB__METADATA_MAX, p->err);
    khub__free(path);
    return rc;
}

/* The build for this machine of a tvm-ffi kernel on the CPU. */
static int name_for_this_machine(packing *p)
{
    static const khub_platform_options quick = {.struct_size = sizeof(quick), .no_accelerators = 1};
    const char *backend = json_string_value(json_object_get(json_object_get(p->base, "backend"), "type"));
    khub_platform *machine;
    khub__version version;
    if (backend && strcmp(backend, "cpu") != 0)
        return khub__fail(
            p->err, KHUB_E_INVAL,
            "%s: is a kernel for %.32s, and khub_pack_options.variant names no build (docs/variants.md)",
            p->directory, backend);
    int rc = khub_platform_detect(&machine, &quick, p->err);
    if (rc != KHUB_OK) return rc;
    const char *tvm_ffi = khub_platform_tvm_ffi(machine);
    if (!tvm_ffi || khub__version_parse(&version, tvm_ffi) != 0)
        rc = khub__fail(
            p->err, KHUB_E_INVAL,
            "%s: khub_pack_options.variant has to name the build, for there is no libtvm_ffi in reach "
            "whose version would",
            p->directory);
    else
        snprintf(p->variant, sizeof(p->variant), "tvm-ffi%d%d-cpu-%s-%s", version.major, version.minor,
                 khub_platform_arch(machine), khub_platform_os(machine));
    khub_platform_free(machine);
    return rc;
}

static int name_build(packing *p)
{
    int rc = KHUB_OK;
    if (p->options.variant && strlen(p->options.variant) < sizeof(p->variant))
        khub__copy(p->variant, sizeof(p->variant), p->options.variant);
    else if (!p->options.variant)
        rc = name_for_this_machine(p);
    if (rc != KHUB_OK || khub__variant_name_parse(&p->name, p->variant)) return rc;
    return khub__fail(p->err, KHUB_E_INVAL, "%.256s: isn't the name of a build (docs/variants.md)",
                      p->options.variant ? p->options.variant : p->variant);
}

static int ends(const char *name, const char *end)
{
    size_t n = strlen(name), m = strlen(end);
    return n > m && !strcmp(name + n - m, end);
}

/* "relu.abi3.so": ".abi3.so", which says that it can do with every Python. */
static const char *suffix_of(const char *library)
{
    return ends(library, ".abi3.so") ? ".abi3.so" : ".so";
}

/* The libraries that lie in the directory itself: how many, the last one, and their names for a message. */
static size_t count_libraries(const packing *p, const char **last, khub__text *names)
{
    size_t count = 0;
    for (size_t i = 0; i < p->files.count; i++) {
        const char *path = p->files.items[i].path;
        if (strchr(path, '/') || is_left_out(path) || !ends(path, ".so")) continue;
        khub__text_addf(names, "%s%s", count++ ? ", " : "", path);
        *last = path;
    }
    return count;
}

static int has_file(const packing *p, const char *path)
{
    for (size_t i = 0; i < p->files.count; i++)
        if (!strcmp(p->files.items[i].path, path)) return !is_left_out(path);
    return 0;
}

/* The library that already has the name it is to have. */
static const char *named_library(const packing *p, const char *id)
{
    char name[300];
    static const char *const suffixes[] = {".so", ".abi3.so"};
    for (size_t i = 0; id && i < 2; i++) {
        snprintf(name, sizeof(name), "%.255s%s", id, suffixes[i]);
        for (size_t j = 0; j < p->files.count; j++)
            if (!strcmp(p->files.items[j].path, name)) return p->files.items[j].path;
    }
    return NULL;
}

static int judge_libraries(packing *p, size_t count, const char *names)
{
    const khub__described build = described(p);
    const char *named = named_library(p, khub__described_text(&build, "id"));
    if (p->name.framework == KHUB__NOARCH)
        return count ? khub__fail(p->err, KHUB_E_INVAL, "%s: a build %s has Python files only, there is %s",
                                  p->directory, p->variant, names)
                     : KHUB_OK;
    if (count == 0)
        return khub__fail(p->err, KHUB_E_NOTFOUND, "%s: has no library, no file NAME.so", p->directory);
    if (named) p->library = named;
    if (count == 1 || named) return KHUB_OK;
    return khub__fail(p->err, KHUB_E_INVAL,
                      "%s: has several libraries (%s); khub_pack_options.library says which is the kernel",
                      p->directory, names);
}

static int pick_library(packing *p)
{
    const char *wanted = p->options.library;
    khub__text names = {0};
    if (wanted) {
        if (!has_file(p, wanted) || strchr(wanted, '/') || !ends(wanted, ".so"))
            return khub__fail(p->err, KHUB_E_NOTFOUND, "%s: has no library %s in it", p->directory, wanted);
        p->library = wanted;
        return KHUB_OK;
    }
    size_t count = count_libraries(p, &p->library, &names);
    int rc = names.failed ? no_memory(p) : judge_libraries(p, count, names.data);
    khub__text_free(&names);
    return rc;
}

/* "_relu_cpu_1a2b3c4": changes with the content, so that two builds can be in one process. */
static int id_by_content(packing *p)
{
    const khub__described build = described(p);
    const char *name = khub__described_text(&build, "name"), *backend = khub__described_backend(&build);
    char hex[KHUB__HASH_HEX_MAX + 1] = "";
    khub__hash *hash = NULL;
    khub__stream file;
    char *path = khub__path_join(p->directory, p->library);
    int rc = path ? khub__stream_open(&file, path, p->err) : no_memory(p);
    if (rc == KHUB_OK) {
        rc = khub__hash_new(&hash, KHUB__HASH_SHA256, file.size, p->err);
        if (rc == KHUB_OK) rc = khub__hash_stream(&hash, 1, &file, p->err);
        if (rc == KHUB_OK) khub__hash_end(hash, hex);
        khub__hash_free(hash);
        khub__stream_close(&file);
    }
    khub__free(path);
    snprintf(p->id, sizeof(p->id), "_%.180s_%.16s_%.7s", name ? name : "kernel", backend ? backend : "cpu",
             hex);
    for (char *dash = p->id; (dash = strchr(dash, '-')) != NULL;)
        *dash = '_';
    return rc;
}

/* What the build is called, and so its library. A torch kernel's operators are registered under that name
 * when it is compiled, which the file is named after. */
static int make_id(packing *p)
{
    khub__json_source source = {"metadata.json", p->err};
    const char *said = NULL;
    int rc = khub__json_string(&said, p->base, "id", &source);
    if (p->options.id) said = p->options.id;
    if (rc != KHUB_OK) return rc;
    if (said) { /* a longer one is cut, and refused for its length when it is read */
        khub__copy(p->id, sizeof(p->id), said);
        return KHUB_OK;
    }
    if (!p->library)
        return khub__fail(
            p->err, KHUB_E_INVAL,
            "%s: a build without a library needs khub_pack_options.id, or an \"id\" in metadata.json",
            p->directory);
    if (p->name.framework == KHUB__TVM_FFI) return id_by_content(p);
    snprintf(p->id, sizeof(p->id), "%.*s", (int)(strlen(p->library) - strlen(suffix_of(p->library))),
             p->library);
    return KHUB_OK;
}

/* The system that a library of this format is for, as builds are named. */
static const char *system_of(khub__object_format format)
{
    return format == KHUB__ELF ? "linux" : format == KHUB__MACHO ? "darwin" : "windows";
}

static int check_objects(const packing *p, const khub__objects *objects, const char *path)
{
    for (size_t i = 0; i < objects->count; i++)
        if (khub__word_is(p->name.arch, objects->items[i].arch) &&
            khub__word_is(p->name.os, system_of(objects->items[i].format)))
            return KHUB_OK;
    const khub__object *first = &objects->items[0];
    return khub__fail(p->err, KHUB_E_FORMAT, "%s: is a library for %s-%s, the build is named %s", path,
                      first->arch, system_of(first->format), p->variant);
}

/* Whether it is a library for the machine that the build's name says; what else it should be khub check
 * knows. */
static int check_library(const packing *p)
{
    khub__bytes file;
    khub__objects objects;
    khub_error why = {0};
    if (!p->library) return KHUB_OK;
    char *path = khub__path_join(p->directory, p->library);
    int rc = path ? khub__file_map(&file, path, p->err) : no_memory(p);
    if (rc == KHUB_OK) {
        rc = khub__objects_read(&objects, &file, path, &why);
        if (rc == KHUB_OK)
            rc = check_objects(p, &objects, path);
        else if (rc != KHUB_E_UNSUPPORTED)
            khub__fail(p->err, rc, "%s", why.message);
        else
            khub__log(KHUB_LOG_NOTICE, "pack", p->library, "isn't looked into: %s", why.message);
        if (rc == KHUB_E_UNSUPPORTED) rc = KHUB_OK;
        khub__objects_free(&objects);
        khub__bytes_free(&file);
    }
    khub__free(path);
    return rc;
}

static int check_layers(const packing *p)
{
    khub__layers layers = {0};
    if (!has_file(p, "layers.json")) return KHUB_OK;
    char *path = khub__path_join(p->directory, "layers.json");
    int rc = path ? khub__layers_read(&layers, path, p->err) : no_memory(p);
    khub__layers_free(&layers);
    khub__free(path);
    return rc;
}

static int check_place(const packing *p)
{
    int within;
    int rc = khub__folder_within(&within, p->repository, p->directory, p->err);
    if (rc != KHUB_OK || !within) return rc;
    return khub__fail(p->err, KHUB_E_INVAL, "%s: lies in %s, which would be packed into itself",
                      p->repository, p->directory);
}

/* Everything that can be known before anything is written. */
static int prepare(packing *p)
{
    int rc = look_at_files(p);
    if (rc == KHUB_OK) rc = check_place(p);
    if (rc == KHUB_OK) rc = read_base(p);
    if (rc == KHUB_OK) rc = name_build(p);
    if (rc == KHUB_OK) rc = pick_library(p);
    if (rc == KHUB_OK) rc = check_library(p);
    if (rc == KHUB_OK) rc = make_id(p);
    const khub__described build = described(p);
    if (rc == KHUB_OK) rc = khub__describe(&p->metadata, &build, p->id, p->err);
    return rc == KHUB_OK ? check_layers(p) : rc;
}

/* Python would look for the library under the name that it doesn't have any more. */
static int warn_of_old_name(const packing *p, const char *path, const char *from)
{
    enum { SCRIPT_MAX = 1 << 20 };
    khub__bytes text;
    khub_error why = {0};
    if (!ends(path, ".py")) return KHUB_OK;
    int rc = khub__file_read(&text, from, SCRIPT_MAX, &why);
    if (rc == KHUB_E_NOMEM) return no_memory(p);
    if (rc != KHUB_OK) return KHUB_OK; /* longer than any that would */
    if (strstr(text.data, p->library))
        khub__log(KHUB_LOG_WARNING, "pack", path, "names %s, which is %s%s in the build; ops of ._ops is it",
                  p->library, p->id, suffix_of(p->library));
    khub__bytes_free(&text);
    return KHUB_OK;
}

static int copy_file(const packing *p, const char *path)
{
    char name[300];
    char *from = khub__path_join(p->directory, path);
    int rc = from ? KHUB_OK : no_memory(p), is_kernel = p->library && !strcmp(path, p->library);
    if (is_kernel) snprintf(name, sizeof(name), "%s%s", p->id, suffix_of(path));
    if (rc == KHUB_OK && p->library && strncmp(p->library, p->id, strlen(p->id)) != 0)
        rc = warn_of_old_name(p, path, from);
    if (rc == KHUB_OK) rc = khub__folder_copy(p->folder, is_kernel ? name : path, from, p->err);
    khub__free(from);
    return rc;
}

static int copy_files(const packing *p)
{
    int rc = KHUB_OK;
    for (size_t i = 0; rc == KHUB_OK && i < p->files.count; i++)
        if (!is_left_out(p->files.items[i].path)) rc = copy_file(p, p->files.items[i].path);
    return rc;
}

/* The Python face of a tvm-ffi kernel, as far as the directory has none. */
static int write_face(const packing *p)
{
    static const char init[] = "\"\"\"The functions of this build. Written by khub pack.\"\"\"\n"
                               "from ._ops import ops\n\n\n"
                               "def __getattr__(name):\n"
                               "    return getattr(ops, name)\n";
    int rc = KHUB_OK;
    if (p->name.framework != KHUB__TVM_FFI) return KHUB_OK;
    if (!has_file(p, "_ops.py")) {
        khub__text ops = {0};
        khub__text_addf(&ops,
                        "\"\"\"Loads this build's library. Written by khub pack.\"\"\"\n"
                        "from pathlib import Path\n\n"
                        "import tvm_ffi\n\n"
                        "ops = tvm_ffi.load_module(str(Path(__file__).parent / \"%s%s\"))\n",
                        p->id, suffix_of(p->library));
        rc = ops.failed ? no_memory(p)
                        : khub__folder_write(p->folder, "_ops.py", ops.data, ops.length, p->err);
        khub__text_free(&ops);
    }
    if (rc == KHUB_OK && !has_file(p, "__init__.py"))
        rc = khub__folder_write(p->folder, "__init__.py", init, sizeof(init) - 1, p->err);
    return rc;
}

static int write_metadata(packing *p)
{
    const char *algorithm = p->options.algorithm;
    khub__hash_kind kind = algorithm && !strcmp(algorithm, "sha512") ? KHUB__HASH_SHA512 : KHUB__HASH_SHA256;
    json_t *digest;
    khub__text text = {0};
    int rc = khub__digest_make(&digest, kind, khub__folder_path(p->folder), NULL, p->err);
    if (rc == KHUB_OK && json_object_set_new(p->metadata, "digest", digest) != 0) rc = no_memory(p);
    if (rc != KHUB_OK) return rc;
    khub__json_add(&text, p->metadata, JSON_INDENT(2));
    khub__text_add(&text, "\n");
    rc = text.failed ? no_memory(p)
                     : khub__folder_write(p->folder, "metadata.json", text.data, text.length, p->err);
    khub__text_free(&text);
    return rc;
}

static int write_build(packing *p)
{
    int rc = khub__folder_open(&p->folder, p->repository, "build", p->variant, p->options.replace, p->err);
    if (rc == KHUB_OK) rc = copy_files(p);
    if (rc == KHUB_OK) rc = write_face(p);
    if (rc == KHUB_OK) rc = write_metadata(p);
    if (rc == KHUB_OK) {
        rc = khub__folder_commit(p->folder, p->err);
        p->folder = NULL;
    }
    return rc;
}

static int begin(packing *p, const khub_pack_options *options)
{
    int rc = khub__options(&p->options, sizeof(p->options), options, "khub_pack_options", p->err);
    const char *algorithm = p->options.algorithm;
    if (rc == KHUB_OK && algorithm && strcmp(algorithm, "sha256") != 0 && strcmp(algorithm, "sha512") != 0)
        rc = khub__fail(p->err, KHUB_E_INVAL,
                        "khub_pack_options.algorithm is \"%.32s\"; there are sha256 and sha512", algorithm);
    return rc;
}

static void end(packing *p)
{
    khub__folder_discard(p->folder);
    json_decref(p->metadata);
    json_decref(p->base);
    khub__files_free(&p->files);
}

static char *place_of(const packing *p)
{
    khub__text text = {0};
    size_t n = strlen(p->repository);
    khub__text_addf(&text, "%s%sbuild/%s", p->repository, n && p->repository[n - 1] == '/' ? "" : "/",
                    p->variant);
    return khub__text_take(&text);
}

int khub_pack(char **build, const char *directory, const char *repository, const khub_pack_options *options,
              khub_error *err)
{
    packing p = {.directory = directory, .repository = repository, .err = err};
    char *place = NULL;
    if (build) *build = NULL;
    int rc = khub__given("khub_pack", directory && *directory && repository && *repository, err);
    if (rc == KHUB_OK) rc = begin(&p, options);
    if (rc == KHUB_OK) rc = prepare(&p);
    if (rc == KHUB_OK && !(place = place_of(&p))) rc = no_memory(&p);
    if (rc == KHUB_OK) rc = write_build(&p);
    end(&p);
    if (rc == KHUB_OK && build)
        *build = place;
    else
        khub__free(place);
    return rc;
}
