#include "kernel/operators.h"

#include "base/error.h"
#include "base/memory.h"
#include "torch/call.h"
#include "torch/operators.h"

int khub__operators_check(const char *namespace, const char *path, khub_error *err)
{
    const khub__torch_operator **list;
    size_t count;
    int rc = khub__torch_operators(&list, &count, namespace, err);
    if (rc == KHUB_OK && count)
        rc = khub__fail(err, KHUB_E_LOAD,
                        "%s: would register its operators as %s::…, where this process has %s already", path,
                        namespace, khub__torch_operator_name(list[0]));
    khub__free(list);
    return rc;
}

/* "ID::silu(Tensor x) -> Tensor" is that of silu. */
static khub__library_function function_of(const khub__torch_operator *op, const char *namespace)
{
    const char *schema = khub__torch_operator_schema(op);
    size_t n = strlen(namespace);
    if (!strncmp(schema, namespace, n) && !strncmp(schema + n, "::", 2)) schema += n + 2;
    return (khub__library_function){.name = khub__torch_operator_name(op),
                                    .function = {khub__torch_call, (void *)(uintptr_t)op},
                                    .signature = schema,
                                    .refusal = khub__torch_operator_refusal(op)};
}

int khub__operators_read(khub__library_function **out, size_t *count, const char *namespace, const char *path,
                         khub_error *err)
{
    const khub__torch_operator **list;
    *out = NULL;
    int rc = khub__torch_operators(&list, count, namespace, err);
    if (rc == KHUB_OK && !*count)
        rc = khub__fail(err, KHUB_E_LOAD, "%s: registered no operator as %s::…, the \"id\" in metadata.json",
                        path, namespace);
    if (rc == KHUB_OK && !(*out = khub__calloc(*count, sizeof(**out))))
        rc = khub__fail_memory(err, "listing a library's operators");
    for (size_t i = 0; rc == KHUB_OK && i < *count; i++)
        (*out)[i] = function_of(list[i], namespace);
    khub__free(list);
    return rc;
}
