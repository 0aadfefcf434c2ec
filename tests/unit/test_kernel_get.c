/* From a kernel's name to a kernel, and what it says about itself. */
#include "failing_memory.h"
#include "fakes.h"

#include <sys/stat.h>
#include <unistd.h>

START_TEST(facts_of_a_kernel)
{
    khub_kernel *kernel = fake_get("good");
    ck_assert_str_eq(khub_kernel_name(kernel), fake_repository("good"));
    ck_assert_str_eq(khub_kernel_library(kernel), fake_library("good"));
    ck_assert_int_eq(khub_kernel_version(kernel), 1);
    ck_assert_msg(strstr(fake_file("good", NULL), khub_kernel_variant(kernel)) != NULL, "%s",
                  khub_kernel_variant(kernel));
    khub_kernel_close(kernel);
    khub_kernel_close(NULL);
}
END_TEST

/* The functions of good.c, as `grep ^FAKE(` lists them. */
static const char *const good_functions[] = {"add_one",
                                             "fail",
                                             "fail_silently",
                                             "fail_with_result",
                                             "first_argument_kind",
                                             "forty_two",
                                             "half",
                                             "negate",
                                             "nothing",
                                             "ones",
                                             "ones_alive",
                                             "repeat",
                                             "scale",
                                             "short_text",
                                             "stream",
                                             "succeed_after_error"};

START_TEST(functions_in_order)
{
    khub_kernel *kernel = fake_get("good");
    size_t count = sizeof(good_functions) / sizeof(*good_functions);
    for (size_t i = 0; i < count; i++)
        ck_assert_str_eq(khub_kernel_function_info(kernel, i)->name, good_functions[i]);
    ck_assert_ptr_null(khub_kernel_function_info(kernel, count));
    const khub_function_info *add_one = khub_kernel_function_info(kernel, 0);
    ck_assert_str_eq(add_one->schema,
                     "{\"type\":\"ffi.Function\",\"named_args\":{\"return\":[{\"type\":\"None\"}],"
                     "\"params\":[{\"type\":\"DLTensor*\"},{\"type\":\"DLTensor*\"}]}}");
    ck_assert_str_eq(add_one->doc, "Adds one to every element.\n\nout: the result, of x's shape");
    ck_assert_ptr_null(khub_kernel_function_info(kernel, 1)->schema);
    ck_assert_ptr_null(khub_kernel_function_info(kernel, 1)->doc);
    khub_kernel_close(kernel);
}
END_TEST

START_TEST(layers_of_a_kernel)
{
    khub_kernel *kernel = fake_get("good"), *none = fake_get("twin_one");
    const khub_layer_spec *spec, *again;
    khub_error err = {0};
    ck_khub_ok(khub_kernel_layer(&spec, kernel, "GeLU", &err), &err);
    ck_assert_str_eq(spec->function, "scale");
    ck_assert_str_eq(spec->args[0], "x");
    ck_assert_int_eq(spec->slices[0].parts[1].unit, 4);
    ck_khub_ok(khub_kernel_layer(&again, kernel, "GeLU", &err), &err);
    ck_assert_ptr_eq(spec, again);
    ck_khub_fails(khub_kernel_layer(&spec, kernel, "RMSNorm", &err), &err, KHUB_E_NOTFOUND,
                  "has no layer \"RMSNorm\"; it has: ReLU, GeLU");
    ck_assert_ptr_null(spec);
    ck_khub_fails(khub_kernel_layer(&spec, none, "ReLU", &err), &err, KHUB_E_NOTFOUND, "has no layers.json");
    khub_kernel_close(kernel);
    khub_kernel_close(none);
}
END_TEST

static int get(const char *name, const char *variant, const char *backend, khub_error *err)
{
    khub_kernel *kernel;
    khub_platform *platform = fake_platform();
    khub_get_options options;
    KHUB_INIT(&options);
    options.platform = platform;
    options.variant = variant;
    options.backend = backend;
    int rc = khub_get(&kernel, name, &options, err);
    ck_assert(!kernel == (rc != KHUB_OK));
    khub_kernel_close(kernel);
    khub_platform_free(platform);
    return rc;
}

