/* What is in a slot is swapped while other threads call it: each call ends with the function and the memory
 * it began with, and what was replaced is freed once no call can be in it. Run under the thread sanitizer,
 * too. */
#include "unit.h"

#include "mappings.h"
#include "fakes.h"

#include "base/memory.h"
#include "base/readers.h"
#include "layer/recipe.h"

#include <khub/khub.h>

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static const khub_dtype f32 = {KHUB_DTYPE_FLOAT, 32, 1};
static const khub_slot_options of_f32 = {sizeof(of_f32), {KHUB_DTYPE_FLOAT, 32, 1}, NULL, NULL, 0};
enum { WEIGHTS = 64, CALLERS = 3 };

static atomic_int standard_calls, kernel_calls, torn;

static int standard(void *self, const khub_value *args, int32_t n, khub_value *result)
{
    (void)self, (void)args, (void)n, (void)result;
    atomic_fetch_add(&standard_calls, 1);
    return 0;
}

/* A kernel whose prepared weight holds one number all over. */
static int kernel(void *self, const khub_value *args, int32_t n, khub_value *result)
{
    (void)self, (void)result;
    const khub_tensor *weight = khub_value_tensor(&args[2]);
    const float *w = weight && n == 4 ? weight->data : NULL;
    for (int i = 0; w && i < WEIGHTS; i++)
        if (w[i] != w[0]) w = NULL;
    atomic_fetch_add(w ? &kernel_calls : &torn, 1);
    return 0;
}

/* One that stays in its call until it may go. */
static atomic_int is_inside, may_go;
static int waiting(void *self, const khub_value *args, int32_t n, khub_value *result)
{
    atomic_store(&is_inside, 1);
    while (!atomic_load(&may_go))
        usleep(100);
    return kernel(self, args, n, result);
}

static khub_filling *filling_of(khub_call_fn call, float number)
{
    khub_error err = {0};
    const int64_t shape[1] = {WEIGHTS};
    khub_filling *f = khub__calloc(1, sizeof(*f));
    f->function.call = call;
    f->in_order = 1;
    f->uses = 1;
    f->prepared_arg = 2;
    f->returned_arg = -1;
    f->kernel = "a/kernel";
    ck_khub_ok(khub_array_new(&f->prepared.array, f32, 1, shape, &err), &err);
    for (int i = 0; i < WEIGHTS; i++)
        ((float *)f->prepared.array.tensor.data)[i] = number;
    khub__filling_complete(f, khub__layer_find("RMSNorm"));
    return f;
}

static khub_layers *one_slot(khub_slot **slot)
{
    khub_error err = {0};
    khub_layers *layers;
    ck_khub_ok(khub_layers_new(&layers, &err), &err);
    ck_khub_ok(khub_layers_add(layers, "a", "RMSNorm", (khub_function){standard, NULL}, &of_f32, slot, &err),
               &err);
    return layers;
}

static void fill(khub_layers *layers, khub_slot *slot, khub_filling *filling)
{
    khub__slot_fill(layers, slot, filling);
    khub__layers_settle(layers);
}

static int call(const khub_slot *slot)
{
    const khub_value args[4] = {khub_arg_none(), khub_arg_none(), khub_arg_none(), khub_arg_float(1e-5)};
    return khub_slot_call(slot, args, 4, NULL);
}

static size_t replaced(const khub_layers *layers)
{
    size_t count = 0;
    for (const khub_filling *f = layers->replaced; f; f = f->after)
        count++;
    return count;
}

static atomic_int stop;

static void *call_on(void *slot)
{
    while (!atomic_load(&stop))
        if (call(slot) != KHUB_OK) atomic_fetch_add(&torn, 1);
    return NULL;
}

