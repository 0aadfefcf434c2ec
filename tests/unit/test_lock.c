/* kernels.lock of both forms, the names in a pyproject.toml, and khub_lock over a cache. */
#include "unit.h"

#include "failing_memory.h"
#include "fakes.h"
#include "root.h"

#include "fetch/lockfile.h"
#include "kernel/project.h"

#include <khub/khub.h>

#include <stdio.h>
#include <stdlib.h>

#define C1 "1111111111111111111111111111111111111111"
#define C2 "2222222222222222222222222222222222222222"
#define C3 "abcdefabcdefabcdefabcdefabcdefabcdefabcdefabcdefabcdefabcdefabcd"

#define ENTRY(dependency, commit) "{\"dependency\":{" dependency "},\"lock\":{\"commit\":\"" commit "\"}}"
#define VERSION(id, version)      "\"repo-id\":\"" id "\",\"version\":" #version
#define REVISION(id, revision)    "\"repo-id\":\"" id "\",\"revision\":\"" revision "\""

static int parse(khub__lockfile *out, const char *text, khub_error *err)
{
    return khub__lockfile_parse(out, text, strlen(text), "kernels.lock", err);
}

static khub__wanted wanted(const char *name)
{
    khub__wanted out;
    khub_error err = {0};
    ck_khub_ok(khub__wanted_parse(&out, KHUB__REPO_KERNEL, name, &err), &err);
    return out;
}

/* The commit that it is locked to; "" when it isn't. */
static const char *find(const khub__lockfile *lock, const char *name)
{
    khub__wanted what = wanted(name);
    const khub__locked *found = khub__lockfile_find(lock, &what);
    return found ? found->commit : "";
}

START_TEST(the_newer_form)
{
    khub__lockfile lock;
    khub_error err = {0};
    ck_khub_ok(parse(&lock,
                     "[" ENTRY(VERSION("org/a", 3), C1) "," ENTRY(REVISION("org/a", "main"), C2) "," ENTRY(
                         VERSION("org/a", 1), C3) "," ENTRY(REVISION("org/b", C2), C2) "]",
                     &err),
               &err);
    ck_assert_int_eq(lock.count, 4);
    ck_assert_str_eq(find(&lock, "org/a@v3"), C1);
    ck_assert_str_eq(find(&lock, "org/a@3"), C1);
    ck_assert_str_eq(find(&lock, "org/a@main"), C2);
    ck_assert_str_eq(find(&lock, "org/a@>=1,<9"), C1); /* the highest */
    ck_assert_str_eq(find(&lock, "org/a@<2"), C3);
    ck_assert_str_eq(find(&lock, "org/a@v2"), "");
    ck_assert_str_eq(find(&lock, "org/a@>3"), "");
    ck_assert_str_eq(find(&lock, "org/c@v1"), "");
    ck_assert_str_eq(find(&lock, "org/a@" C1), C1); /* a commit that the lock has */
    ck_assert_str_eq(find(&lock, "org/b@" C1), ""); /* another one of the same repository */
    khub__wanted what = wanted("org/a@v2");
    ck_khub_fails(khub__lockfile_pin(&lock, &what, &err), &err, KHUB_E_NOTFOUND,
                  "org/a@v2: isn't in the lock kernels.lock, which has org/a@v1 at " C3 ", org/a@v3 at " C1);
    what = wanted("org/a@v1");
    ck_khub_ok(khub__lockfile_pin(&lock, &what, &err), &err);
    ck_assert_str_eq(what.revision, C3);
    ck_assert_int_eq(what.version, 1); /* a redirect leads to the version that was asked for */
    khub__lockfile_free(&lock);
    /* Git takes capitals. Nix adds a hash, which says nothing more. */
    ck_khub_ok(
        parse(&lock,
              "[{\"dependency\":{\"repo-id\":\"org/a\",\"version\":null,\"revision\":\"x/y\"},"
              "\"lock\":{\"commit\":\"ABCDEFABCDEFABCDEFABCDEFABCDEFABCDEFABCD\",\"hash\":\"sha256-x\"}}]",
              &err),
        &err);
    ck_assert_str_eq(find(&lock, "org/a@x/y"), "abcdefabcdefabcdefabcdefabcdefabcdefabcd");
    khub__lockfile_free(&lock);
}
END_TEST

