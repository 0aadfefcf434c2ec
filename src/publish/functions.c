/* What a library exports: functions for tvm-ffi, a module for Python. */
#include "publish/rules.h"

static const char prefix[] = "__tvm_ffi_";
enum { PREFIX = sizeof(prefix) - 1 };

/* The name behind the prefix of an exported function; NULL for all else. */
static const char *function_of(const khub__object_symbol *s)
{
    static const char *const others[] = {"_metadata_", "_doc_", "_library_"};
    const char *name = s->name + PREFIX;
    if (s->undefined || strncmp(s->name, prefix, PREFIX) != 0 || !*name) return NULL;
    for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
        if (!strncmp(name, others[i], strlen(others[i]))) return NULL;
    return name;
}

int khub__exports_function(const khub__object *object, const char *name)
{
    for (size_t i = 0; i < object->symbol_count; i++) {
        const char *function = function_of(&object->symbols[i]);
        if (function && !strcmp(function, name)) return 1;
    }
    return 0;
}

static void judge_symbol(const khub__case *it, const khub__object_symbol *s, const char *id)
{
    static const char init[] = "PyInit_", module[] = "__tvm_ffi__library_";
    if (s->undefined) return;
    if (!strncmp(s->name, module, sizeof(module) - 1))
        khub__finding(it->report, "functions", KHUB_CHECK_LEVEL_WARNING, s->name, NULL,
                      "is a compiled tvm-ffi module (it exports %s), which Python can load and khub can't",
                      s->name);
    if (!strncmp(s->name, init, sizeof(init) - 1) && strcmp(s->name + sizeof(init) - 1, id) != 0)
        khub__finding(it->report, "id", KHUB_CHECK_LEVEL_ERROR, s->name, NULL,
                      "exports %s, the id says PyInit_%s: Python doesn't find the module", s->name, id);
}

void khub__check_functions(const khub__case *it, const char *id)
{
    khub__names functions = {0};
    for (size_t i = 0; i < it->object->symbol_count; i++) {
        const char *name = function_of(&it->object->symbols[i]);
        if (name) khub__names_add(&functions, name);
        judge_symbol(it, &it->object->symbols[i], id);
    }
    khub__names_sort(&functions);
    khub__finding_of(it->report, "functions", KHUB_CHECK_LEVEL_NOTE, NULL, &functions, "exports");
    if (!functions.count && it->variant && it->variant->framework == KHUB__TVM_FFI)
        khub__finding(it->report, "functions", KHUB_CHECK_LEVEL_ERROR, NULL, NULL,
                      "exports no function (__tvm_ffi_NAME), so that nothing of it can be called");
    khub__names_free(&functions);
}
