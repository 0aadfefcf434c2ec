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

static int judge(khub__torch_operator *op)
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

/* 1: a result may share an argument's memory. */
static int gives_tensors(const khub__schema *s)
{
    for (size_t i = 0; i < s->result_count; i++)
        if (s->results[i].type.kind == KHUB__SCHEMA_TENSOR) return 1;
    return 0;
}

static int is_written_tensor(const khub__schema_type *type)
{
    return type->kind == KHUB__SCHEMA_TENSOR && type->wrap_count == 0 && type->alias.at && type->writes;
}

/* 1 + the argument that a result is, as slot.back: "Tensor(a!)" of both. */
static int back_of(const khub__schema *s, const khub__schema_type *result)
{
    if (!is_written_tensor(result)) return 0;
    for (size_t i = 0; i < s->argument_count; i++) {
        const khub__schema_type *t = &s->arguments[i].type;
        if (is_written_tensor(t) && t->alias.length == result->alias.length &&
            memcmp(t->alias.at, result->alias.at, t->alias.length) == 0)
            return (int)i + 1;
    }
    return 0;
}

int khub__torch_prepare(khub__torch_operator *op)
{
    const khub__schema *s = &op->schema;
    int shares = gives_tensors(s);
    op->arguments = khub__calloc(s->argument_count + s->result_count + 1, sizeof(*op->arguments));
    if (!op->arguments) return -1;
    op->places = s->argument_count > s->result_count ? s->argument_count : s->result_count;
    op->results = op->arguments + s->argument_count;
    for (size_t i = 0; i < s->argument_count; i++)
        op->arguments[i] = khub__stack_slot_of(&s->arguments[i].type, shares);
    for (size_t i = 0; i < s->result_count; i++) {
        op->results[i] = khub__stack_slot_of(&s->results[i].type, 0);
        op->results[i].back = back_of(s, &s->results[i].type);
    }
    return judge(op);
}

KHUB__RARE static int raise_argument(const khub__torch_operator *op, size_t i, const char *words)
{
    const khub__schema_argument *a = &op->schema.arguments[i];
    return khub_raise("TypeError", "%s: argument %zu, \"%.*s\", %s (%s)", op->key, i + 1, (int)a->name.length,
                      a->name.at, words, op->text);
}

KHUB__RARE static int raise_result(const khub__torch_operator *op, size_t i, const char *words)
{
    return khub_raise("RuntimeError", "%s: result %zu %s (%s)", op->key, i + 1, words, op->text);
}

KHUB__RARE static int raise_failed(const khub__torch_operator *op)
{
    const char *what = khub__shim.what ? khub__shim.what() : NULL;
    int length = what ? (int)strnlen(what, 900) : 0;
    while (length > 0 && what[length - 1] == '\n')
        length--;
    if (length == 0) return khub_raise("RuntimeError", "%s: failed; libtorch says why on stderr", op->key);
    return khub_raise("RuntimeError", "%s: %.*s", op->key, length, what);
}

static void drop(const khub__stack_slot *slots, const uint64_t *stack, size_t count)
{
    for (size_t i = 0; i < count; i++)
        khub__stack_drop(&slots[i], stack[i]);
}

/* Argument `i` can't be passed; those before it are on the stack. */
KHUB__RARE static int give_up_arguments(const khub__torch_operator *op, const uint64_t *stack, size_t i,
                                        const char *words)
{
    drop(op->arguments, stack, i);
    return raise_argument(op, i, words);
}

static int put_arguments(const khub__torch_operator *op, uint64_t *stack, const khub_value *args, size_t n)
{
    const khub__stack_slot *slots = op->arguments;
    size_t i = 0;
    khub_error err;
    err.code = 0;
    err.message[0] = 0;
    for (; i < n; i++)
        if (slots[i].put(&stack[i], &slots[i], &args[i], &err) != KHUB_OK)
            return give_up_arguments(op, stack, i, err.message);
    for (; i < op->schema.argument_count; i++)
        if (khub__stack_put_default(&stack[i], &slots[i], &op->schema, &op->schema.arguments[i].value,
                                    &err) != KHUB_OK)
            return give_up_arguments(op, stack, i, err.message);
    return 0;
}