/* As a pool does: several calls of one filling, inside once. */
static void *call_inside(void *user)
{
    const khub_slot *slot = user;
    while (!atomic_load(&stop)) {
        khub_value args[4] = {khub_arg_none(), khub_arg_none(), khub_arg_none(), khub_arg_float(1e-5)};
        khub_layers_enter();
        const khub_filling *filling = khub_slot_filling(slot);
        khub_filling_prepare_args(filling, args, 4);
        for (int i = 0; i < 3; i++)
            if (khub_filling_call(slot, filling, args, 4, NULL) != KHUB_OK || call(slot) != KHUB_OK)
                atomic_fetch_add(&torn, 1);
        khub_layers_leave();
    }
    return NULL;
}

START_TEST(under_load)
{
    khub_slot *slot;
    khub_layers *layers = one_slot(&slot);
    pthread_t threads[CALLERS];
    size_t most = 0;
    for (int i = 0; i < CALLERS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, i ? call_on : call_inside, slot), 0);
    for (int i = 0; i < 300 || atomic_load(&kernel_calls) < 300 || atomic_load(&standard_calls) < 300; i++) {
        fill(layers, slot, filling_of(kernel, (float)i));
        if (i % 7 == 0) khub_standardize(layers);
        if (i % 16 == 0) usleep(200);
        if (replaced(layers) > most) most = replaced(layers);
    }
    atomic_store(&stop, 1);
    for (int i = 0; i < CALLERS; i++)
        pthread_join(threads[i], NULL);
    ck_assert_int_eq(atomic_load(&torn), 0);
    ck_assert_uint_lt(most, 300); /* they don't pile up */
    khub_standardize(layers);
    ck_assert_uint_eq(replaced(layers), 0);
    khub_layers_free(layers);
}
END_TEST

static void *call_once(void *slot)
{
    call(slot);
    return NULL;
}

static void one_inside(khub_slot *slot, pthread_t *thread)
{
    atomic_store(&is_inside, 0);
    atomic_store(&may_go, 0);
    ck_assert_int_eq(pthread_create(thread, NULL, call_once, slot), 0);
    while (!atomic_load(&is_inside))
        usleep(100);
}

START_TEST(a_call_keeps_what_it_began_with)
{
    khub_slot *slot;
    khub_layers *layers = one_slot(&slot);
    pthread_t thread;
    khub_filling *f = filling_of(waiting, 7);
    fill(layers, slot, f);
    one_inside(slot, &thread);
    khub_standardize(layers);
    fill(layers, slot, filling_of(kernel, 8)); /* everything goes on */
    ck_assert_int_eq(call(slot), KHUB_OK);
    khub_standardize(layers);
    ck_assert_ptr_eq(layers->replaced->after, f); /* what came later waits with it */
    ck_assert_float_eq(((float *)f->prepared.array.tensor.data)[WEIGHTS - 1], 7);
    atomic_store(&may_go, 1);
    pthread_join(thread, NULL);
    ck_assert_int_eq(atomic_load(&kernel_calls), 2);
    ck_assert_int_eq(atomic_load(&torn), 0);
    khub_standardize(layers);
    ck_assert_uint_eq(replaced(layers), 0);
    khub_layers_free(layers);
}
END_TEST

START_TEST(inside_is_inside_until_the_last_leaving)
{
    khub_slot *slot;
    khub_layers *layers = one_slot(&slot);
    fill(layers, slot, filling_of(kernel, 1));
    khub_layers_enter();
    khub_layers_enter();
    const khub_filling *filling = khub_slot_filling(slot);
    khub_standardize(layers);
    ck_assert_int_eq(call(slot), KHUB_OK);
    khub_layers_leave();
    khub_standardize(layers);
    ck_assert_ptr_eq(layers->replaced, filling);
    khub_layers_leave();
    khub_standardize(layers);
    ck_assert_uint_eq(replaced(layers), 0);
    ck_assert_int_eq(atomic_load(&standard_calls), 1);
    khub_layers_free(layers);
}
END_TEST

/* A kernel that enters, leaves and swaps by itself, within a call of the slot. */
static khub_layers *its_layers;
static int swapping(void *self, const khub_value *args, int32_t n, khub_value *result)
{
    khub_layers_enter();
    khub_standardize(its_layers);
    khub_layers_leave();
    khub_standardize(its_layers);
    return kernel(self, args, n, result);
}

