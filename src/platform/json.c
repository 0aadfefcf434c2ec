/* A platform as JSON, laid out for people: short lists stay on one line. */
#include "platform/platform.h"

#include "base/json.h"
#include "base/text.h"

static void add_field(khub__text *to, const char *key, const char *text)
{
    khub__text_addf(to, "\"%s\": ", key);
    khub__json_add_string(to, text);
}

static void add_line(khub__text *to, const char *key, const char *text)
{
    khub__text_add(to, ",\n  ");
    add_field(to, key, text);
}

static void add_texts(khub__text *to, const char *key, const char *const *texts, size_t count)
{
    khub__text_addf(to, ",\n  \"%s\": [", key);
    for (size_t i = 0; i < count; i++) {
        if (i) khub__text_add(to, ", ");
        khub__json_add_string(to, texts[i]);
    }
    khub__text_add(to, "]");
}

static void add_number(khub__text *to, const char *before, const char *key, uint64_t n)
{
    khub__text_addf(to, n ? "%s\"%s\": %llu" : "%s\"%s\": null", before, key, (unsigned long long)n);
}

static void add_deciding(khub__text *to, const khub_platform *p)
{
    char version[KHUB__VERSION_TEXT];
    int versioned = p->backend && p->backend->versioned && p->backend_version.major >= 0;
    khub__text_add(to, "{\n  ");
    add_field(to, "os", p->os);
    add_line(to, "arch", p->arch);
    add_line(to, "backend", p->backend_text);
    add_line(to, "backend_version", versioned ? khub__version_text(p->backend_version, version) : NULL);
    add_line(to, "torch", p->torch_text);
    khub__text_addf(to, ",\n  \"torch_cxx11_abi\": %s",
                    p->torch_cxx11_abi < 0 ? "null"
                    : p->torch_cxx11_abi   ? "true"
                                           : "false");
    add_line(to, "torch_backend",
             p->torch_backend ? khub__backend_text(p->torch_backend, p->torch_backend_version, version)
                              : NULL);
    add_line(to, "tvm_ffi", p->tvm_ffi_text);
    add_line(to, "macos", p->macos_text);
    add_texts(to, "archs", p->archs, p->arch_count);
}

static void add_machine(khub__text *to, const khub_platform *p)
{
    add_line(to, "about", p->about);
    add_line(to, "cpu_model", p->cpu_model);
    add_texts(to, "cpu_features", p->features, p->feature_count);
    add_number(to, ",\n  ", "cores", p->cores);
    add_number(to, ",\n  ", "threads", p->threads);
    add_line(to, "threads_reason", p->threads_reason);
    add_number(to, ",\n  \"caches\": {", "l1d", p->l1d_bytes);
    add_number(to, ", ", "l2", p->l2_bytes);
    add_number(to, ", ", "l3", p->l3_bytes);
    khub__text_add(to, "}");
    add_line(to, "glibc", p->glibc);
}

/* The comma and the newline before an element of a list of objects. */
static void add_element(khub__text *to, size_t i, const char *indent)
{
    khub__text_addf(to, "%s\n%s{", i ? "," : "", indent);
}

static void add_more(khub__text *to, const char *key, const char *text)
{
    khub__text_add(to, ", ");
    add_field(to, key, text);
}

static void add_libraries(khub__text *to, const khub_platform *p)
{
    khub__text_add(to, ",\n  \"libraries\": [");
    for (size_t i = 0; i < p->library_count; i++) {
        const khub_library_info *library = &p->libraries[i];
        add_element(to, i, "    ");
        add_field(to, "name", library->name);
        add_more(to, "presence", khub__presence_name(library->presence));
        add_more(to, "version", library->version);
        add_more(to, "path", library->path);
        add_more(to, "how", library->how);
        add_more(to, "reason", library->reason);
        khub__text_add(to, "}");
    }
    khub__text_add(to, p->library_count ? "\n  ]" : "]");
}

static void add_devices(khub__text *to, const khub_accelerator_info *a)
{
    khub__text_add(to, ", \"devices\": [");
    for (size_t i = 0; i < a->device_count; i++) {
        add_element(to, i, "      ");
        add_field(to, "name", a->devices[i].name);
        add_more(to, "arch", a->devices[i].arch);
        add_number(to, ", ", "memory_bytes", a->devices[i].memory_bytes);
        add_more(to, "uuid", a->devices[i].uuid);
        khub__text_addf(to, ", \"integrated\": %s", a->devices[i].integrated ? "true" : "false");
        khub__text_add(to, "}");
    }
    khub__text_add(to, "]");
}

static void add_accelerators(khub__text *to, const khub_platform *p)
{
    khub__text_add(to, ",\n  \"accelerators\": [");
    for (size_t i = 0; i < p->accelerator_count; i++) {
        const khub_accelerator_info *a = &p->accelerators[i];
        add_element(to, i, "    ");
        add_field(to, "backend", a->backend);
        add_more(to, "presence", khub__presence_name(a->presence));
        add_more(to, "version", a->version);
        add_more(to, "path", a->path);
        add_more(to, "reason", a->reason);
        add_devices(to, a);
        khub__text_add(to, "}");
    }
    khub__text_add(to, p->accelerator_count ? "\n  ]" : "]");
}

char *khub_platform_json(const khub_platform *platform)
{
    khub__text text = {0};
    add_deciding(&text, platform);
    add_machine(&text, platform);
    add_libraries(&text, platform);
    add_accelerators(&text, platform);
    khub__text_add(&text, "\n}\n");
    return khub__text_take(&text);
}