START_TEST(names)
{
    khub_error err = {0};
    const char *good = fake_repository("good");
    ck_khub_ok(get(good, NULL, NULL, &err), &err);
    ck_khub_ok(get(good, NULL, "cpu", &err), &err);
    ck_khub_ok(get(good, strrchr(fake_file("good", NULL), '/') + 1, NULL, &err), &err);
    ck_khub_fails(get(good, "torch210-cxx11-cpu-x86_64-linux", NULL, &err), &err, KHUB_E_NOTFOUND,
                  "has no build torch210-cxx11-cpu-x86_64-linux; it has: tvm-ffi01-cpu-");
    ck_khub_fails(get(good, NULL, "cuda", &err), &err, KHUB_E_INVAL, "cuda");
    ck_khub_fails(get("./nowhere", NULL, NULL, &err), &err, KHUB_E_NOTFOUND, "./nowhere");
    ck_khub_fails(get("khub/nothing-like-it", NULL, NULL, &err), &err, KHUB_E_NOTFOUND,
                  "khub/nothing-like-it");
    setenv("HF_HUB_OFFLINE", "1", 1);
    setenv("HF_HUB_CACHE", "/nowhere", 1);
    ck_khub_fails(get("org/name@v1", NULL, NULL, &err), &err, KHUB_E_OFFLINE, "khub download org/name@v1");
    ck_khub_fails(get("", NULL, NULL, &err), &err, KHUB_E_INVAL, "no name");
    khub_get_options unset = {0};
    khub_kernel *kernel;
    ck_khub_fails(khub_get(&kernel, good, &unset, &err), &err, KHUB_E_INVAL, "KHUB_INIT");
}
END_TEST

START_TEST(relative_names)
{
    khub_error err = {0};
    ck_assert_int_eq(chdir(fake_repository("good")), 0);
    ck_khub_ok(get(".", NULL, NULL, &err), &err);
    ck_khub_ok(get("../good", NULL, NULL, &err), &err);
    ck_assert_int_eq(chdir(".."), 0);
    ck_khub_ok(get("./good", NULL, NULL, &err), &err);
    ck_khub_fails(get("good", NULL, NULL, &err), &err, KHUB_E_INVAL, "./good");
}
END_TEST

START_TEST(LOCAL_KERNELS_puts_one_in_the_place_of_another)
{
    khub_error err = {0};
    char list[8192];
    snprintf(list, sizeof(list), ":org/a=/nowhere::org/name=%s:", fake_repository("good"));
    setenv("LOCAL_KERNELS", list, 1);
    ck_khub_ok(get("org/name@v1", NULL, NULL, &err), &err);
    ck_khub_ok(get("org/name", NULL, NULL, &err), &err);
    ck_khub_fails(get("org/a@v1", NULL, NULL, &err), &err, KHUB_E_NOTFOUND, "/nowhere");
    setenv("HF_HUB_OFFLINE", "1", 1);
    setenv("HF_HUB_CACHE", "/nowhere", 1);
    ck_khub_fails(get("org/nam@v1", NULL, NULL, &err), &err, KHUB_E_OFFLINE, "org/nam@v1");
    static const char *const wrong[] = {"nonsense", "org/b=", "=/x", "="};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        char words[100];
        snprintf(list, sizeof(list), "org/name=%s:%s", fake_repository("good"), wrong[i]);
        snprintf(words, sizeof(words), "LOCAL_KERNELS: \"%s\" isn't NAME=PATH", wrong[i]);
        setenv("LOCAL_KERNELS", list, 1);
        ck_khub_fails(get("org/name@v1", NULL, NULL, &err), &err, KHUB_E_INVAL, words);
        ck_khub_fails(get("khub/norm", NULL, NULL, &err), &err, KHUB_E_INVAL, words);
    }
}
END_TEST

START_TEST(no_build_fits)
{
    khub_platform *platform;
    khub_error err = {0};
    static const char json[] =
        "{\"os\":\"linux\",\"arch\":\"x86_64\",\"backend\":\"cpu\",\"tvm_ffi\":\"0.9\"}";
    ck_khub_ok(khub_platform_parse(&platform, json, sizeof(json) - 1, "json", &err), &err);
    khub_get_options options;
    KHUB_INIT(&options);
    options.platform = platform;
    khub_kernel *kernel;
    ck_khub_fails(khub_get(&kernel, fake_repository("good"), &options, &err), &err, KHUB_E_NOBUILD,
                  "tvm-ffi01-cpu-");
    khub_platform_free(platform);
}
END_TEST

static int open_all(void *user, khub_error *err)
{
    khub_kernel *kernel;
    khub_platform *platform = user;
    khub_get_options options;
    KHUB_INIT(&options);
    options.platform = platform;
    options.backend = "cpu";
    int rc = khub_get(&kernel, fake_repository("good"), &options, err);
    if (rc != KHUB_OK) return rc;
    khub_function f;
    const khub_layer_spec *spec;
    rc = khub_kernel_function(&f, kernel, "forty_two", err);
    if (rc == KHUB_OK) rc = khub_kernel_layer(&spec, kernel, "GeLU", err);
    khub_kernel_close(kernel);
    return rc;
}

