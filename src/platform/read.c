/* A platform from JSON. */
#include "platform/platform.h"

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/log.h"

enum { MAX_FILE_BYTES = 1 << 20 };

/* The platform being filled in, and where it comes from. */
typedef struct reader {
    khub_platform *p;
    khub__json_source source;
} reader;

static int fail_field(const reader *r, const char *key, const char *value, const char *expected)
{
    return khub__fail(r->source.err, KHUB_E_FORMAT, "%s: \"%s\" is \"%s\", %s is expected", r->source.file,
                      key, value, expected);
}

static int read_text(reader *r, const char **out, const json_t *object, const char *key)
{
    const char *text = NULL;
    int rc = khub__json_string(&text, object, key, &r->source);
    if (rc == KHUB_OK && text && !*text) return fail_field(r, key, text, "a name, or null,");
    if (rc == KHUB_OK && text) *out = khub__pool_text(&r->p->pool, text);
    return rc;
}

/* `parts`: how many numbers the version must have at least. */
static int read_version(reader *r, khub__version *out, const json_t *object, const char *key, int parts)
{
    const char *text = NULL;
    int rc = khub__json_string(&text, object, key, &r->source);
    if (rc != KHUB_OK || !text) return rc;
    if (khub__version_parse(out, text) != 0 || (parts > 1 && out->minor < 0))
        return fail_field(r, key, text,
                          parts > 1 ? "a version such as \"2.10\"" : "a version such as \"26.1\"");
    return KHUB_OK;
}

static int read_count(reader *r, uint64_t *out, const json_t *object, const char *key, int64_t max)
{
    int64_t n = 0;
    int rc = khub__json_integer(&n, object, key, &r->source);
    if (rc == KHUB_OK && (n < 0 || n > max))
        return khub__fail(r->source.err, KHUB_E_FORMAT, "%s: \"%s\" is %lld, 0 to %lld is expected",
                          r->source.file, key, (long long)n, (long long)max);
    *out = (uint64_t)n;
    return rc;
}

static int read_unsigned(reader *r, unsigned *out, const json_t *object, const char *key)
{
    uint64_t n = 0;
    int rc = read_count(r, &n, object, key, 1 << 20);
    if (rc == KHUB_OK) *out = (unsigned)n;
    return rc;
}

static int read_texts(reader *r, const char ***out, size_t *count, const json_t *object, const char *key)
{
    const json_t *array = NULL;
    int rc = khub__json_array(&array, object, key, &r->source);
    if (rc != KHUB_OK || !array) return rc;
    size_t n = json_array_size(array);
    const char **texts = khub__pool_take(&r->p->pool, n, sizeof(*texts));
    for (size_t i = 0; texts && i < n; i++) {
        const char *text = json_string_value(json_array_get(array, i));
        if (!text || !*text)
            return khub__fail(r->source.err, KHUB_E_FORMAT, "%s: \"%s\"[%zu] is %s, a name is expected",
                              r->source.file, key, i,
                              text ? "\"\"" : khub__json_type_name(json_array_get(array, i)));
        texts[i] = khub__pool_text(&r->p->pool, text);
    }
    *out = texts;
    *count = texts ? n : 0;
    return KHUB_OK;
}

static int read_presence(reader *r, khub_presence *out, const json_t *object)
{
    const char *text = NULL;
    int rc = khub__json_string(&text, object, "presence", &r->source);
    if (rc != KHUB_OK) return rc;
    if (khub__presence_parse(out, text) == 0) return KHUB_OK;
    return fail_field(r, "presence", text ? text : "", "\"absent\", \"found\" or \"broken\"");
}

static void warn_unknown(const reader *r, const json_t *object, const char *const *known, const char *inside)
{
    const char *key;
    json_t *value;
    json_object_foreach ((json_t *)(uintptr_t)object, key, value) {
        size_t i = 0;
        while (known[i] && strcmp(known[i], key) != 0)
            i++;
        if (!known[i])
            khub__log(KHUB_LOG_WARNING, "platform", r->source.file, "unknown field \"%s\"%s%s is ignored",
                      key, *inside ? " in " : "", inside);
    }
}

/* One field of each element of an array of objects. */
typedef int (*element_fn)(reader *r, void *element, const json_t *object);

