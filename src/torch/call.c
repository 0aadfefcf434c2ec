#include "torch/call.h"

#include "base/error.h"
#include "base/memory.h"
#include "tensor/object.h"
#include "torch/operator.h"
#include "torch/shim.h"
#include "torch/stack.h"
#include "torch/tensor.h"
#include "torch/torch.h"

#include <stdatomic.h>

enum { ON_STACK = 16 };

/* Only what the types say: what is asked of each value is torch/stack.c's. */
static const char *refused_type(const khub__schema_type *type, int is_result)
{
    int is_known = type->kind != KHUB__SCHEMA_OTHER && type->kind != KHUB__SCHEMA_GENERATOR;
    int is_optional = type->wrap_count && !type->wraps[type->wrap_count - 1].is_list;
    if (is_known || (is_optional && !is_result)) return NULL; /* None can be passed */
    return is_result ? "gives" : "takes";
}

static int refuse(khub__torch_operator *op, const char *verb, const khub__schema_argument *a)
{
    khub__text text = {0};
    khub__text_addf(&text, "it %s ", verb);
    khub__schema_write_type(&text, &a->type);
    if (a->name.length) khub__text_addf(&text, " (\"%.*s\")", (int)a->name.length, a->name.at);
    khub__text_add(&text, ", which libtorch's C interface can't pass");
    op->refusal = khub__text_take(&text);
    return op->refusal ? 0 : -1;
}

static int same_type(const khub__schema_type *a, const khub__schema_type *b)
{
    if (a->kind != b->kind || a->wrap_count != b->wrap_count) return 0;
    for (int i = 0; i < a->wrap_count; i++)
        if (a->wraps[i].is_list != b->wraps[i].is_list) return 0;
    return 1;
}

/* 1: the first result is of the type of the last one, and so on. */
static int is_mirrored(const khub__schema *s)
{
    for (size_t i = 0; i < s->result_count / 2; i++)
        if (!same_type(&s->results[i].type, &s->results[s->result_count - 1 - i].type)) return 0;
    return 1;
}

/* libtorch (2.7 to 2.15 at least) takes the last result for one of the first one's type, and so on: a call
 * with results of several types does its work and then fails. Asked of an operator that gives a float and an
 * int; where libtorch would write its refusal to stderr it isn't asked. */
static int asks_mixed_results(void)
{
    float x = 0;
    int64_t one = 1;
    khub_tensor t = khub_tensor_f32(&x, 1, &one);
    khub__aten_tensor *handle;
    if (!khub__shim.what || khub__torch_tensor_wrap(&handle, &t, NULL, NULL) != KHUB_OK) return 0;
    uint64_t stack[2] = {(uint64_t)(uintptr_t)handle, 0};
    return khub__shim.call("aten::_choose_qparams_per_tensor", "", stack) == 0;
}

static int gives_mixed_results(void)
{
    static atomic_int known; /* 1: no, 2: yes */
    int is = atomic_load(&known);
    if (!is) atomic_store(&known, is = 1 + asks_mixed_results());
    return is == 2;
}

static int refuse_in(khub__torch_operator *op, const char *words)
{
    op->refusal = khub__strdup(words);
    return op->refusal ? 0 : -1;
}

int khub__torch_judge(khub__torch_operator *op)
{
    const khub__schema *s = &op->schema;
    const char *verb;
    for (size_t i = 0; i < s->argument_count; i++)
        if ((verb = refused_type(&s->arguments[i].type, 0))) return refuse(op, verb, &s->arguments[i]);
    for (size_t i = 0; i < s->result_count; i++)
        if ((verb = refused_type(&s->results[i].type, 1))) return refuse(op, verb, &s->results[i]);
    if (s->more_arguments || s->more_results)
        return refuse_in(op,
                         "it takes or gives any number of values, which libtorch's C interface can't pass");
    if (!is_mirrored(s) && !gives_mixed_results())
        return refuse_in(op, "its results are of several types, which libtorch's C interface mixes up");
    return 0;
}

static int raise_argument(const khub__torch_operator *op, size_t i, const char *words)
{
    const khub__schema_argument *a = &op->schema.arguments[i];
    return khub_raise("TypeError", "%s: argument %zu, \"%.*s\", %s (%s)", op->key, i + 1, (int)a->name.length,
                      a->name.at, words, op->text);
}

static int raise_result(const khub__torch_operator *op, size_t i, const char *words)
{
    return khub_raise("RuntimeError", "%s: result %zu %s (%s)", op->key, i + 1, words, op->text);
}