START_TEST(every_allocation_fails)
{
    fm_install_own();
    khub_kernel_close(fake_get("twin_one")); /* libtvm_ffi is in: looking for it is src/platform's to test */
    khub_platform *platform = fake_platform();
    fm_fail_each_fresh(open_all, platform);
    fm_fail_each_own(open_all, platform);
    khub_platform_free(platform);
}
END_TEST

/* The fake kernel as version 1 of org/good, in a cache that another tool filled, asked for offline. */
typedef struct asking {
    char cache[32], variant[200];
    khub_policy *policy;
    khub_hub_options hub;
    khub_get_options options;
} asking;

static void begin_asking(asking *a)
{
    char command[9000], commit[41];
    khub_error err = {0};
    memset(a, 0, sizeof(*a));
    memset(commit, 'a', 40);
    commit[40] = 0;
    strcpy(a->cache, "/tmp/khub-kernel-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(a->cache));
    snprintf(command, sizeof(command),
             "d=%s/kernels--org--good && mkdir -p $d/refs $d/snapshots && cp -rL %s $d/snapshots/%s && "
             "printf %s > $d/refs/v1",
             a->cache, fake_repository("good"), commit, commit);
    ck_assert_int_eq(system(command), 0);
    snprintf(a->variant, sizeof(a->variant), "%s", strrchr(fake_file("good", NULL), '/') + 1);
    ck_khub_ok(khub_policy_new(&a->policy, &err), &err);
    KHUB_INIT(&a->hub);
    KHUB_INIT(&a->options);
    a->hub.cache_dir = a->cache;
    a->hub.offline = 1;
    a->hub.policy = a->policy;
    a->options.hub = &a->hub;
    a->options.variant = a->variant;
}

static void end_asking(asking *a)
{
    char command[100];
    khub_policy_free(a->policy);
    snprintf(command, sizeof(command), "rm -rf %s", a->cache);
    ck_assert_int_eq(system(command), 0);
}

static khub_trust_decision decided(const khub_kernel *kernel)
{
    return khub_trust_at(khub_kernel_trust(kernel), 0)->decision;
}

/* What a process got already it has, but for whom it was got counts: another policy is another question. */
START_TEST(a_policy_is_part_of_the_question)
{
    asking a;
    khub_error err = {0};
    khub_kernel *kernel, *again;
    begin_asking(&a);
    ck_khub_ok(khub_get(&kernel, "org/good@v1", &a.options, &err), &err);
    ck_assert_int_eq(decided(kernel), KHUB_TRUST_NOTED);
    ck_khub_ok(khub_get(&again, "org/good@v1", &a.options, &err), &err);
    ck_assert_ptr_eq(khub_kernel_trust(again), khub_kernel_trust(kernel)); /* nothing was looked at */
    khub_kernel_close(again);
    ck_khub_ok(khub_policy_set_offline(a.policy, 1, &err), &err);
    ck_khub_fails(khub_get(&again, "org/good@v1", &a.options, &err), &err, KHUB_E_UNTRUSTED,
                  "org/good: offline, and nothing here says whether org is a trusted publisher");
    ck_assert_ptr_null(again);
    ck_khub_ok(khub_policy_set_offline(a.policy, 0, &err), &err);
    ck_khub_ok(khub_policy_add_publisher(a.policy, "org", &err), &err);
    ck_khub_ok(khub_get(&again, "org/good@v1", &a.options, &err), &err);
    ck_assert(decided(again) == KHUB_TRUST_ACCEPTED && decided(kernel) == KHUB_TRUST_NOTED);
    khub_kernel_close(again);
    khub_kernel_close(kernel);
    end_asking(&a);
}
END_TEST

/* A refusal is what was asked for, not an error. */
/* The user's file counts for what is got for the first time: what is in the process can't be taken out. */
START_TEST(a_policy_that_changes_later)
{
    asking a;
    khub_error err = {0};
    khub_kernel *kernel, *again;
    char file[64];
    begin_asking(&a);
    snprintf(file, sizeof(file), "%s/trust.json", a.cache);
    setenv("KHUB_TRUST_FILE", file, 1);
    a.hub.policy = NULL;
    ck_khub_ok(khub_policy_write(a.policy, file, &err), &err);
    ck_khub_ok(khub_get(&kernel, "org/good@v1", &a.options, &err), &err);
    ck_khub_ok(khub_policy_set_offline(a.policy, 1, &err), &err);
    ck_khub_ok(khub_policy_write(a.policy, file, &err), &err);
    ck_khub_ok(khub_get(&again, "org/good@v1", &a.options, &err), &err);
    ck_assert_ptr_eq(khub_kernel_trust(again), khub_kernel_trust(kernel));
    khub_kernel_close(again);
    a.options.backend = "cpu"; /* another question */
    ck_khub_fails(khub_get(&again, "org/good@v1", &a.options, &err), &err, KHUB_E_UNTRUSTED,
                  "whether org is a trusted publisher");
    khub_kernel_close(kernel);
    end_asking(&a);
}
END_TEST

START_TEST(a_verdict_without_loading)
{
    asking a;
    khub_error err = {0};
    khub_trust *trust;
    begin_asking(&a);
    for (int i = 0; i < 4; i++) {
        int refuse = i & 1, whole = i >> 1;
        ck_khub_ok(khub_policy_set_offline(a.policy, refuse, &err), &err);
        ck_khub_ok(khub_judge(&trust, "org/good@v1", whole, &a.options, &err), &err);
        ck_assert_int_eq(khub_trust_holds(trust), !refuse);
        khub_trust_free(trust);
        ck_khub_fails(khub_judge(&trust, "org/none@v1", whole, &a.options, &err), &err, KHUB_E_OFFLINE,
                      "org/none");
        ck_assert_ptr_null(trust);
    }
    end_asking(&a);
}
END_TEST

static int judge_it(void *options, khub_error *err)
{
    khub_trust *trust;
    int rc = khub_judge(&trust, "org/good@v1", 1, options, err);
    khub_trust_free(trust);
    return rc;
}

START_TEST(every_allocation_of_a_verdict_fails)
{
    asking a;
    begin_asking(&a);
    fm_fail_each_own(judge_it, &a.options);
    end_asking(&a);
}
END_TEST

static int ask_for_nothing(void *user, khub_error *err)
{
    khub_function f;
    const khub_layer_spec *spec;
    int rc = khub_kernel_function(&f, user, "nobody", err);
    if (rc != KHUB_E_NOTFOUND) return rc;
    khub_error_clear(err);
    rc = khub_kernel_layer(&spec, user, "Nobody", err);
    if (rc != KHUB_E_NOTFOUND) return rc;
    khub_error_clear(err);
    return KHUB_OK;
}

START_TEST(every_allocation_of_a_refusal_fails)
{
    fm_install();
    khub_kernel *kernel = fake_get("good");
    fm_fail_each(ask_for_nothing, kernel);
    khub_kernel_close(kernel);
}
END_TEST

/* Descriptions may be missing when there is no memory; nothing else may go wrong. */
START_TEST(every_allocation_of_a_description_fails)
{
    fm_install();
    khub_kernel_close(fake_get("good"));
    long before = atomic_load(&fm_live);
    int whole = 0;
    for (long n = 1; !whole && n < 1000; n++) {
        khub_kernel *kernel = fake_get("good");
        atomic_store(&fm_count, 0);
        atomic_store(&fm_fail_at, n);
        const khub_function_info *info = khub_kernel_function_info(kernel, 0);
        atomic_store(&fm_fail_at, 0);
        whole = atomic_load(&fm_count) < n;
        if (whole) ck_assert(info && info->schema && info->doc);
        if (info) ck_assert_str_eq(info->name, "add_one");
        khub_kernel_close(kernel);
        ck_assert_int_eq(atomic_load(&fm_live), before);
    }
    ck_assert(whole);
}
END_TEST

/* What was asked for by name and can't be had is an error; a build that isn't for Torch does without. */
START_TEST(a_libtorch_of_ones_choice)
{
    khub_kernel *kernel;
    khub_error err = {0};
    khub_platform *platform = fake_platform();
    khub_get_options options;
    KHUB_INIT(&options);
    options.platform = platform;
    options.torch = "/nowhere";
    ck_khub_fails(khub_get(&kernel, fake_repository("good"), &options, &err), &err, KHUB_E_LOAD,
                  "libtorch: /nowhere/lib/libtorch_cpu.so isn't there");
    options.no_torch = 1;
    ck_khub_fails(khub_get(&kernel, fake_repository("good"), &options, &err), &err, KHUB_E_INVAL,
                  "khub_get_options.torch and khub_get_options.no_torch at once");
    options.torch = NULL;
    ck_khub_ok(khub_get(&kernel, fake_repository("good"), &options, &err), &err);
    khub_kernel_close(kernel);
    khub_platform_free(platform);
}
END_TEST

UNIT("kernel_get", a_libtorch_of_ones_choice, facts_of_a_kernel, functions_in_order, layers_of_a_kernel,
     names, relative_names, LOCAL_KERNELS_puts_one_in_the_place_of_another, no_build_fits,
     a_policy_is_part_of_the_question, a_policy_that_changes_later, a_verdict_without_loading,
     every_allocation_of_a_verdict_fails, every_allocation_fails, every_allocation_of_a_refusal_fails,
     every_allocation_of_a_description_fails)