static int32_t dispatch(const khub__torch_operator *op, uint64_t *stack)
{
    return khub__shim.call_versioned
               ? khub__shim.call_versioned(op->name, op->overload, stack, khub__torch_version)
               : khub__shim.call(op->name, op->overload, stack);
}

/* Turns autograd off while it runs; *is_off 1: it stays off. */
KHUB__RARE static int32_t run_without_autograd(const khub__torch_operator *op, uint64_t *stack, int *is_off)
{
    bool grad = khub__shim.grad_is_enabled();
    if (grad) khub__shim.grad_set_enabled(false);
    *is_off = !khub__torch_is_shared();
    int32_t rc = dispatch(op, stack);
    if (grad && khub__torch_is_shared()) khub__shim.grad_set_enabled(true);
    return rc;
}

/* Autograd is this thread's own setting: the host's to have, where libtorch is his. */
static int32_t run(const khub__torch_operator *op, uint64_t *stack)
{
    static _Thread_local int is_off; /* for good: khub opened it, and nothing here turns it on */
    return is_off ? dispatch(op, stack) : run_without_autograd(op, stack, &is_off);
}

/* Result `i` couldn't be taken; those behind it are still on the stack. */
KHUB__RARE static int give_up_results(const khub__torch_operator *op, const uint64_t *stack, size_t i,
                                      const char *words)
{
    drop(&op->results[i + 1], &stack[i + 1], op->schema.result_count - i - 1);
    return raise_result(op, i, words);
}

/* `args`: of the call. One that a result is has no default, so it is there. */
static int take_result(const khub__torch_operator *op, khub_value *out, const uint64_t *stack, size_t i,
                       const khub_value *args)
{
    const khub__stack_slot *slot = &op->results[i];
    khub_error err;
    err.code = 0;
    err.message[0] = 0;
    const khub_tensor *argument = slot->back ? khub_value_tensor(&args[slot->back - 1]) : NULL;
    int rc = argument
                 ? khub__torch_tensor_give_back(out, (khub__aten_tensor *)(uintptr_t)stack[i], argument, &err)
                 : slot->take(out, slot, stack[i], &err);
    return rc == KHUB_OK ? 0 : give_up_results(op, stack, i, err.message);
}

KHUB__RARE static int take_several(const khub__torch_operator *op, khub_value *result, const uint64_t *stack,
                                   const khub_value *args)
{
    khub_value *items;
    void *array = khub__array_object(op->schema.result_count, &items);
    if (!array) {
        drop(op->results, stack, op->schema.result_count);
        return khub_raise("MemoryError", "%s: no memory for the results", op->key);
    }
    for (size_t i = 0; i < op->schema.result_count; i++) {
        if (take_result(op, &items[i], stack, i, args) == 0) continue;
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
    return op->schema.result_count == 1 ? take_result(op, result, stack, 0, args)
                                        : take_several(op, result, stack, args);
}

/* On memory of the heap, since there are many arguments. */
KHUB__RARE static int call_on_heap(const khub__torch_operator *op, const khub_value *args, size_t n,
                                   khub_value *result)
{
    uint64_t *stack = khub__malloc(op->places * sizeof(*stack));
    if (!stack) return khub_raise("MemoryError", "%s: no memory for %zu arguments", op->key, op->places);
    int rc = call_on(op, stack, args, n, result);
    khub__free(stack);
    return rc;
}

KHUB__RARE static int refuse_call(const khub__torch_operator *op, int32_t n)
{
    if (op->refusal)
        return khub_raise("TypeError", "%s: can't be called: %s (%s)", op->key, op->refusal, op->text);
    return khub_raise("TypeError", "%s: was given %d arguments, takes %zu (%s)", op->key, (int)n,
                      op->schema.argument_count, op->text);
}

int khub__torch_call(void *self, const khub_value *args, int32_t n, khub_value *result)
{
    const khub__torch_operator *op = self;
    uint64_t stack[ON_STACK];
    if (op->refusal || n < 0 || (size_t)n > op->schema.argument_count) return refuse_call(op, n);
    if (op->places > ON_STACK) return call_on_heap(op, args, (size_t)n, result);
    return call_on(op, stack, args, (size_t)n, result);
}
