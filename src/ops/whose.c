#include "ops/whose.h"

#include "base/error.h"
#include "base/log.h"

#include <stddef.h>

khub__whose khub__whose_with(const char *name, const khub_get_options *get)
{
    int has = get && get->struct_size >= offsetof(khub_get_options, torch) + sizeof(get->torch);
    return (khub__whose){name, has ? get->torch : NULL};
}

static int of_khub(khub__standard *out, const char *layer, khub_error *err)
{
    out->axis_count = khub_standard_axes(layer, &out->axes);
    return khub_standard(&out->function, layer, err);
}

static int of_torch(khub__standard *out, const char *layer, const char *torch, khub_error *err)
{
    khub_error why = {0};
    int rc = khub__standard_torch(&out->function, layer, torch, &why);
    if (rc == KHUB_OK) return KHUB_OK;
    if (rc != KHUB_E_NOTFOUND) return khub__fail(err, rc, "%s", why.message);
    khub__log(KHUB_LOG_NOTICE, "standard", layer, "khub's own is used: %s", why.message);
    return of_khub(out, layer, err);
}

const char *khub__standard_whose(const char *whose, const char *layer)
{
    return whose && !strcmp(whose, "torch") && khub__torch_has_layer(layer) ? "torch" : "khub";
}

int khub__standard_of(khub__standard *out, khub__whose whose, const char *layer, khub_error *err)
{
    memset(out, 0, sizeof(*out));
    if (!whose.name || !strcmp(whose.name, "khub")) return of_khub(out, layer, err);
    if (!strcmp(whose.name, "torch")) return of_torch(out, layer, whose.torch, err);
    return khub__fail(err, KHUB_E_INVAL,
                      "standard: \"%s\" has no implementation of layers; khub and torch have", whose.name);
}
