/* Kernels of this machine that were got already: whether they are what they were. */
#include "fakes.h"
#include "root.h"

#include "kernel/marks.h"
#include "kernel/memo.h"
#include "trust/held.h"

#include <khub/memory.h>

static khub__marks *take_marks(const char *build, int64_t since_ns)
{
    khub__marks *marks;
    khub_error err = {0};
    ck_khub_ok(khub__marks_take(&marks, build, since_ns, &err), &err);
    return marks;
}

/* Long after anything was changed: no test waits until what it wrote has settled. */
static int64_t later(void)
{
    return khub__file_clock_ns() + INT64_C(10000000000);
}

static void KHUB_PRINTF(1, 2) run(const char *format, ...)
{
    char command[9000];
    va_list args;
    va_start(args, format);
    vsnprintf(command, sizeof(command), format, args);
    va_end(args);
    ck_assert_int_eq(system(command), 0);
}

/* A copy of a fake kernel; its build directory. */
static const char *copy_of(const char *name)
{
    static char build[4096];
    make_root();
    run("cp -rL '%s' '%s/k'", fake_repository(name), root);
    fake_path(build, "%s/k/build/%s", root, strrchr(fake_file(name, NULL), '/') + 1);
    return build;
}

START_TEST(every_change_shows)
{
    static const char *const changes[] = {
        "printf x >>$1/metadata.json",
        "touch -d '1 hour ago' $1/layers.json", /* the time of change is now */
        "cp $1/layers.json $1/l && mv $1/l $1/layers.json",
        "touch $1/new",
        "rm $1/layers.json",
        "chmod go-r $1/*.so",
        "mkdir $1/folder",
        "mkdir $1/../tvm-ffi01-cpu-x86_64-darwin",
        "mv $1 $1.old",
        "mv $1/../../../k $1/../../../old",
    };
    for (size_t i = 0; i < sizeof(changes) / sizeof(*changes); i++) {
        const char *build = copy_of("weighed");
        run("mkdir '%s/inner' && touch '%s/inner/file'", build, build);
        khub__marks *marks = take_marks(build, later());
        ck_assert_ptr_nonnull(marks);
        ck_assert(khub__marks_hold(marks));
        ck_assert(khub__marks_hold(marks));
        run("set -- '%s'; %s", build, changes[i]);
        ck_assert_msg(!khub__marks_hold(marks), "%s", changes[i]);
        khub__marks_free(marks);
        remove_root();
    }
    const char *build = copy_of("weighed");
    run("mkdir '%s/inner' && touch '%s/inner/file'", build, build);
    khub__marks *marks = take_marks(build, later());
    run("printf x >>'%s/inner/file'", build);
    ck_assert(!khub__marks_hold(marks));
    khub__marks_free(marks);
    remove_root();
}
END_TEST

START_TEST(what_cannot_be_marked)
{
    const char *build = copy_of("weighed");
    ck_assert_ptr_null(take_marks(build, khub__file_clock_ns())); /* it was written a moment ago */
    ck_assert_ptr_null(take_marks("/nowhere/build/here", later()));
    ck_assert_ptr_null(take_marks("build", later()));
    ck_assert_ptr_null(take_marks(root, later())); /* no build */
    run("cd '%s' && touch $(seq 300)", build);
    ck_assert_ptr_null(take_marks(build, later()));
    run("cd '%s' && rm $(seq 300)", build);
    khub__marks *marks = take_marks(build, later());
    ck_assert_ptr_nonnull(marks);
    khub__marks_free(marks);
    run("mkdir -p '%s/1/2/3/4/5/6/7/8/9'", build);
    ck_assert_ptr_null(take_marks(build, later()));
    run("rm -r '%s/1' && ln -s nowhere '%s/broken'", build, build);
    ck_assert_ptr_null(take_marks(build, later()));
    remove_root();
}
END_TEST

/* The memory of the process: found while nothing changed, the layers read once for all. */
START_TEST(a_path_is_remembered)
{
    khub_error err = {0};
    khub_get_options options;
    KHUB_INIT(&options);
    const char *build = copy_of("weighed");
    char name[4096];
    fake_path(name, "%s/k", root);
    char *key;
    ck_khub_ok(khub__memo_key(&key, "./k", &options, &err), &err);
    ck_assert_ptr_null(key); /* another one elsewhere */
    ck_khub_ok(khub__memo_key(&key, name, &options, &err), &err);
    khub_kernel *kernel, found[2] = {{.name = name}, {.name = name}};
    ck_khub_ok(khub_get(&kernel, name, &options, &err), &err);
    ck_assert(!khub__memo_find(&found[0], key)); /* written too lately */
    ck_khub_ok(khub__memo_keep(kernel, key, later(), &err), &err);
    const khub_layer_spec *spec[2];
    for (int i = 0; i < 2; i++) {
        ck_assert(khub__memo_find(&found[i], key));
        ck_assert_str_eq(found[i].build, build);
        ck_assert_str_eq(found[i].variant, kernel->variant);
        ck_assert_ptr_null(found[i].commit);
        ck_assert(found[i].library == kernel->library && found[i].version == 1);
        ck_khub_ok(khub_kernel_layer(&spec[i], &found[i], "GeLU", &err), &err);
    }
    ck_assert(spec[0] == spec[1]);
    ck_assert_str_eq(spec[0]->function, "set");
    found[0] = (khub_kernel){.name = name}; /* what it had was the memo's */
    run("printf '{\"layers\": {}}' >'%s/layers.json'", build);
    ck_assert(!khub__memo_find(&found[0], key));
    khub_kernel_close(kernel);
    ck_khub_ok(khub_get(&kernel, name, &options, &err), &err);
    ck_khub_fails(khub_kernel_layer(&spec[0], kernel, "GeLU", &err), &err, KHUB_E_NOTFOUND, "has no layer");
    khub_kernel_close(kernel);
    khub_free(key);
    remove_root();
}
END_TEST

UNIT("marks", every_change_shows, what_cannot_be_marked, a_path_is_remembered)