START_TEST(locks_that_are_none)
{
    static const char *const table[][2] = {
        {"{}", "kernels.lock: is an object, an array is expected"},
        {"[1]", "kernels.lock: entry 0: is an integer"},
        {"[{}]", "entry 0: has no repository"},
        {"[" ENTRY(VERSION("org/a", 1), C1) "] x", "not valid JSON"},
        {"[{\"dependency\":{" VERSION("org/a", 1) "}}]", "entry 0: org/a: has no commit"},
        {"[{\"dependency\":7,\"lock\":{\"commit\":\"" C1 "\"}}]", "\"dependency\" is an integer"},
        {"[{\"dependency\":{" VERSION("org/a", 1) "},\"lock\":{}}]", "has no commit"},
        {"[" ENTRY("\"repo-id\":\"org/a\"", C1) "]", "org/a: has neither version nor revision"},
        {"[" ENTRY("\"version\":1", C1) "]", "has no repository"},
        {"[" ENTRY(VERSION("org/a", -1), C1) "]", "has version -1, versions start at 0"},
        {"[" ENTRY(VERSION("org/a", 1.5), C1) "]", "\"version\" is a number, an integer is expected"},
        {"[" ENTRY(VERSION("org/a", "1"), C1) "]", "\"version\" is a string"},
        {"[" ENTRY(VERSION("org/a", 9223372036854775807), C1) "]",
         "org/a@v9223372036854775807: is no version"},
        {"[" ENTRY(VERSION("org/a", 1) ",\"revision\":\"main\"", C1) "]", "both a version and a revision"},
        {"[" ENTRY(VERSION("org/a", 1) ",\"digest\":\"x\"", C1) "]", "has an unknown key digest"},
        {"[{\"dependency\":{" VERSION("org/a", 1) "},\"lock\":{\"commit\":\"" C1 "\",\"c\":1}}]",
         "unknown key c"},
        {"[{\"dependency\":{" VERSION("org/a", 1) "},\"lock\":{\"commit\":\"" C1
                                                  "\"},\"repo_id\":\"org/b\"}]",
         "unknown key repo_id"},
        {"[" ENTRY(VERSION("org/a", 1), "111") "]",
         "entry 0: org/a: \"111\" is no commit (40 or 64 hex digits)"},
        {"[" ENTRY(VERSION("org/a", 1), C1 "1") "]", "is no commit"},
        {"[" ENTRY(VERSION("org/a", 1), C3 "0") "]", "is no commit"},
        {"[" ENTRY(VERSION("org/a", 1), "g111111111111111111111111111111111111111") "]", "is no commit"},
        {"[" ENTRY(VERSION("orga", 1), C1) "]", "a kernel is named ORG/NAME"},
        {"[" ENTRY(VERSION("../a", 1), C1) "]", "isn't a repository's name"},
        {"[" ENTRY(VERSION("org/a@v2", 1), C1) "]", "isn't a repository's name"},
        {"[" ENTRY(REVISION("org/a", ""), C1) "]", "is no version, branch, tag or commit"},
        {"[" ENTRY(REVISION("org/a", "a b"), C1) "]", "entry 0"},
        {"[" ENTRY(REVISION("org/a", ">=1,<3"), C1) "]", "is no version"},
        {"[" ENTRY(REVISION("org/a", C1), C2) "]", "org/a@" C1 ": is locked to another commit, " C2},
        {"[" ENTRY(VERSION("org/a", 1), C1) "," ENTRY(VERSION("org/a", 1), C2) "]",
         "kernels.lock: has two entries for org/a@v1"},
        {"[" ENTRY(VERSION("org/a", 1), C1) "," ENTRY(REVISION("org/a", "v1"), C2) "]",
         "two entries for org/a@v1"},
        {"[" ENTRY(VERSION("org/a", 1) ",\"version\":2", C1) "]", "duplicate"},
        {"[{\"repo_id\":\"org/a\",\"sha\":\"v1\"}]", "\"v1\" is no commit"},
        {"[{\"repo_id\":7,\"sha\":\"" C1 "\"}]", "repo_id"},
        {"[{\"repo_id\":\"../../etc\",\"sha\":\"" C1 "\"}]", "../../etc"},
        {"[{\"repo_id\":\"org/a\",\"sha\":\"" C1 "\",\"variants\":{\"x\":1}}]", "of x"},
        {"[{\"repo_id\":\"org/a\",\"sha\":\"" C1 "\",\"variants\":[]}]", "\"variants\" is an array"},
        {"[{\"repo_id\":\"org/a\",\"sha\":\"" C1 "\",\"variants\":{\"x\":{\"hash\":\"sha256-" C3 "\"}}}]",
         "\"hash_type\" isn't git_lfs_concat"},
        {"[{\"repo_id\":\"org/a\",\"sha\":\"" C1 "\",\"variants\":{\"x\":{\"hash\":\"sha256-" C1
         "\",\"hash_type\":\"git_lfs_concat\"}}}]",
         "\"hash\" isn't \"sha256-\" and 64 lower-case hex digits: x"},
    };
    khub__lockfile lock;
    khub_error err = {0};
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
        ck_assert_msg(parse(&lock, table[i][0], &err) != KHUB_OK, "%s", table[i][0]);
        ck_khub_fails(err.code, &err, KHUB_E_FORMAT, table[i][1]);
        ck_assert_msg(!lock.kernels && !lock.path && !lock.count, "%s", table[i][0]);
    }
    ck_khub_fails(khub__lockfile_read(&lock, "/nowhere/kernels.lock", &err), &err, KHUB_E_NOTFOUND,
                  "/nowhere/kernels.lock");
}
END_TEST