START_TEST(a_call_may_swap_what_it_is_in)
{
    khub_slot *slot;
    its_layers = one_slot(&slot);
    fill(its_layers, slot, filling_of(swapping, 1));
    ck_assert_int_eq(call(slot), KHUB_OK);
    ck_assert_int_eq(atomic_load(&kernel_calls), 1);
    ck_assert_uint_eq(replaced(its_layers), 1);
    khub_standardize(its_layers);
    ck_assert_uint_eq(replaced(its_layers), 0);
    khub_layers_free(its_layers);
}
END_TEST

/* Threads that ended hold nothing, and neither do those that a child process doesn't have. */
START_TEST(threads_that_are_no_more)
{
    khub_slot *slot;
    khub_layers *layers = one_slot(&slot);
    pthread_t thread;
    for (int i = 0; i < 20; i++) {
        fill(layers, slot, filling_of(kernel, (float)i));
        ck_assert_int_eq(pthread_create(&thread, NULL, call_once, slot), 0);
        pthread_join(thread, NULL);
        khub_standardize(layers);
        ck_assert_uint_eq(replaced(layers), 0);
    }
    fill(layers, slot, filling_of(waiting, 7));
    one_inside(slot, &thread);
    khub_standardize(layers);
    ck_assert_uint_eq(replaced(layers), 1);
    pid_t child = fork();
    if (child == 0) {
        fill(layers, slot, filling_of(kernel, 1));
        int rc = call(slot);
        khub_standardize(layers);
        _exit(rc == KHUB_OK && replaced(layers) == 0 ? 0 : 1);
    }
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    atomic_store(&may_go, 1);
    pthread_join(thread, NULL);
    khub_layers_free(layers);
}
END_TEST

/* From here on the system calls of this process know no membarrier. */
static int forbid_membarrier(void)
{
    struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_membarrier, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | 38 /* ENOSYS */),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof(rules) / sizeof(*rules), rules};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0;
}

START_TEST(where_nobody_can_know)
{
    khub_slot *slot;
    khub_layers *layers = one_slot(&slot);
    ck_assert(forbid_membarrier());
    for (int i = 1; i <= 3; i++) {
        fill(layers, slot, filling_of(kernel, 1));
        ck_assert_int_eq(call(slot), KHUB_OK);
        khub_standardize(layers);
        ck_assert_uint_eq(replaced(layers), (size_t)i);
    }
    ck_assert_int_eq(atomic_load(&kernel_calls), 3);
    khub_layers_free(layers);
}
END_TEST

/* kernelize and khub_standardize themselves, with a kernel of a repository. */
START_TEST(kernelize_under_load)
{
    khub_error err = {0};
    khub_layers *layers;
    khub_slot *slot;
    khub_kernelize_options options;
    char mapping[4300];
    pthread_t threads[CALLERS];
    KHUB_INIT(&options);
    snprintf(mapping, sizeof(mapping), "{\"RMSNorm\":{\"kernel\":\"%s\",\"function\":\"nothing\"}}",
             fake_repository("good"));
    options.mapping = mapping_of(mapping);
    ck_khub_ok(khub_layers_new(&layers, &err), &err);
    ck_khub_ok(khub_layers_add(layers, "a", "RMSNorm", (khub_function){standard, NULL}, &of_f32, &slot, &err),
               &err);
    for (int i = 0; i < CALLERS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, i ? call_on : call_inside, slot), 0);
    for (int i = 0; i < 40; i++) {
        ck_khub_ok(khub_kernelize(layers, &options, NULL, &err), &err);
        khub_standardize(layers);
    }
    atomic_store(&stop, 1);
    for (int i = 0; i < CALLERS; i++)
        pthread_join(threads[i], NULL);
    ck_assert_int_eq(atomic_load(&torn), 0);
    khub_layers_free(layers);
}
END_TEST

UNIT("swap", under_load, a_call_keeps_what_it_began_with, inside_is_inside_until_the_last_leaving,
     a_call_may_swap_what_it_is_in, threads_that_are_no_more, where_nobody_can_know, kernelize_under_load)
