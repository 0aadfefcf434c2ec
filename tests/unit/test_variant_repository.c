/* Kernel repositories on disk: names, listing, metadata.json of builds for GPUs. */
#include "unit.h"

#include "failing_memory.h"

#include "base/path.h"
#include "kernel/repository.h"
#include "variant/choice.h"

#include <khub/khub.h>

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

/* A directory of its own for a test; the tests run in child processes, so one is enough. */
static char root[64];

static void setup(void)
{
    snprintf(root, sizeof(root), "/tmp/khub-repository-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(root));
}

static void teardown(void)
{
    char command[128];
    snprintf(command, sizeof(command), "rm -rf '%s'", root);
    ck_assert_int_eq(system(command), 0);
}

static void make_directory(const char *path)
{
    char whole[400];
    snprintf(whole, sizeof(whole), "%s/%s", root, path);
    ck_assert_int_eq(mkdir(whole, 0755), 0);
}

static void make_file(const char *path, const char *text)
{
    char whole[400];
    snprintf(whole, sizeof(whole), "%s/%s", root, path);
    FILE *f = fopen(whole, "w");
    ck_assert_ptr_nonnull(f);
    ck_assert_int_ge(fputs(text, f), 0);
    ck_assert_int_eq(fclose(f), 0);
}

/* A build for CUDA 12.Minor; `archs` is the JSON of the list, NULL: no metadata.json. */
static void make_cuda_build(int minor, const char *archs)
{
    char path[200], text[500];
    snprintf(path, sizeof(path), "build/tvm-ffi01-cu12%d-x86_64-linux", minor);
    make_directory(path);
    if (!archs) return;
    snprintf(path + strlen(path), sizeof(path) - strlen(path), "/metadata.json");
    snprintf(text, sizeof(text),
             "{\"name\":\"relu\",\"id\":\"_relu\",\"version\":1,\"license\":\"MIT\",\"python-depends\":[],"
             "\"backend\":{\"type\":\"cuda\"%s%s}}",
             *archs ? ",\"archs\":" : "", archs);
    make_file(path, text);
}

static khub_platform *machine(const char *json)
{
    khub_error err = {0};
    khub_platform *p;
    ck_khub_ok(khub_platform_parse(&p, json, strlen(json), "machine.json", &err), &err);
    return p;
}

static const char h100[] = "{\"os\":\"linux\",\"arch\":\"x86_64\",\"backend\":\"cu129\",\"tvm_ffi\":\"0.1\","
                           "\"archs\":[\"9.0\"]}";

static const khub_decision *decision_on(const khub_choice *choice, const char *name)
{
    for (size_t i = 0; i < khub_choice_count(choice); i++)
        if (!strcmp(khub_choice_at(choice, i)->name, name)) return khub_choice_at(choice, i);
    ck_abort_msg("%s isn't in the list", name);
    return NULL;
}

START_TEST(builds_are_directories)
{
    setup();
    make_directory("build");
    make_directory("build/tvm-ffi01-cpu-x86_64-linux");
    make_directory("build/.git");
    make_file("build/tvm-ffi01-cpu-aarch64-linux", "a file, not a build");
    char link[200], target[200];
    snprintf(target, sizeof(target), "%s/build/tvm-ffi01-cpu-x86_64-linux", root);
    snprintf(link, sizeof(link), "%s/build/torch29-cpu-x86_64-linux", root);
    ck_assert_int_eq(symlink(target, link), 0); /* as a cache has them */
    snprintf(link, sizeof(link), "%s/build/torch-universal", root);
    ck_assert_int_eq(symlink("/nowhere", link), 0);
    khub_error err = {0};
    khub__repository r;
    ck_khub_ok(khub__repository_open(&r, root, &err), &err);
    ck_assert_uint_eq(r.count, 3);
    ck_assert_str_eq(r.names[0], ".git");
    ck_assert_str_eq(r.names[1], "torch29-cpu-x86_64-linux");
    ck_assert_str_eq(r.names[2], "tvm-ffi01-cpu-x86_64-linux");
    char *path = khub__repository_build(&r, r.names[2]);
    ck_assert_str_eq(path, target);
    khub_free(path);
    khub__repository_close(&r);
    khub__repository_close(&r); /* zeroed: does nothing */
    teardown();
}
END_TEST

START_TEST(no_repository)
{
    setup();
    khub_error err = {0};
    khub__repository r;
    char path[100];
    snprintf(path, sizeof(path), "%s/none", root);
    ck_khub_fails(khub__repository_open(&r, path, &err), &err, KHUB_E_NOTFOUND, "no such directory");
    ck_khub_fails(khub__repository_open(&r, root, &err), &err, KHUB_E_NOTFOUND, "no directory build/");
    make_file("build", "");
    ck_khub_fails(khub__repository_open(&r, root, &err), &err, KHUB_E_NOTFOUND, "no directory build/");
    ck_assert_ptr_null(r.path);
    teardown();
}
END_TEST

START_TEST(names_of_repositories)
{
    setup();
    khub_error err = {0};
    char *path;
    ck_khub_ok(khub__repository_find(&path, "../x", &err), &err);
    ck_assert_str_eq(path, "../x");
    khub_free(path);
    static const struct {
        const char *name;
        int status;
        const char *words;
    } table[] = {
        {"khub/nothere", KHUB_E_NOTFOUND, "built-in"},
        {"khub/../../x", KHUB_E_INVAL, "neither"},
        {"khub/", KHUB_E_INVAL, "neither"},
        {"x", KHUB_E_INVAL, "neither"},
        {"", KHUB_E_INVAL, "neither"},
        {"/x/../y", KHUB_OK, NULL},
        {"a/b/c", KHUB_E_INVAL, "neither"},
        {"~/x", KHUB_E_INVAL, "neither"},
        {".x/y", KHUB_E_INVAL, "neither"},
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
        if (table[i].words)
            ck_khub_fails(khub__repository_find(&path, table[i].name, &err), &err, table[i].status,
                          table[i].words);
        else
            ck_khub_ok(khub__repository_find(&path, table[i].name, &err), &err);
        ck_assert_int_eq(path != NULL, table[i].words == NULL);
        khub_free(path);
    }
    ck_khub_ok(khub__repository_find(&path, "org/x@v1", &err), &err); /* a name of the Hub leads to no path */
    ck_assert_ptr_null(path);
    ck_assert_int_eq(chdir(root), 0);
    make_directory("org");
    make_directory("org/x");
    ck_khub_fails(khub__repository_find(&path, "org/x", &err), &err, KHUB_E_INVAL, "./org/x");
    teardown();
}
END_TEST

START_TEST(architectures_decide)
{
    setup();
    make_directory("build");
    make_cuda_build(0, "[\"8.0\",\"9.0\"]");
    make_cuda_build(2, ""); /* no field */
    make_cuda_build(4, "[\"7.5\",\"8.0\"]");
    make_cuda_build(6, "[\"8.0+PTX\",\"of-tomorrow\"]");
    make_cuda_build(8, NULL); /* no metadata.json: loading will say so */
    make_directory("build/tvm-ffi01-cu129-x86_64-linux");
    make_file("build/tvm-ffi01-cu129-x86_64-linux/metadata.json", "{");
    khub_error err = {0};
    khub_platform *p = machine(h100);
    khub_choice *choice;
    ck_khub_ok(khub_choose_in(&choice, root, p, NULL, &err), &err);
    static const struct {
        const char *name;
        khub_decision_kind kind;
        const char *words;
    } table[] = {
        {"tvm-ffi01-cu129-x86_64-linux", KHUB_ACCEPTED, "metadata.json"},
        {"tvm-ffi01-cu128-x86_64-linux", KHUB_ACCEPTED, "metadata.json"},
        {"tvm-ffi01-cu126-x86_64-linux", KHUB_ACCEPTED, "of-tomorrow"},
        {"tvm-ffi01-cu122-x86_64-linux", KHUB_ACCEPTED, "doesn't say"},
        {"tvm-ffi01-cu120-x86_64-linux", KHUB_ACCEPTED, NULL},
        {"tvm-ffi01-cu124-x86_64-linux", KHUB_REJECTED, "9.0; built for 7.5, 8.0"},
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
        const khub_decision *d = khub_choice_at(choice, i);
        ck_assert_str_eq(d->name, table[i].name);
        ck_assert_int_eq(d->kind, table[i].kind);
        ck_assert_msg(table[i].words ? d->reason && strstr(d->reason, table[i].words) : !d->reason, "%s: %s",
                      d->name, d->reason ? d->reason : "");
    }
    khub_choice_free(choice);
    khub_platform_free(p);
    teardown();
}
END_TEST

/* What doesn't fit by its name isn't opened: a FIFO there would stop the reader for ever, a bad file would be
 * a remark. */
START_TEST(only_fitting_builds_are_read)
{
    setup();
    make_directory("build");
    make_cuda_build(9, "[\"9.0\"]");
    make_directory("build/tvm-ffi01-cu130-x86_64-linux");
    make_file("build/tvm-ffi01-cu130-x86_64-linux/metadata.json", "not JSON");
    make_directory("build/tvm-ffi01-cpu-x86_64-linux");
    make_file("build/tvm-ffi01-cpu-x86_64-linux/metadata.json", "not JSON");
    make_directory("build/torch-universal");
    khub_error err = {0};
    khub_platform *p = machine(h100);
    khub_choice *choice;
    ck_khub_ok(khub_choose_in(&choice, root, p, NULL, &err), &err);
    ck_assert_str_eq(khub_choice_chosen(choice)->name, "tvm-ffi01-cu129-x86_64-linux");
    ck_assert_ptr_null(strstr(decision_on(choice, "tvm-ffi01-cu130-x86_64-linux")->reason, "metadata.json"));
    khub_choice_free(choice);
    ck_khub_ok(khub_platform_select(p, "cpu", &err), &err);
    ck_khub_ok(khub_choose_in(&choice, root, p, NULL, &err), &err);
    ck_assert_str_eq(khub_choice_chosen(choice)->name, "tvm-ffi01-cpu-x86_64-linux");
    const char *words = "can't be loaded: metadata.json:1: not valid JSON";
    ck_assert_int_eq(strncmp(khub_choice_chosen(choice)->reason, words, strlen(words)), 0);
    ck_assert_ptr_null(strstr(decision_on(choice, "torch-universal")->reason, "metadata.json"));
    khub_choice_free(choice);
    khub_platform_free(p);
    teardown();
}
END_TEST

static int choose_once(void *platform, khub_error *err)
{
    khub_choice *choice;
    json_set_alloc_funcs(malloc, free); /* see test_metadata.c */
    int rc = khub_choose_in(&choice, root, platform, NULL, err);
    ck_assert_int_eq(choice == NULL, rc != KHUB_OK);
    if (rc != KHUB_OK) return rc;
    ck_assert(!khub_choice_repository(choice) && !khub_choice_commit(choice)); /* a directory */
    rc = khub__choice_from(choice, "org/x", "c0ffee", err);
    ck_assert(rc != KHUB_OK || (!strcmp(khub_choice_repository(choice), "org/x") &&
                                !strcmp(khub_choice_commit(choice), "c0ffee")));
    khub_choice_free(choice);
    return rc;
}

START_TEST(every_allocation_fails_in_turn)
{
    setup();
    make_directory("build");
    make_cuda_build(9, "[\"9.0\"]");
    make_cuda_build(8, "[\"8.0\"]");
    make_cuda_build(7, NULL);
    make_directory("build/torch-universal");
    khub_platform *p = machine(h100);
    fm_fail_each(choose_once, p);
    khub_platform_free(p);
    teardown();
}
END_TEST

UNIT("variant_repository", builds_are_directories, no_repository, names_of_repositories, architectures_decide,
     only_fitting_builds_are_read, every_allocation_fails_in_turn)