static int read_list(reader *r, void **out, size_t *count, const json_t *object, const char *key, size_t size,
                     element_fn read)
{
    const json_t *array = NULL;
    int rc = khub__json_array(&array, object, key, &r->source);
    if (rc != KHUB_OK || !array) return rc;
    size_t n = json_array_size(array);
    char *list = khub__pool_take(&r->p->pool, n, size);
    for (size_t i = 0; list && i < n && rc == KHUB_OK; i++) {
        const json_t *element = json_array_get(array, i);
        if (!json_is_object(element))
            return khub__fail(r->source.err, KHUB_E_FORMAT, "%s: \"%s\"[%zu] is %s, an object is expected",
                              r->source.file, key, i, khub__json_type_name(element));
        rc = read(r, list + i * size, element);
    }
    *out = list;
    *count = list ? n : 0;
    return rc;
}

static int read_name(reader *r, const char **out, const json_t *object, const char *key, const char *inside)
{
    int rc = read_text(r, out, object, key);
    if (rc == KHUB_OK && !*out && !r->p->pool.failed)
        return khub__fail(r->source.err, KHUB_E_FORMAT, "%s: an entry of \"%s\" has no \"%s\"",
                          r->source.file, inside, key);
    return rc;
}

static int read_library(reader *r, void *to, const json_t *object)
{
    static const char *const known[] = {"name", "presence", "version", "path", "how", "reason", NULL};
    khub_library_info *library = to;
    warn_unknown(r, object, known, "libraries");
    int rc = read_name(r, &library->name, object, "name", "libraries");
    if (rc == KHUB_OK) rc = read_presence(r, &library->presence, object);
    if (rc == KHUB_OK) rc = read_text(r, &library->version, object, "version");
    if (rc == KHUB_OK) rc = read_text(r, &library->path, object, "path");
    if (rc == KHUB_OK) rc = read_text(r, &library->how, object, "how");
    if (rc == KHUB_OK) rc = read_text(r, &library->reason, object, "reason");
    return rc;
}

static int read_device(reader *r, void *to, const json_t *object)
{
    static const char *const known[] = {"name", "arch", "memory_bytes", "uuid", "integrated", NULL};
    khub_device_info *device = to;
    warn_unknown(r, object, known, "devices");
    int rc = read_text(r, &device->name, object, "name");
    if (rc == KHUB_OK) rc = read_text(r, &device->arch, object, "arch");
    if (rc == KHUB_OK) rc = read_count(r, &device->memory_bytes, object, "memory_bytes", INT64_MAX);
    if (rc == KHUB_OK) rc = read_text(r, &device->uuid, object, "uuid");
    if (rc == KHUB_OK) rc = khub__json_bool(&device->integrated, object, "integrated", &r->source);
    return rc;
}

static int read_accelerator(reader *r, void *to, const json_t *object)
{
    static const char *const known[] = {"backend", "presence", "version", "path", "reason", "devices", NULL};
    khub_accelerator_info *a = to;
    void *devices = NULL;
    khub__version version;
    warn_unknown(r, object, known, "accelerators");
    int rc = read_name(r, &a->backend, object, "backend", "accelerators");
    if (rc == KHUB_OK) rc = read_presence(r, &a->presence, object);
    if (rc == KHUB_OK) rc = read_version(r, &version, object, "version", 2);
    if (rc == KHUB_OK) rc = read_text(r, &a->version, object, "version");
    if (rc == KHUB_OK) rc = read_text(r, &a->path, object, "path");
    if (rc == KHUB_OK) rc = read_text(r, &a->reason, object, "reason");
    if (rc == KHUB_OK)
        rc = read_list(r, &devices, &a->device_count, object, "devices", sizeof(khub_device_info),
                       read_device);
    a->devices = devices;
    return rc;
}

/* Another name isn't wrong, but no build has it, which may not be what the writer meant. */
static void warn_unusual(const reader *r, const char *key, const char *value, const char *const *usual)
{
    char names[64] = "";
    for (size_t i = 0; value && usual[i]; i++) {
        if (!strcmp(value, usual[i])) return;
        snprintf(names + strlen(names), sizeof(names) - strlen(names), "%s%s", i ? ", " : "", usual[i]);
    }
    if (value)
        khub__log(KHUB_LOG_WARNING, "platform", r->source.file,
                  "\"%s\" is \"%s\": no build is named after it, but after %s", key, value, names);
}