static int raise_failed(const khub__torch_operator *op)
{
    const char *what = khub__shim.what ? khub__shim.what() : NULL;
    int length = what ? (int)strnlen(what, 900) : 0;
    while (length > 0 && what[length - 1] == '\n')
        length--;
    if (length == 0) return khub_raise("RuntimeError", "%s: failed; libtorch says why on stderr", op->key);
    return khub_raise("RuntimeError", "%s: %.*s", op->key, length, what);
}

static void drop_arguments(const khub__schema *s, const uint64_t *stack, size_t count)
{
    for (size_t i = 0; i < count; i++)
        khub__stack_drop(&s->arguments[i].type, stack[i]);
}

static int put_arguments(const khub__torch_operator *op, uint64_t *stack, const khub_value *args, size_t n)
{
    const khub__schema *s = &op->schema;
    khub_error err;
    err.code = 0;
    err.message[0] = 0;
    for (size_t i = 0; i < s->argument_count; i++) {
        const khub__schema_argument *a = &s->arguments[i];
        int rc = i < n ? khub__stack_put(&stack[i], &a->type, &args[i], op->gives_tensors, &err)
                       : khub__stack_put_default(&stack[i], s, a, &err);
        if (rc == KHUB_OK) continue;
        drop_arguments(s, stack, i);
        return raise_argument(op, i, err.message);
    }
    return 0;
}

/* Runs it without autograd, which is this thread's own setting: the host's to have, where libtorch is his. */
static int32_t run(const khub__torch_operator *op, uint64_t *stack)
{
    static _Thread_local int is_off; /* for good: khub opened it, and nothing here turns it on */
    bool grad = !is_off && khub__shim.grad_is_enabled();
    if (grad) khub__shim.grad_set_enabled(false);
    int32_t rc = khub__shim.call_versioned
                     ? khub__shim.call_versioned(op->name, op->overload, stack, khub__torch_version)
                     : khub__shim.call(op->name, op->overload, stack);
    is_off = !khub__torch_is_shared();
    if (grad && !is_off) khub__shim.grad_set_enabled(true);
    return rc;
}

/* All results from `first` on are taken from the stack, whatever happens. */
static int take_results(const khub__torch_operator *op, khub_value *out, const uint64_t *stack)
{
    const khub__schema *s = &op->schema;
    khub_error err;
    err.code = 0;
    err.message[0] = 0;
    size_t i = 0;
    int rc = KHUB_OK;
    for (; rc == KHUB_OK && i < s->result_count; i++)
        rc = khub__stack_take(&out[i], &s->results[i].type, stack[i], &err);
    if (rc == KHUB_OK) return 0;
    for (size_t k = i; k < s->result_count; k++)
        khub__stack_drop(&s->results[k].type, stack[k]);
    return raise_result(op, i - 1, err.message);
}

static int take_several(const khub__torch_operator *op, khub_value *result, const uint64_t *stack)
{
    khub_value *items;
    void *array = khub__array_object(op->schema.result_count, &items);
    if (!array) {
        for (size_t i = 0; i < op->schema.result_count; i++)
            khub__stack_drop(&op->schema.results[i].type, stack[i]);
        return khub_raise("MemoryError", "%s: no memory for the results", op->key);
    }
    if (take_results(op, items, stack) != 0) {
        khub__object_release(array);
        return -1;
    }
    result->type = KHUB_TYPE_ARRAY;
    result->as.ptr = array;
    return 0;
}

static int call_on(const khub__torch_operator *op, uint64_t *stack, const khub_value *args, size_t n,
                   khub_value *result)
{
    if (put_arguments(op, stack, args, n) != 0) return -1;
    if (run(op, stack) != 0) return raise_failed(op);
    if (op->schema.result_count == 0) return 0;
    return op->schema.result_count == 1 ? take_results(op, result, stack) : take_several(op, result, stack);
}

int khub__torch_call(void *self, const khub_value *args, int32_t n, khub_value *result)
{
    const khub__torch_operator *op = self;
    const khub__schema *s = &op->schema;
    uint64_t own[ON_STACK], *stack = own;
    if (op->refusal)
        return khub_raise("TypeError", "%s: can't be called: %s (%s)", op->key, op->refusal, op->text);
    if (n < 0 || (size_t)n > s->argument_count)
        return khub_raise("TypeError", "%s: was given %d arguments, takes %zu (%s)", op->key, (int)n,
                          s->argument_count, op->text);
    size_t room = s->argument_count > s->result_count ? s->argument_count : s->result_count;
    if (room > ON_STACK) stack = khub__malloc(room * sizeof(*stack));
    if (!stack) return khub_raise("MemoryError", "%s: no memory for %zu arguments", op->key, room);
    int rc = call_on(op, stack, args, (size_t)n, result);
    if (stack != own) khub__free(stack);
    return rc;
}