#define OLDER(hash)                                                                                          \
    "[{\"repo_id\":\"org/a\",\"sha\":\"" C1 "\",\"variants\":{\"torch27-cxx11-cu128-x86_64-linux\":"         \
    "{\"hash\":\"sha256-" hash "\",\"hash_type\":\"git_lfs_concat\"}}}]"

static void add(khub__tree *tree, const char *path, const char *blob_id, const char *sha256)
{
    khub_error err = {0};
    khub__tree_file file = {.path = path, .size = 1};
    snprintf(file.blob_id, sizeof(file.blob_id), "%s", blob_id);
    snprintf(file.sha256, sizeof(file.sha256), "%s", sha256);
    ck_khub_ok(khub__tree_add(tree, &file, &err), &err);
}

#define TORCH "build/torch27-cxx11-cu128-x86_64-linux/"
#define FE    "fefefefefefefefefefefefefefefefefefefefefefefefefefefefefefefefe"

/* Python: sha256(b"".join(p.encode() + bytes.fromhex(name) for p, name in sorted(files))) over
 * __init__.py: aa…, _ops.py: 0123456789abcdef…, relu.abi3.so: its SHA-256, FE. */
#define HASH "0a31ab336d58d4a5f84028dc4e3ebfc881a89699a9a2d65b112c785f76e4a077"