static int read_system(reader *r, const json_t *root)
{
    static const char *const systems[] = {"linux", "darwin", "windows", NULL};
    static const char *const machines[] = {"x86_64", "aarch64", NULL};
    const char *arch = NULL;
    int rc = read_text(r, &r->p->os, root, "os");
    if (rc == KHUB_OK) rc = khub__json_string(&arch, root, "arch", &r->source);
    if (rc == KHUB_OK && arch && !*arch) return fail_field(r, "arch", arch, "a name, or null,");
    if (rc == KHUB_OK && arch)
        r->p->arch = khub__pool_text(&r->p->pool, khub__arch_normal(r->p->os ? r->p->os : "", arch));
    warn_unusual(r, "os", r->p->os, systems);
    warn_unusual(r, "arch", r->p->arch, machines);
    return rc;
}

static int name_backend(const reader *r, const khub__backend **out, khub__version *version, const char *key,
                        const char *text)
{
    *out = khub__backend_parse(version, text);
    if (!*out) *out = khub__backend_find(text);
    if (*out) return KHUB_OK;
    return fail_field(r, key, text, "\"cpu\", \"metal\", \"cu128\", \"rocm71\", \"xpu20253\" or the like");
}

static int read_torch(reader *r, const json_t *root)
{
    khub_platform *p = r->p;
    const char *text = NULL;
    int rc = read_version(r, &p->torch, root, "torch", 2);
    if (rc == KHUB_OK) rc = khub__json_bool(&p->torch_cxx11_abi, root, "torch_cxx11_abi", &r->source);
    if (rc == KHUB_OK) rc = khub__json_string(&text, root, "torch_backend", &r->source);
    if (rc != KHUB_OK || !text) return rc;
    return name_backend(r, &p->torch_backend, &p->torch_backend_version, "torch_backend", text);
}

/* "cu128", or "cuda" with "backend_version". */
static int read_backend(reader *r, const json_t *root)
{
    khub_platform *p = r->p;
    const char *text = NULL;
    khub__version apart = KHUB__VERSION_UNKNOWN;
    int rc = khub__json_string(&text, root, "backend", &r->source);
    if (rc == KHUB_OK) rc = read_version(r, &apart, root, "backend_version", 2);
    if (rc != KHUB_OK) return rc;
    if (!text && apart.major >= 0)
        return khub__fail(r->source.err, KHUB_E_FORMAT,
                          "%s: \"backend_version\" is given, but \"backend\" is unknown", r->source.file);
    if (!text) return KHUB_OK;
    rc = name_backend(r, &p->backend, &p->backend_version, "backend", text);
    if (rc != KHUB_OK) return rc;
    if (apart.major < 0) return KHUB_OK;
    khub__version named = p->backend_version;
    if (!p->backend->versioned || (named.major >= 0 && khub__version_compare(named, apart) != 0)) {
        char words[KHUB__VERSION_TEXT];
        return khub__fail(r->source.err, KHUB_E_FORMAT,
                          "%s: \"backend\" is %s, but \"backend_version\" is %s", r->source.file, text,
                          khub__version_text(apart, words));
    }
    p->backend_version = apart;
    return KHUB_OK;
}

/* The fields that decide which builds fit. */
static int read_deciding(reader *r, const json_t *root)
{
    khub_platform *p = r->p;
    int rc = read_system(r, root);
    if (rc == KHUB_OK) rc = read_backend(r, root);
    if (rc == KHUB_OK) rc = read_torch(r, root);
    if (rc == KHUB_OK) rc = read_version(r, &p->tvm_ffi, root, "tvm_ffi", 2);
    if (rc == KHUB_OK) rc = read_version(r, &p->macos, root, "macos", 1);
    p->macos = khub__macos_version(p->macos);
    if (rc == KHUB_OK) rc = read_texts(r, &p->archs, &p->arch_count, root, "archs");
    return rc;
}

static int read_caches(reader *r, const json_t *root)
{
    static const char *const known[] = {"l1d", "l2", "l3", NULL};
    const json_t *caches = NULL;
    int rc = khub__json_object(&caches, root, "caches", &r->source);
    if (rc != KHUB_OK || !caches) return rc;
    warn_unknown(r, caches, known, "caches");
    rc = read_count(r, &r->p->l1d_bytes, caches, "l1d", INT64_MAX);
    if (rc == KHUB_OK) rc = read_count(r, &r->p->l2_bytes, caches, "l2", INT64_MAX);
    if (rc == KHUB_OK) rc = read_count(r, &r->p->l3_bytes, caches, "l3", INT64_MAX);
    return rc;
}

