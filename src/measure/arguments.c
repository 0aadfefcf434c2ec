#include "measure/arguments.h"

static int is_tensor(const khub__case_arg *arg)
{
    return !arg->is_none && !khub__arg_is_number(arg->kind);
}

/* What the function is given of a buffer. */
static int give(khub__arguments *out, int32_t i, khub_error *err)
{
    khub__guarded *g = &out->buffers[i];
    int rc = out->gpu ? khub__mirror_new(&out->mirrors[i], out->gpu, g, err) : KHUB_OK;
    out->values[i] = khub_arg_tensor(out->gpu ? &out->mirrors[i].tensor : &g->tensor);
    return rc;
}

static int place(khub__arguments *out, int32_t i, const void *in, khub__placement placement, khub_error *err)
{
    const khub__case_arg *arg = &out->c->args[i];
    khub__guarded *g = &out->buffers[i];
    int rc = khub__guarded_new(g, arg->dtype, arg->ndim, arg->shape, placement, arg->is_output, err);
    if (rc == KHUB_OK && !arg->is_output) khub__guarded_put(g, in);
    return rc == KHUB_OK ? give(out, i, err) : rc;
}

int khub__arguments_new(khub__arguments *out, const khub__case *c, void *const *in, khub__placement placement,
                        khub_gpu *gpu, khub_error *err)
{
    int rc = KHUB_OK;
    memset(out, 0, sizeof(*out));
    out->c = c;
    out->gpu = gpu;
    out->prepared = -1;
    for (int32_t i = 0; i < c->layer->arg_count && rc == KHUB_OK; i++) {
        const khub__case_arg *arg = &c->args[i];
        if (is_tensor(arg))
            rc = place(out, i, in[i], placement, err);
        else if (arg->kind == KHUB__ARG_FLOAT)
            out->values[i] = khub_arg_float(arg->number);
        else if (arg->kind == KHUB__ARG_BOOL)
            out->values[i] = khub_arg_bool(arg->number != 0);
        else if (!arg->is_none) /* a count */
            out->values[i] = khub_arg_int((int64_t)arg->number);
    }
    return rc;
}

void khub__arguments_free(khub__arguments *arguments)
{
    for (int32_t i = 0; i < KHUB__MAX_ARGS; i++) {
        khub__mirror_free(&arguments->mirrors[i]);
        khub__guarded_free(&arguments->buffers[i]);
    }
}

int khub__arguments_prepare(khub__arguments *arguments, int32_t at, const khub_tensor *prepared,
                            khub__placement placement, khub_error *err)
{
    khub__guarded *g = &arguments->buffers[at];
    int aligned = placement == KHUB__MIDDLE || placement == KHUB__AT_START;
    khub__mirror_free(&arguments->mirrors[at]);
    khub__guarded_free(g);
    int rc = khub__guarded_new(g, prepared->dtype, prepared->ndim, prepared->shape,
                               aligned ? placement : KHUB__ALIGNED, 0, err);
    if (rc == KHUB_OK && prepared->data) khub__guarded_put(g, prepared->data);
    g->tensor.strides = NULL; /* as a slot has it */
    arguments->prepared = at;
    return rc == KHUB_OK ? give(arguments, at, err) : rc;
}

int khub__arguments_put(khub__arguments *arguments, khub_error *err)
{
    int rc = KHUB_OK;
    for (int32_t i = 0; i < KHUB__MAX_ARGS && rc == KHUB_OK; i++)
        if (arguments->mirrors[i].memory.gpu)
            rc = khub__mirror_put(&arguments->mirrors[i], &arguments->buffers[i], err);
    return rc;
}

int khub__arguments_take(khub__arguments *arguments, khub_error *err)
{
    int rc = KHUB_OK;
    for (int32_t i = 0; i < KHUB__MAX_ARGS && rc == KHUB_OK; i++)
        if (arguments->mirrors[i].memory.gpu)
            rc = khub__mirror_take(&arguments->mirrors[i], &arguments->buffers[i], err);
    return rc == KHUB_OK && arguments->gpu ? khub_gpu_synchronize(arguments->gpu, err) : rc;
}

void khub__arguments_freeze(khub__arguments *arguments)
{
    for (int32_t i = 0; i < arguments->c->layer->arg_count; i++)
        if (!arguments->c->args[i].is_output) khub__guarded_freeze(&arguments->buffers[i]);
}

int khub__arguments_are_intact(const khub__arguments *arguments, int32_t *at, int64_t *offset)
{
    for (*at = 0; *at < arguments->c->layer->arg_count; ++*at)
        if (!khub__guarded_is_intact(&arguments->buffers[*at], offset)) return 0;
    return 1;
}

int khub__arguments_are_unchanged(const khub__arguments *arguments, void *const *in,
                                  const khub_tensor *prepared, void *scratch, int32_t *at, int64_t *index)
{
    for (*at = 0; *at < arguments->c->layer->arg_count; ++*at) {
        const khub__guarded *g = &arguments->buffers[*at];
        const unsigned char *now = scratch, *before = in[*at];
        if (*at == arguments->prepared) before = prepared ? prepared->data : NULL;
        size_t bytes = (size_t)g->rows * g->width;
        if (arguments->c->args[*at].is_output || !before || !bytes) continue;
        khub__guarded_get(g, scratch);
        if (memcmp(now, before, bytes) == 0) continue;
        size_t i = 0;
        while (now[i] == before[i])
            i++;
        *index = (int64_t)i / (g->tensor.dtype.bits / 8);
        return 0;
    }
    return 1;
}