START_TEST(the_older_form)
{
    khub__lockfile lock;
    khub__tree tree = {0};
    khub_error err = {0};
    const char *repo = "org/a", *torch = "torch27-cxx11-cu128-x86_64-linux";
    add(&tree, TORCH "relu.abi3.so", C2, FE);
    add(&tree, TORCH "_ops.py", "0123456789abcdef0123456789abcdef01234567", "");
    add(&tree, TORCH "__init__.py", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "");
    add(&tree, TORCH "__pycache__/x.py", C1, "");
    add(&tree, TORCH "sub/x.pyc", C1, "");
    add(&tree, "build/torch27-cxx11-cu128-x86_64-linux2/x", C1, "");
    add(&tree, "build/tvm-ffi01-cpu-x86_64-linux/x", "", "");
    ck_khub_ok(khub__tree_close(&tree, &err), &err);
    ck_khub_ok(parse(&lock, OLDER(HASH), &err), &err);
    ck_assert_str_eq(find(&lock, "org/a@v7"), C1); /* it knows repositories only */
    ck_khub_ok(khub__lockfile_check(&lock, repo, C1, torch, &tree, NULL, &err), &err);
    ck_khub_ok(khub__lockfile_check(&lock, repo, C1, NULL, &tree, NULL, &err), &err);
    khub__lockfile_free(&lock);
    ck_khub_ok(parse(&lock, OLDER(FE), &err), &err);
    ck_khub_fails(khub__lockfile_check(&lock, repo, C1, torch, &tree, NULL, &err), &err, KHUB_E_UNTRUSTED,
                  "org/a@" C1 ": build torch27-cxx11-cu128-x86_64-linux: its hash is " HASH
                  ", the lock kernels.lock has " FE);
    ck_khub_fails(khub__lockfile_check(&lock, repo, C1, NULL, &tree, NULL, &err), &err, KHUB_E_UNTRUSTED,
                  HASH);
    /* A build that the lock doesn't have isn't a changed one, nor is another commit or repository. */
    ck_khub_ok(khub__lockfile_check(&lock, repo, C1, "tvm-ffi01-cpu-x86_64-linux", &tree, NULL, &err), &err);
    ck_khub_ok(khub__lockfile_check(&lock, repo, C2, torch, &tree, NULL, &err), &err);
    ck_khub_ok(khub__lockfile_check(&lock, "org/b", C1, torch, &tree, NULL, &err), &err);
    tree.files[1].blob_id[0] = 0;
    ck_assert_str_eq(tree.files[1].path, TORCH "__pycache__/x.py");
    ck_khub_fails(khub__lockfile_check(&lock, repo, C1, torch, &tree, NULL, &err), &err, KHUB_E_UNTRUSTED,
                  HASH);
    tree.files[2].blob_id[0] = 0;
    ck_khub_fails(khub__lockfile_check(&lock, repo, C1, torch, &tree, NULL, &err), &err, KHUB_E_UNTRUSTED,
                  TORCH "_ops.py: the cache doesn't know its hash");
    khub__lockfile_free(&lock);
    khub__tree_free(&tree);
}
END_TEST

static khub_locked_kernel locked(const char *name, const char *commit)
{
    khub_locked_kernel out = {{0}, {0}};
    snprintf(out.name, sizeof(out.name), "%s", name);
    snprintf(out.commit, sizeof(out.commit), "%s", commit);
    return out;
}

#define WRITTEN(id, field, commit)                                                                           \
    "\n  {\n    \"dependency\": {\n      \"repo-id\": \"" id "\",\n      " field                             \
    "\n    },\n    \"lock\": {\n"                                                                            \
    "      \"commit\": \"" commit "\"\n    }\n  }"