static int read_machine(reader *r, const json_t *root)
{
    khub_platform *p = r->p;
    int rc = read_text(r, &p->about, root, "about");
    if (rc == KHUB_OK) rc = read_text(r, &p->cpu_model, root, "cpu_model");
    if (rc == KHUB_OK) rc = read_texts(r, &p->features, &p->feature_count, root, "cpu_features");
    if (rc == KHUB_OK) rc = read_unsigned(r, &p->cores, root, "cores");
    if (rc == KHUB_OK) rc = read_unsigned(r, &p->threads, root, "threads");
    if (rc == KHUB_OK) rc = read_text(r, &p->threads_reason, root, "threads_reason");
    if (rc == KHUB_OK) rc = read_caches(r, root);
    if (rc == KHUB_OK) rc = read_text(r, &p->glibc, root, "glibc");
    return rc;
}

static int read_found(reader *r, const json_t *root)
{
    khub_platform *p = r->p;
    void *libraries = NULL, *accelerators = NULL;
    int rc = read_list(r, &libraries, &p->library_count, root, "libraries", sizeof(khub_library_info),
                       read_library);
    if (rc == KHUB_OK)
        rc = read_list(r, &accelerators, &p->accelerator_count, root, "accelerators",
                       sizeof(khub_accelerator_info), read_accelerator);
    p->libraries = libraries;
    p->accelerators = accelerators;
    if (rc != KHUB_OK) p->library_count = p->accelerator_count = 0; /* half-read entries stay unseen */
    return rc;
}

static int read_all(reader *r, const json_t *root)
{
    static const char *const known[] = {"about",
                                        "os",
                                        "arch",
                                        "backend",
                                        "backend_version",
                                        "torch",
                                        "torch_cxx11_abi",
                                        "torch_backend",
                                        "tvm_ffi",
                                        "macos",
                                        "archs",
                                        "cpu_model",
                                        "cpu_features",
                                        "cores",
                                        "threads",
                                        "threads_reason",
                                        "caches",
                                        "glibc",
                                        "libraries",
                                        "accelerators",
                                        NULL};
    warn_unknown(r, root, known, "");
    int rc = read_deciding(r, root);
    if (rc == KHUB_OK) rc = read_machine(r, root);
    if (rc == KHUB_OK) rc = read_found(r, root);
    if (rc == KHUB_OK) rc = khub__platform_finish(r->p, r->source.err);
    if (rc == KHUB_OK) rc = khub__platform_check(r->p, r->source.file, r->source.err);
    return rc;
}

/* Takes over `root`. */
static int from_json(khub_platform **out, json_t *root, const char *name, khub_error *err)
{
    reader r = {.source = {name, err}};
    int rc = khub__platform_new(&r.p, err);
    if (rc == KHUB_OK) rc = read_all(&r, root);
    json_decref(root);
    if (rc != KHUB_OK) {
        khub_platform_free(r.p);
        r.p = NULL;
    }
    *out = r.p;
    return rc;
}

int khub_platform_parse(khub_platform **out, const char *json, size_t length, const char *name,
                        khub_error *err)
{
    json_t *root;
    int missing = khub__given("khub_platform_parse", out && json, err);
    if (out) *out = NULL;
    if (missing != KHUB_OK) return missing;
    if (!name) name = "platform";
    if (length > MAX_FILE_BYTES)
        return khub__fail(err, KHUB_E_FORMAT, "%s: is %zu bytes long, at most %d are read", name, length,
                          MAX_FILE_BYTES);
    int rc = khub__json_parse(&root, json, length, name, err);
    return rc == KHUB_OK ? from_json(out, root, name, err) : rc;
}

int khub_platform_read(khub_platform **out, const char *path, khub_error *err)
{
    json_t *root;
    int missing = khub__given("khub_platform_read", out && path, err);
    if (out) *out = NULL;
    if (missing != KHUB_OK) return missing;
    int rc = khub__json_read(&root, path, MAX_FILE_BYTES, err);
    return rc == KHUB_OK ? from_json(out, root, path, err) : rc;
}
