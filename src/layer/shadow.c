/* Shadow mode: a slot runs its kernel and its standard function, keeps the standard result, and sums up what
 * the kernel's differed in. */
#include "layer/shadow.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"

#include <fenv.h>

enum { ALIGNMENT = 64 };
#define MAX_BYTES ((int64_t)1 << 46)

/* Where the kernel writes: a contiguous tensor like each output. */
typedef struct scratch {
    size_t count;
    int32_t arg[KHUB_SHADOW_OUTPUTS]; /* positions of the outputs */
    khub_tensor tensor[KHUB_SHADOW_OUTPUTS];
    void *memory;
} scratch;

/* Bytes of an output, up to where the next may start. */
static size_t room_for(const khub_tensor *output)
{
    return ((size_t)khub_tensor_bytes(output) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static int check_output(const khub_slot *slot, const char *name, const khub_tensor *output, khub_error *err)
{
    if (output->device.type != KHUB_DEVICE_CPU)
        return khub__fail(err, KHUB_E_UNSUPPORTED, "%s: \"%s\" isn't on the CPU, where shadow mode compares",
                          slot->path, name);
    if (khub_tensor_bytes(output) < 0 || khub_tensor_bytes(output) > MAX_BYTES)
        return khub__fail(err, KHUB_E_INVAL, "%s: the shape of \"%s\" makes no sense", slot->path, name);
    return KHUB_OK;
}

/* What the kernel leaves out of an output stays all ones, which is a NaN in every float. */
static int scratch_make(scratch *s, const khub_slot *slot, const khub_value *args, khub_error *err)
{
    size_t bytes = ALIGNMENT;
    s->count = 0;
    for (int32_t i = 0; i < slot->layer->arg_count; i++) {
        const khub_tensor *output = slot->layer->args[i].is_output ? khub_value_tensor(&args[i]) : NULL;
        if (!output) continue;
        int rc = check_output(slot, slot->layer->args[i].name, output, err);
        if (rc != KHUB_OK) return rc;
        s->arg[s->count] = i;
        s->tensor[s->count++] = *output;
        bytes += room_for(output);
    }
    s->memory = khub__malloc(bytes);
    if (!s->memory) return khub__fail_memory(err, "shadowing a slot");
    memset(s->memory, 0xff, bytes);
    char *at = (char *)(((uintptr_t)s->memory + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);
    for (size_t i = 0; i < s->count; i++) {
        size_t room = room_for(&s->tensor[i]);
        s->tensor[i].data = at;
        s->tensor[i].byte_offset = 0;
        s->tensor[i].strides = NULL;
        at += room;
    }
    return KHUB_OK;
}

/* The kernel goes first and writes elsewhere: an output may be an input's memory. However it leaves the
 * thread rounding, or treating subnormal numbers, the standard function computes as without it. */
static int run_kernel(const khub_slot *slot, const khub_filling *kernel, const khub_value *args, int32_t n,
                      const scratch *s, khub_error *why)
{
    khub_value own[KHUB__MAX_ARGS];
    memcpy(own, args, (size_t)n * sizeof(*own));
    for (size_t i = 0; i < s->count; i++)
        own[s->arg[i]] = khub_arg_tensor(&s->tensor[i]);
    khub_filling_prepare_args(kernel, own, n);
    fenv_t environment;
    fegetenv(&environment);
    int rc = khub_filling_call(slot, kernel, own, n, why);
    fesetenv(&environment);
    return rc;
}

static int compare(khub_shadow *of_call, const khub_slot *slot, const khub_value *args, const scratch *s,
                   khub_error *err)
{
    int rc = KHUB_OK;
    for (size_t i = 0; rc == KHUB_OK && i < s->count; i++) {
        size_t at = of_call->outputs++;
        of_call->output[at] = slot->layer->args[s->arg[i]].name;
        rc = khub_compare_tensors(&of_call->difference[at], &s->tensor[i],
                                  khub_value_tensor(&args[s->arg[i]]), err);
    }
    return rc;
}

static void lock(khub__shadow *shadow)
{
    while (atomic_flag_test_and_set_explicit(&shadow->taken, memory_order_acquire))
        ; /* held for as long as some hundred numbers are added */
}

static void unlock(khub__shadow *shadow)
{
    atomic_flag_clear_explicit(&shadow->taken, memory_order_release);
}

static khub_comparison *sum_of(khub_shadow *sum, const char *output)
{
    size_t i = 0;
    while (i < sum->outputs && sum->output[i] != output)
        i++;
    if (i == sum->outputs) sum->output[sum->outputs++] = output;
    return &sum->difference[i];
}

static int add(khub__shadow *shadow, const khub_shadow *of_call, const khub_error *why, khub_error *err)
{
    khub_shadow *sum = &shadow->sum;
    int rc = KHUB_OK;
    lock(shadow);
    sum->calls++;
    if (why->code != KHUB_OK && sum->failed++ == 0)
        khub__copy(sum->first_failure, sizeof(sum->first_failure), why->message);
    for (size_t i = 0; rc == KHUB_OK && i < of_call->outputs; i++)
        rc = khub_comparison_merge(sum_of(sum, of_call->output[i]), &of_call->difference[i], err);
    unlock(shadow);
    return rc;
}

static int run_both(const khub_slot *slot, const khub_filling *filling, const khub_value *args, int32_t n,
                    khub_error *err)
{
    const khub_filling *kernel = slot->kernel; /* the one now, or one that came meanwhile */
    khub_shadow of_call = {0};
    khub_error why = {0};
    scratch s;
    (void)filling;
    int rc = scratch_make(&s, slot, args, err);
    if (rc != KHUB_OK) return rc;
    int ran = kernel && run_kernel(slot, kernel, args, n, &s, &why) == KHUB_OK;
    rc = khub_filling_call(slot, &slot->standard, args, n, err);
    if (rc == KHUB_OK && ran) rc = compare(&of_call, slot, args, &s, err);
    if (rc == KHUB_OK && kernel) rc = add(slot->shadow, &of_call, &why, err);
    khub__free(s.memory);
    return rc;
}

static int make(khub_slot *slot, khub_error *err)
{
    slot->shadow = khub__calloc(1, sizeof(*slot->shadow));
    if (!slot->shadow) return khub__fail_memory(err, "shadowing a slot");
    khub_filling *filling = &slot->shadow->filling;
    filling->run = run_both;
    filling->in_order = 1;
    filling->prepared_arg = filling->returned_arg = -1;
    khub__filling_complete(filling, slot->layer);
    atomic_flag_clear(&slot->shadow->taken);
    return KHUB_OK;
}

int khub_layers_shadow(khub_layers *layers, const char *pattern, int on, khub_error *err)
{
    khub_slot **slots;
    size_t count;
    int rc = khub__given("khub_layers_shadow", layers != NULL, err);
    if (rc == KHUB_OK) rc = khub__layers_select(&slots, &count, layers, pattern, err);
    if (rc != KHUB_OK) return rc;
    for (size_t i = 0; on && rc == KHUB_OK && i < count; i++)
        if (!slots[i]->shadow) rc = make(slots[i], err);
    for (size_t i = 0; rc == KHUB_OK && i < count; i++) {
        if (!slots[i]->shadow) continue;
        slots[i]->shadow->on = on != 0;
        khub__slot_settle(slots[i]);
    }
    khub__free(slots);
    return rc;
}

int khub_slot_shadow(khub_shadow *out, const khub_slot *slot)
{
    memset(out, 0, sizeof(*out));
    if (!slot->shadow) return 0;
    lock(slot->shadow);
    *out = slot->shadow->sum;
    unlock(slot->shadow);
    return 1;
}