/* The order is the Python package's: repositories by bytes, then versions as numbers, then revisions. */
START_TEST(what_is_written)
{
    const khub_locked_kernel kernels[] = {locked("org/b@2", C1),    locked("org/a@v10", C2),
                                          locked("org/a@x\"y", C1), locked("org/a@refs/pr/1", C1),
                                          locked("org/a@v9", C3),   locked("Org/a@v1", C1)};
    char *text;
    khub_error err = {0};
    ck_khub_ok(khub_lock_text(&text, kernels, 6, &err), &err);
    ck_assert_str_eq(
        text,
        "[" WRITTEN("Org/a", "\"version\": 1", C1) "," WRITTEN("org/a", "\"version\": 9", C3) "," WRITTEN(
            "org/a", "\"version\": 10",
            C2) "," WRITTEN("org/a", "\"revision\": \"refs/pr/1\"",
                            C1) "," WRITTEN("org/a", "\"revision\": \"x\\\"y\"",
                                            C1) "," WRITTEN("org/b", "\"version\": 2", C1) "\n]");
    khub__lockfile lock;
    ck_khub_ok(parse(&lock, text, &err), &err);
    ck_assert_int_eq(lock.count, 6);
    ck_assert_str_eq(find(&lock, "org/a@x\"y"), C1);
    khub__lockfile_free(&lock);
    khub_free(text);
    ck_khub_ok(khub_lock_text(&text, NULL, 0, &err), &err);
    ck_assert_str_eq(text, "[]");
    khub_free(text);
    const khub_locked_kernel wrong[][2] = {{locked("org/a", C1)},
                                           {locked("org/a@>=1,<3", C1)},
                                           {locked("./a", C1)},
                                           {locked("org/a@v1", "111")},
                                           {locked("org/a@v1", C1), locked("org/a@1", C2)}};
    const char *const words[] = {"org/a: has neither version nor revision", "org/a: has neither",
                                 "./a: isn't a repository's name", "\"111\" is no commit",
                                 "two entries for org/a@v1"};
    for (size_t i = 0; i < 5; i++) {
        int rc = i == 4 ? KHUB_E_FORMAT : KHUB_E_INVAL;
        ck_khub_fails(khub_lock_text(&text, wrong[i], i == 4 ? 2 : 1, &err), &err, rc, words[i]);
        ck_assert_ptr_null(text);
    }
}
END_TEST

/* The names, each with a space behind it. */
static const char *names_of(const char *text, khub_error *err)
{
    static char out[1000];
    khub__text names = {0};
    size_t count = 0, n = 0;
    *out = 0;
    int rc = khub__project_parse(&names, &count, text, strlen(text), "pyproject.toml", err);
    for (size_t i = 0; rc == KHUB_OK && i < count; i++) {
        snprintf(out + strlen(out), sizeof(out) - strlen(out), "%s ", names.data + n);
        n += strlen(names.data + n) + 1;
    }
    khub__text_free(&names);
    return out;
}

START_TEST(projects)
{
    static const char *const table[][2] = {
        {"", ""},
        {"[tool.kernels.dependencies]\n\"org/a\" = 1\n'org/b'=2 # two\n", "org/a@v1 org/b@v2 "},
        {"[tool.kernels.dependencies]\r\n\"org/a\" = 1\r\n[x]\r\n\"org/b\" = 2\r\n", "org/a@v1 "},
        {"[tool . \"kernels\".'dependencies' ]\n\"org/a\" = 1_0", "org/a@v10 "},
        {"[tool.kernels]\ndependencies = { \"org/a\" = 1,\n\"org/b\" = 2, }", "org/a@v1 org/b@v2 "},
        {"[tool]\nkernels.dependencies.\"org/a\" = 1", "org/a@v1 "},
        {"tool = {kernels = {dependencies = {\"org/a\" = 0}}, x = [1, {\"org/c\" = 1}]}", "org/a@v0 "},
        {"[tool.kernel.dependencies]\n\"org/a\" = 1\n[tools.kernels.dependencies]\n\"org/b\" = 2", ""},
        {"[a.tool.kernels.dependencies]\n\"org/a\" = 1\n[[b]]\n\"org/b\" = 1", ""},
        {"x = \"\"\"\n[tool.kernels.dependencies]\n\"org/a\" = "
         "1\n\\\"\"\"\"\"\"\n[tool.kernels.dependencies]\n\"org/b\" = 1",
         "org/b@v1 "},
        {"x = '''\n[tool.kernels.dependencies]\n'org/a' = 1\n'''\n", ""},
        {"[project]\nname = \"a\\\"]\"\ndependencies = [\n  \"x>=1\", # ]\n  'y',\n]\nd = "
         "1979-05-27T07:32:00Z\n"
         "[tool.kernels.dependencies]\n\"org/a\" = 1\n[tool.kernels.other]\n\"org/c\" = true",
         "org/a@v1 "},
    };
    khub_error err = {0};
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
        ck_assert_str_eq(names_of(table[i][0], &err), table[i][1]);
        ck_assert_msg(err.code == KHUB_OK, "%zu: %s", i, err.message);
    }
}
END_TEST

