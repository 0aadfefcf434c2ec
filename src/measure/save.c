#include "measure/save.h"

#include "base/error.h"
#include "base/memory.h"
#include "measure/element.h"
#include "measure/reference.h"

#include <khub/npy.h>

#include <stdio.h>

/* Everything of one case, by position. */
typedef struct saved {
    const khub__case *c;
    khub_array files[KHUB__MAX_ARGS]; /* inputs, and exact outputs */
    khub_array numbers[KHUB__MAX_ARGS],
        scale[KHUB__MAX_ARGS]; /* inputs as doubles; what the reference says beside */
    char paths[KHUB__MAX_ARGS][4096];
} saved;

static int is_tensor(const saved *s, int32_t i)
{
    return !s->c->args[i].is_none && s->c->args[i].dtype.bits && !khub__arg_is_number(s->c->args[i].kind);
}

static int make(saved *s, int32_t i, const char *directory, khub_error *err)
{
    static const khub_dtype float64 = {KHUB_DTYPE_FLOAT, 64, 1};
    const khub__case_arg *a = &s->c->args[i];
    int n = snprintf(s->paths[i], sizeof(s->paths[i]), "%s/%s.%s%s.npy", directory, s->c->layer->name,
                     s->c->layer->args[i].name, a->is_output ? ".exact" : "");
    if (n >= (int)sizeof(s->paths[i]))
        return khub__fail(err, KHUB_E_INVAL, "%s: the path is too long", directory);
    int rc = khub_array_new(&s->files[i], a->is_output ? float64 : a->dtype, a->ndim, a->shape, err);
    if (rc == KHUB_OK)
        rc = khub_array_new(a->is_output ? &s->scale[i] : &s->numbers[i], float64, a->ndim, a->shape, err);
    if (rc != KHUB_OK || a->is_output) return rc;
    khub__case_fill(s->c, i, s->files[i].tensor.data);
    for (int64_t k = 0; k < khub_tensor_count(&s->files[i].tensor); k++)
        ((double *)s->numbers[i].tensor.data)[k] = khub__element_get(a->dtype, s->files[i].tensor.data, k);
    return KHUB_OK;
}

static int make_all(saved *s, const char *directory, khub_error *err)
{
    khub__exact e = {0};
    int rc = KHUB_OK;
    for (int32_t i = 0; i < s->c->layer->arg_count && rc == KHUB_OK; i++) {
        if (!is_tensor(s, i)) continue;
        rc = make(s, i, directory, err);
        e.in[i] = s->numbers[i].tensor.data;
        e.out[i] = s->c->args[i].is_output ? s->files[i].tensor.data : NULL;
        e.scale[i] = s->scale[i].tensor.data;
    }
    if (rc == KHUB_OK) khub__reference(s->c, &e);
    return rc;
}

int khub__save_case(const char *directory, const khub__case *c, khub_error *err)
{
    const char *paths[KHUB__MAX_ARGS];
    const khub_tensor *tensors[KHUB__MAX_ARGS];
    size_t count = 0;
    saved *s = khub__calloc(1, sizeof(*s));
    if (!s) return khub__fail_memory(err, "saving a case");
    s->c = c;
    int rc = make_all(s, directory, err);
    for (int32_t i = 0; i < c->layer->arg_count; i++) {
        if (!is_tensor(s, i)) continue;
        paths[count] = s->paths[i];
        tensors[count++] = &s->files[i].tensor;
    }
    if (rc == KHUB_OK) rc = khub_npy_write_all(paths, tensors, count, err);
    for (int32_t i = 0; i < c->layer->arg_count; i++) {
        khub_array_free(&s->files[i]);
        khub_array_free(&s->numbers[i]);
        khub_array_free(&s->scale[i]);
    }
    khub__free(s);
    return rc;
}