#define DEPENDENCIES "[tool.kernels.dependencies]\n"

START_TEST(projects_that_are_none)
{
    static const char *const table[][2] = {
        {DEPENDENCIES "\"org/a\" = \"1\"", "pyproject.toml:2: the version of org/a isn't a whole number"},
        {DEPENDENCIES "\"org/a\" = -1", "isn't a whole number"},
        {DEPENDENCIES "\"org/a\" = 0x10", "isn't a whole number"},
        {DEPENDENCIES "\"org/a\" = 1.5", "isn't a whole number"},
        {DEPENDENCIES "\"org/a\" = {version = 1}", "isn't a whole number"},
        {DEPENDENCIES "\"org/a\" = 1 x", "isn't a whole number"},
        {DEPENDENCIES "\"org/a\" = 99999999999999999999", "names no version"},
        {DEPENDENCIES "\"org/a\".version = 1", "only \"org/name\" = VERSION is expected"},
        {DEPENDENCIES "\n\n\"a\" = 1", "pyproject.toml:4: \"a\" = 1 names no version of a kernel"},
        {DEPENDENCIES "\"org/a@v2\" = 1", "names no version of a kernel"},
        {DEPENDENCIES "\"org/a\" = 1\n'org/a' = 1", "pyproject.toml:3: the kernel is named twice"},
        {DEPENDENCIES "\"org/a\"", "\"=\" is expected"},
        {DEPENDENCIES "\"org/a = 1", "the string doesn't end on its line"},
        {"[tool.kernels]\ndependencies = [\"org/a\"]", "a table is expected"},
        {"[[tool.kernels]]", "one table is expected"},
        {"[tool", "\"]\" is expected"},
        {"a = [1, [2]\nb = 3", "\"]\" is expected"},
        {"a = {b = 1", "\"}\" is expected"},
        {"a = \"\"\"x", "the string of several lines doesn't end"},
        {"= 1", "a key is expected"},
        {"a =", "a value is expected"},
        {"a = 1 # x\nb = \"x\" y", "pyproject.toml:2: something follows on the line"},
        {"a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a = 1", "too many parts"},
        {"a = [[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[", "nested too deep"},
    };
    khub_error err = {0};
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
        names_of(table[i][0], &err);
        ck_assert_msg(err.code == KHUB_E_FORMAT && strstr(err.message, table[i][1]),
                      "%zu: \"%s\" isn't in: %s", i, table[i][1], err.message);
        khub_error_clear(&err);
    }
}
END_TEST

#define METADATA(needs)                                                                                      \
    "{\"name\":\"aa\",\"id\":\"aa_1\",\"version\":1,\"license\":\"x\",\"backend\":{\"type\":\"cpu\"},"       \
    "\"python-depends\":[],\"kernel-depends\":[" needs "]}"
#define NEED(id) "{\"repo-id\":\"" id "\",\"version\":1}"

/* A cache of three kernels: a needs b for another machine, b needs c. */
static void make_cache(void)
{
    make_root();
    put("/kernels--org--a/refs/v1", C1);
    put("/kernels--org--a/snapshots/" C1 "/build/tvm-ffi01-cpu-x86_64-linux/metadata.json", METADATA(""));
    put("/kernels--org--a/snapshots/" C1 "/build/tvm-ffi01-cu128-aarch64-linux/metadata.json",
        METADATA(NEED("org/b")));
    put("/kernels--org--a/snapshots/" C1 "/build/future-cpu-x86_64-linux/metadata.json", "{");
    put("/kernels--org--b/refs/v1", C2);
    put("/kernels--org--b/snapshots/" C2 "/build/torch27-cxx11-cu128-x86_64-linux/metadata.json",
        METADATA(NEED("org/c")));
    put("/kernels--org--b/snapshots/" C2 "/build/torch28-cxx11-cu128-x86_64-linux/x.py", "");
    put("/kernels--org--c/refs/v1", C3);
    put("/kernels--org--c/snapshots/" C3 "/build/torch-cpu/metadata.json", METADATA(""));
}

static int lock_offline(khub_locked_kernel **out, size_t *count, const char *name, khub_error *err)
{
    const char *const names[] = {name, NULL};
    khub_hub_options hub;
    khub_lock_options options;
    KHUB_INIT(&hub);
    KHUB_INIT(&options);
    hub.cache_dir = root;
    hub.offline = 1;
    options.hub = &hub;
    return khub_lock(out, count, names, &options, err);
}

START_TEST(a_tree_over_all_builds)
{
    khub_locked_kernel *kernels;
    size_t count;
    khub_error err = {0};
    make_cache();
    ck_khub_ok(lock_offline(&kernels, &count, "org/a@1", &err), &err);
    ck_assert_int_eq(count, 3);
    ck_assert_str_eq(kernels[0].name, "org/a@v1");
    ck_assert_str_eq(kernels[0].commit, C1);
    ck_assert_str_eq(kernels[1].name, "org/b@v1");
    ck_assert_str_eq(kernels[1].commit, C2);
    ck_assert_str_eq(kernels[2].name, "org/c@v1");
    ck_assert_str_eq(kernels[2].commit, C3);
    khub_free(kernels);
    ck_khub_ok(lock_offline(&kernels, &count, "org/c@>=1,<7", &err), &err);
    ck_assert_int_eq(count, 1);
    ck_assert_str_eq(kernels[0].name, "org/c@v1");
    khub_free(kernels);
    put("/kernels--org--c/snapshots/" C3 "/build/torch-cpu/metadata.json", METADATA(NEED("org/a")));
    ck_khub_fails(lock_offline(&kernels, &count, "org/a@v1", &err), &err, KHUB_E_FORMAT,
                  "org/a@v1 needs org/b@v1 needs org/c@v1 needs org/a@v1");
    ck_assert(!kernels && !count);
    put("/kernels--org--c/snapshots/" C3 "/build/torch-cpu/metadata.json", METADATA(NEED("/tmp/x")));
    ck_khub_fails(lock_offline(&kernels, &count, "org/b@v1", &err), &err, KHUB_E_FORMAT,
                  "needed by org/c@v1");
    put("/kernels--org--c/snapshots/" C3 "/build/torch-cpu/metadata.json", "{}");
    ck_khub_fails(lock_offline(&kernels, &count, "org/c@v1", &err), &err, KHUB_E_FORMAT,
                  "torch-cpu/metadata.json");
    ck_khub_fails(lock_offline(&kernels, &count, "org/d@v1", &err), &err, KHUB_E_OFFLINE, "org/d@v1");
    ck_khub_fails(lock_offline(&kernels, &count, "./a", &err), &err, KHUB_E_INVAL, "./a");
    remove_root();
}
END_TEST

static int lock_whole(void *user, khub_error *err)
{
    khub_locked_kernel *kernels;
    size_t count;
    char path[100];
    snprintf(path, sizeof(path), "%s/kernels.lock", (const char *)user);
    int rc = lock_offline(&kernels, &count, "org/a@>=1,<3", err);
    if (rc == KHUB_OK) rc = khub_lock_write(path, kernels, count, err);
    khub_free(kernels);
    if (rc == KHUB_OK) rc = khub_lock_read(&kernels, &count, path, err);
    if (rc != KHUB_OK) return rc;
    ck_assert_int_eq(count, 3);
    khub_free(kernels);
    return KHUB_OK;
}

static int read_older(void *user, khub_error *err)
{
    (void)user;
    khub__lockfile lock;
    khub__tree tree = {0};
    /* the hash of a build without files */
    int rc = parse(&lock, OLDER("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"), err);
    if (rc != KHUB_OK) return rc;
    rc = khub__lockfile_check(&lock, "org/a", C1, NULL, &tree, NULL, err);
    khub__lockfile_free(&lock);
    return rc;
}

static int read_project(void *user, khub_error *err)
{
    char **names, path[100];
    snprintf(path, sizeof(path), "%s/pyproject.toml", (const char *)user);
    int rc = khub_lock_project(&names, path, err);
    if (rc != KHUB_OK) return rc;
    ck_assert_str_eq(names[0], "org/a@v1");
    ck_assert_str_eq(names[1], "org/b@v2");
    ck_assert_ptr_null(names[2]);
    khub_free(names);
    return KHUB_OK;
}

static int count_build(void *user, const khub_verified *build)
{
    *(size_t *)user += build->trust != NULL;
    return 0;
}

/* Of a snapshot without a list of files: what the files should be isn't known, so that the builds hold. */
static int verify_offline(void *user, khub_error *err)
{
    size_t wrong, count = 0;
    khub_hub_options hub;
    khub_verify_options options;
    KHUB_INIT(&hub);
    KHUB_INIT(&options);
    hub.cache_dir = user;
    hub.offline = 1;
    options.hub = &hub;
    int rc = khub_verify(&wrong, "org/a", &options, count_build, &count, err);
    if (rc == KHUB_OK) ck_assert_int_eq(wrong, 0);
    if (rc == KHUB_OK) ck_assert_int_eq(count, 1);
    return rc;
}

/* One process, one name, one path of a lock. */
START_TEST(a_lock_that_is_written_anew)
{
    char command[9000], lock[200];
    khub_kernel *kernel;
    khub_error err = {0};
    khub_hub_options hub;
    khub_get_options options;
    KHUB_INIT(&hub);
    KHUB_INIT(&options);
    make_root();
    hub.cache_dir = root;
    hub.offline = 1;
    options.hub = &hub;
    options.lock = lock;
    snprintf(lock, sizeof(lock), "%s/kernels.lock", root);
    put("/kernels--org--good/snapshots/none", "");
    static const char *const commits[] = {C1, C2, C1};
    for (size_t i = 0; i < 3; i++) {
        snprintf(
            command, sizeof(command),
            "cd %s/kernels--org--good/snapshots && { test -d %s || { mkdir %s && cp -r %s/build %s; }; }",
            root, commits[i], commits[i], fake_repository("good"), commits[i]);
        ck_assert_int_eq(system(command), 0);
        khub_locked_kernel one = locked("org/good@v1", commits[i]);
        ck_khub_ok(khub_lock_write(lock, &one, 1, &err), &err);
        for (int again = 0; again < 2; again++) {
            ck_khub_ok(khub_get(&kernel, "org/good@v1", &options, &err), &err);
            ck_assert_str_eq(khub_kernel_commit(kernel), commits[i]);
            khub_kernel_close(kernel);
        }
    }
    remove_root();
}
END_TEST

START_TEST(every_allocation_fails)
{
    make_cache();
    put("/kernels--org--a/snapshots/" C1 "/build/tvm-ffi01-cpu-x86_64-linux/aa_1.so", "x");
    fm_fail_each_own(verify_offline, root);
    put("/pyproject.toml", DEPENDENCIES "\"org/a\" = 1\n\"org/b\" = 2\n");
    fm_fail_each_own(lock_whole, root);
    fm_fail_each_own(read_project, root);
    fm_fail_each_own(read_older, NULL);
    remove_root();
}
END_TEST

UNIT("lock", the_newer_form, locks_that_are_none, the_older_form, what_is_written, projects,
     projects_that_are_none, a_tree_over_all_builds, a_lock_that_is_written_anew, every_allocation_fails)
