/* khub_pack: what is refused and by which words, what becomes of the files, and that a failure leaves
 * nothing. What the Python package makes of the result: tests/oracle/test_pack.py. */
#include "failing_memory.h"
#include "root.h"

#include "base/file.h"
#include "kernel/metadata.h"
#include "trust/digest.h"

#include <khub/log.h>
#include <khub/pack.h>

#include <unistd.h>

#define VARIANT "tvm-ffi01-cpu-x86_64-linux"

static char directory[100], repository[100];
static khub_pack_options options;
static const int64_t one = 1;

static char content[10000],
    hash[8]; /* of a small library for x86-64 and Linux; seven digits of its SHA-256 */
static size_t content_bytes;

static void read_library(void)
{
    char path[300], command[400];
    const char *source = getenv("KHUB_SOURCE");
    snprintf(path, sizeof(path), "%s/fuzz/corpus/elf/library", source ? source : ".");
    FILE *file = fopen(path, "rb");
    ck_assert_msg(file != NULL, "%s isn't there: KHUB_SOURCE is the repository", path);
    content_bytes = fread(content, 1, sizeof(content), file);
    fclose(file);
    snprintf(command, sizeof(command), "sha256sum '%s'", path);
    file = popen(command, "r");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fread(hash, 1, 7, file), 7);
    pclose(file);
}

/* A directory with a library, and all that has to be said about it. */
static void begin(void)
{
    read_library();
    make_root();
    snprintf(directory, sizeof(directory), "%s/out", root);
    snprintf(repository, sizeof(repository), "%s/repo", root);
    put_bytes("/out/relu.so", content, content_bytes);
    setenv("KHUB_ROOT", root, 1);
    KHUB_INIT(&options);
    options.variant = VARIANT;
    options.name = "my-relu";
    options.version = &one;
    options.license = "MIT";
}

static const char *below_root(const char *path)
{
    static char full[2][400]; /* a call may need two */
    static int next;
    next = !next;
    snprintf(full[next], sizeof(full[next]), "%s%s", root, path);
    return full[next];
}

static int is_there(const char *path)
{
    return khub__file_kind(below_root(path)) != KHUB__FILE_NONE;
}

static void packs(void)
{
    khub_error err = {0};
    ck_khub_ok(khub_pack(NULL, directory, repository, &options, &err), &err);
}

static void fails(int status, const char *words)
{
    khub_error err = {0};
    char *build = (char *)root;
    ck_khub_fails(khub_pack(&build, directory, repository, &options, &err), &err, status, words);
    ck_assert_ptr_null(build);
}

/* The same, and nothing was made. */
static void refuses(int status, const char *words)
{
    fails(status, words);
    ck_assert(!is_there("/repo"));
}

static json_t *metadata_of(const char *variant)
{
    char path[300];
    snprintf(path, sizeof(path), "%s/build/%s/metadata.json", repository, variant);
    json_t *metadata = json_load_file(path, JSON_REJECT_DUPLICATES, NULL);
    ck_assert_ptr_nonnull(metadata);
    return metadata;
}

static const char *text_of(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

/* "_my_relu_cpu_HASH", with `end` after it. */
static const char *named(const char *end)
{
    static char name[2][60];
    static int next;
    next = !next;
    snprintf(name[next], sizeof(name[next]), "_my_relu_cpu_%s%s", hash, end);
    return name[next];
}

START_TEST(a_library_alone)
{
    khub_error err = {0};
    char *build, path[300];
    begin();
    ck_khub_ok(khub_pack(&build, directory, repository, &options, &err), &err);
    ck_assert_str_eq(build, below_root("/repo/build/" VARIANT));
    json_t *metadata = metadata_of(VARIANT);
    ck_assert_str_eq(text_of(metadata, "id"), named(""));
    snprintf(path, sizeof(path), "/repo/build/" VARIANT "/%s", named(".so"));
    ck_assert(is_there(path));
    ck_assert(is_there("/repo/build/" VARIANT "/__init__.py") && is_there("/repo/build/" VARIANT "/_ops.py"));
    const json_t *files = json_object_get(json_object_get(metadata, "digest"), "files");
    ck_assert_uint_eq(json_object_size(files), 3);
    ck_assert_ptr_nonnull(text_of(files, named(".so")));
    json_decref(metadata);
    khub_free(build);
    remove_root();
}
END_TEST

START_TEST(not_a_library_for_that)
{
    begin();
    options.variant = "tvm-ffi01-cpu-aarch64-linux";
    refuses(KHUB_E_FORMAT,
            "/out/relu.so: is a library for x86_64-linux, the build is named tvm-ffi01-cpu-aarch64-linux");
    options.variant = "tvm-ffi01-cpu-x86_64-darwin";
    refuses(KHUB_E_FORMAT,
            "/out/relu.so: is a library for x86_64-linux, the build is named tvm-ffi01-cpu-x86_64-darwin");
    options.variant = VARIANT;
    put("/out/relu.so", "version https://git-lfs.github.com/spec/v1\n");
    refuses(KHUB_E_FORMAT, "/out/relu.so: ");
    put("/out/relu.so", "");
    refuses(KHUB_E_FORMAT, "/out/relu.so: ");
    put_bytes("/out/relu.so", content, content_bytes / 2);
    refuses(KHUB_E_FORMAT, "/out/relu.so: ");
    remove_root();
}
END_TEST

START_TEST(what_goes_along)
{
    static const char *const in[] = {"libsibling.so", "layers.json", "sub/deep/x", "sub/metadata.json",
                                     "_ops.py"};
    static const char *const out[] = {".git/config", ".hidden",       "sub/.x/y",
                                      "a.pyc",       "__pycache__/z", "metadata.json.sigstore"};
    char path[200];
    begin();
    for (size_t i = 0; i < sizeof(in) / sizeof(*in); i++) {
        snprintf(path, sizeof(path), "/out/%s", in[i]);
        put(path, strcmp(in[i], "layers.json") == 0 ? "{\"layers\": {}}" : in[i]);
    }
    for (size_t i = 0; i < sizeof(out) / sizeof(*out); i++) {
        snprintf(path, sizeof(path), "/out/%s", out[i]);
        put(path, "x");
    }
    ck_assert_int_eq(symlink("relu.so", below_root("/out/link")), 0);
    ck_assert_int_eq(chmod(below_root("/out/libsibling.so"), 0755), 0);
    options.library = "relu.so";
    options.id = "_mine";
    packs();
    for (size_t i = 0; i < sizeof(in) / sizeof(*in); i++) {
        snprintf(path, sizeof(path), "/repo/build/" VARIANT "/%s", in[i]);
        ck_assert_msg(is_there(path), "%s", in[i]);
    }
    for (size_t i = 0; i < sizeof(out) / sizeof(*out); i++) {
        snprintf(path, sizeof(path), "/repo/build/" VARIANT "/%s", out[i]);
        ck_assert_msg(!is_there(path), "%s", out[i]);
    }
    struct stat st;
    ck_assert_int_eq(lstat(below_root("/repo/build/" VARIANT "/link"), &st), 0);
    ck_assert(S_ISREG(st.st_mode) && st.st_size == (off_t)content_bytes && !(st.st_mode & 0111));
    ck_assert_int_eq(stat(below_root("/repo/build/" VARIANT "/libsibling.so"), &st), 0);
    ck_assert(st.st_mode & 0100);
    ck_assert(is_there("/repo/build/" VARIANT "/_mine.so") && !is_there("/repo/build/" VARIANT "/relu.so"));
    json_t *metadata = metadata_of(VARIANT); /* with the Python face that was missing */
    ck_assert_uint_eq(json_object_size(json_object_get(json_object_get(metadata, "digest"), "files")), 8);
    json_decref(metadata);
    ck_assert_int_eq(system("exit $(ls -A \"$KHUB_ROOT\" | grep -c tmp)"), 0);
    remove_root();
}
END_TEST

/* What the directory's metadata.json has stays, unless something else is said; a digest is made anew. */
START_TEST(a_metadata_json_of_its_own)
{
    static const char *const archs[] = {"9.0", "10.0+PTX", NULL};
    begin();
    put("/out/metadata.json",
        "{\"name\": \"theirs\", \"id\": \"_theirs_1\", \"version\": 7, \"license\": \"ISC\", \"source\": "
        "\"https://s/x\","
        " \"backend\": {\"type\": \"cuda\", \"archs\": [\"8.0\"], \"more\": 1}, \"python-depends\": "
        "[\"einops\"],"
        " \"digest\": {\"algorithm\": \"md5\"}, \"provenance\": {\"kernel-builder\": {\"version\": \"1\"}}}");
    KHUB_INIT(&options);
    options.variant = "tvm-ffi01-cu128-x86_64-linux";
    options.version = &one;
    options.archs = archs;
    options.upstream = "https://u/x";
    options.algorithm = "sha512";
    packs();
    json_t *metadata = metadata_of(options.variant),
           *digest = json_incref(json_object_get(metadata, "digest"));
    json_object_del(metadata, "digest");
    char *text = json_dumps(metadata, JSON_COMPACT);
    ck_assert_str_eq(
        text,
        "{\"name\":\"theirs\",\"id\":\"_theirs_1\",\"version\":1,\"license\":\"ISC\",\"upstream\":"
        "\"https://u/x\",\"source\":\"https://s/x\",\"python-depends\":[\"einops\"],\"backend\":{\"type\":"
        "\"cuda\",\"archs\":[\"9.0\",\"10.0+PTX\"],\"more\":1},\"provenance\":{\"kernel-builder\":{"
        "\"version\":\"1\"}}}");
    free(text);
    ck_assert_str_eq(text_of(digest, "algorithm"), "sha512");
    json_decref(digest);
    json_decref(metadata);
    remove_root();
}
END_TEST

START_TEST(names_of_torch_kernels)
{
    begin();
    options.variant = "torch-stable-abi29-cu128-x86_64-linux";
    ck_assert_int_eq(rename(below_root("/out/relu.so"), below_root("/out/_relu_cuda_1234567.abi3.so")), 0);
    packs();
    json_t *metadata = metadata_of(options.variant);
    ck_assert_str_eq(text_of(metadata, "id"), "_relu_cuda_1234567");
    ck_assert_str_eq(text_of(json_object_get(metadata, "backend"), "type"), "cuda");
    ck_assert(is_there("/repo/build/torch-stable-abi29-cu128-x86_64-linux/_relu_cuda_1234567.abi3.so"));
    ck_assert(!is_there("/repo/build/torch-stable-abi29-cu128-x86_64-linux/_ops.py"));
    json_decref(metadata);
    remove_root();
}
END_TEST

START_TEST(python_only)
{
    begin();
    options.variant = "torch-universal";
    options.id = "_my_relu_1";
    refuses(KHUB_E_INVAL, "a build torch-universal has Python files only, there is relu.so");
    ck_assert_int_eq(unlink(below_root("/out/relu.so")), 0);
    put("/out/__init__.py", "");
    refuses(KHUB_E_INVAL,
            "which backend it is for neither the build's name (torch-universal) nor a metadata.json says");
    put("/out/metadata.json", "{\"backend\": {\"type\": \"cpu\"}}");
    packs();
    options.variant = "torch-npu";
    fails(KHUB_E_INVAL, "\"type\" is \"cpu\", the build is named torch-npu");
    options.variant = "torch-cpu";
    packs();
    options.id = NULL;
    options.variant = "torch-cuda";
    fails(KHUB_E_INVAL, "a build without a library needs khub_pack_options.id");
    remove_root();
}
END_TEST

START_TEST(nothing_is_overwritten)
{
    begin();
    packs();
    put("/repo/build/" VARIANT "/mine", "of the user");
    fails(KHUB_E_INVAL, "/repo/build/" VARIANT ": is there already; khub_pack_options.replace replaces it");
    ck_assert(is_there("/repo/build/" VARIANT "/mine"));
    options.replace = 1;
    options.license = "";
    packs();
    ck_assert(!is_there("/repo/build/" VARIANT "/mine"));
    options.name = "No"; /* a failure after that leaves what is there */
    fails(KHUB_E_FORMAT, "\"name\" is \"No\"");
    json_t *metadata = metadata_of(VARIANT);
    ck_assert_str_eq(text_of(metadata, "license"), "");
    json_decref(metadata);
    /* packed again where it lies */
    options = (khub_pack_options){
        .struct_size = sizeof(options), .variant = VARIANT, .license = "ISC", .replace = 1};
    strcpy(directory, below_root("/repo/build/" VARIANT));
    packs();
    metadata = metadata_of(VARIANT);
    ck_assert_str_eq(text_of(metadata, "license"), "ISC");
    ck_assert_str_eq(text_of(metadata, "id"), named(""));
    json_decref(metadata);
    ck_assert_int_eq(system("ls -A1 $KHUB_ROOT/repo $KHUB_ROOT/repo/build | grep -q '[.]tmp$'"), 256);
    remove_root();
}
END_TEST

static const struct {
    const char *field, *value; /* of the options */
    int status;
    const char *words;
} bad_options[] = {
    {"name", NULL, KHUB_E_INVAL, "missing, here or in a metadata.json there: khub_pack_options.name"},
    {"name", "My-relu", KHUB_E_FORMAT, "the build's metadata.json: \"name\" is \"My-relu\""},
    {"license", NULL, KHUB_E_INVAL, "metadata.json there: khub_pack_options.license"},
    {"id", "../x", KHUB_E_FORMAT, "\"id\" is \"../x\", which can't be a library's name"},
    {"id", "", KHUB_E_FORMAT, "\"id\" is \"\""},
    {"variant", "tvm-ffi01-cpu-x86_64", KHUB_E_INVAL, "tvm-ffi01-cpu-x86_64: isn't the name of a build"},
    {"variant", "../../x", KHUB_E_INVAL, "../../x: isn't the name of a build"},
    {"variant", "", KHUB_E_INVAL, ": isn't the name of a build"},
    {"library", "other.so", KHUB_E_NOTFOUND, "has no library other.so in it"},
    {"library", "sub/x.so", KHUB_E_NOTFOUND, "has no library sub/x.so in it"},
    {"algorithm", "md5", KHUB_E_INVAL, "khub_pack_options.algorithm is \"md5\"; there are sha256 and sha512"},
};

START_TEST(bad_options_are_named)
{
    static const int64_t negative = -1;
    begin();
    put("/out/sub/x.so", "");
    const struct {
        const char *field;
        const char **at;
    } fields[] = {{"name", &options.name},       {"license", &options.license},
                  {"id", &options.id},           {"variant", &options.variant},
                  {"library", &options.library}, {"algorithm", &options.algorithm}};
    for (size_t i = 0; i < sizeof(bad_options) / sizeof(*bad_options); i++)
        for (size_t f = 0; f < sizeof(fields) / sizeof(*fields); f++) {
            if (strcmp(fields[f].field, bad_options[i].field) != 0) continue;
            khub_pack_options before = options;
            *fields[f].at = bad_options[i].value;
            refuses(bad_options[i].status, bad_options[i].words);
            options = before;
        }
    options.version = NULL;
    refuses(KHUB_E_INVAL, "metadata.json there: khub_pack_options.version");
    options.version = &negative;
    refuses(KHUB_E_FORMAT, "\"version\" is -1");
    remove_root();
}
END_TEST

START_TEST(bad_directories_are_named)
{
    begin();
    put("/out/other.so", "");
    refuses(KHUB_E_INVAL, "/out: has several libraries (other.so, relu.so); khub_pack_options.library says");
    options.id = "relu"; /* one that has the name already is it */
    packs();
    ck_assert_int_eq(system("rm -r $KHUB_ROOT/repo $KHUB_ROOT/out/*.so"), 0);
    refuses(KHUB_E_NOTFOUND, "/out: has no library, no file NAME.so");
    put_bytes("/out/relu.so", content, content_bytes);
    put("/out/layers.json", "{\"layers\": []}");
    refuses(KHUB_E_FORMAT, "/out/layers.json: ");
    put("/out/layers.json", "{\"layers\": {}}");
    put("/out/metadata.json", "[]");
    refuses(KHUB_E_FORMAT, "/out/metadata.json: ");
    put("/out/metadata.json", "{\"backend\": {\"type\": \"cuda\"}}");
    refuses(KHUB_E_INVAL, "\"type\" is \"cuda\", the build is named " VARIANT);
    options.variant = NULL;
    refuses(KHUB_E_INVAL, "is a kernel for cuda, and khub_pack_options.variant names no build");
    options.variant = VARIANT;
    put("/out/metadata.json", "{\"id\": 5}");
    options.id = NULL;
    refuses(KHUB_E_FORMAT, "\"id\" is an integer, a string is expected");
    put("/out/metadata.json", "{\"python-depends\": {}}");
    refuses(KHUB_E_FORMAT, "\"python-depends\" is an object, an array is expected");
    ck_assert_int_eq(unlink(below_root("/out/metadata.json")), 0);
    ck_assert_int_eq(symlink("/etc/passwd", below_root("/out/leak")), 0);
    refuses(KHUB_E_FORMAT, "/out/leak: is a link that leads out of the build, to /etc/passwd");
    ck_assert_int_eq(unlink(below_root("/out/leak")), 0);
    put("/out/back\\slash", "");
    refuses(KHUB_E_FORMAT, "has a backslash in its name");
    ck_assert_int_eq(unlink(below_root("/out/back\\slash")), 0);
    snprintf(repository, sizeof(repository), "%s/out/sub/repo", root);
    refuses(KHUB_E_INVAL, "/out/sub/repo: lies in ");
    snprintf(repository, sizeof(repository), "%s/out/relu.so", root);
    refuses(KHUB_E_INVAL, "lies in ");
    put("/file", "");
    snprintf(repository, sizeof(repository), "%s/file", root);
    refuses(KHUB_E_IO, "/file");
    strcpy(directory, "/nowhere/at/all");
    refuses(KHUB_E_NOTFOUND, "/nowhere/at/all");
    remove_root();
}
END_TEST

/* A name that JSON can't hold is found when the digest is made: nothing is left of the copies either. */
START_TEST(a_late_failure_leaves_nothing)
{
    begin();
    put("/out/\xff", "");
    refuses(KHUB_E_FORMAT, "isn't UTF-8");
    snprintf(repository, sizeof(repository), "%s/a/b/repo", root);
    refuses(KHUB_E_FORMAT, "isn't UTF-8");
    ck_assert(!is_there("/a"));
    put("/a/file", "");
    refuses(KHUB_E_FORMAT, "isn't UTF-8");
    ck_assert(is_there("/a/file") && !is_there("/a/b"));
    remove_root();
}
END_TEST

static char warned[400];

static void keep_warning(void *user, const khub_log_record *record)
{
    (void)user;
    if (record->level == KHUB_LOG_WARNING)
        snprintf(warned, sizeof(warned), "%s: %s", record->object, record->text);
}

START_TEST(a_script_with_the_old_name)
{
    char expected[200];
    begin();
    put("/out/__init__.py", "load(\"relu.so\")");
    khub_set_log(keep_warning, NULL);
    packs();
    khub_set_log(NULL, NULL);
    snprintf(expected, sizeof(expected),
             "__init__.py: names relu.so, which is %s in the build; ops of ._ops is it", named(".so"));
    ck_assert_str_eq(warned, expected);
    remove_root();
}
END_TEST

START_TEST(for_this_machine)
{
    begin();
    options.variant = NULL;
#ifdef __x86_64__
    khub_error err = {0};
    char *build;
    ck_khub_ok(khub_pack(&build, directory, repository, &options, &err), &err);
    ck_assert_ptr_nonnull(strstr(build, "/repo/build/tvm-ffi0"));
    ck_assert_ptr_nonnull(strstr(build, "-cpu-x86_64-linux"));
    khub_free(build);
#else
    refuses(KHUB_E_FORMAT, "is a library for x86_64-linux, the build is named tvm-ffi0");
#endif
    remove_root();
}
END_TEST

static char whole[2000]; /* metadata.json when nothing fails */

static int pack_it(void *user, khub_error *err)
{
    char *build, made[sizeof(whole)] = "";
    (void)user;
    int rc = khub_pack(&build, directory, repository, &options, err);
    ck_assert_int_eq(rc == KHUB_OK, build != NULL);
    ck_assert(rc == KHUB_OK || !is_there("/repo"));
    khub_free(build);
    if (rc != KHUB_OK) return rc;
    FILE *file = fopen(below_root("/repo/build/" VARIANT "/metadata.json"), "r");
    ck_assert(fread(made, 1, sizeof(made) - 1, file) > 0);
    fclose(file);
    if (!*whole) strcpy(whole, made);
    ck_assert_str_eq(made, whole);
    ck_assert_int_eq(system("rm -r $KHUB_ROOT/repo"), 0);
    return rc;
}

/* jansson's reader does without some of its allocations and says nothing: what it read is then only looked
 * at. */
static int pack_it_whole(void *user, khub_error *err)
{
    int rc = pack_it(user, err);
    long fails = atomic_load(&fm_fail_at);
    if (rc != KHUB_OK || !fails || atomic_load(&fm_count) < fails) return rc;
    err->code = KHUB_E_NOMEM;
    return err->code;
}

START_TEST(failing_memory)
{
    begin();
    put("/out/sub/x", "");
    put("/out/layers.json", "{\"layers\": {}}");
    fm_fail_each(pack_it_whole, NULL);
    remove_root();
}
END_TEST

START_TEST(failing_memory_with_metadata)
{
    begin();
    put("/out/metadata.json", "{\"id\": \"_mine\", \"provenance\": {\"kernel-builder\": {\"version\": "
                              "\"1\"}}, \"backend\": {\"type\": \"cpu\", \"more\": 1}}");
    fm_fail_each_own(pack_it, NULL);
    remove_root();
}
END_TEST

START_TEST(nothing_given)
{
    khub_error err = {0};
    char *build = (char *)root;
    ck_khub_fails(khub_pack(&build, NULL, "x", NULL, &err), &err, KHUB_E_INVAL, "khub_pack");
    ck_assert_ptr_null(build);
    ck_khub_fails(khub_pack(NULL, "x", "", NULL, &err), &err, KHUB_E_INVAL, "khub_pack");
    ck_khub_fails(khub_pack(NULL, "x", "y", &(khub_pack_options){0}, &err), &err, KHUB_E_INVAL,
                  "struct_size");
}
END_TEST

UNIT("pack", a_library_alone, not_a_library_for_that, what_goes_along, a_metadata_json_of_its_own,
     names_of_torch_kernels, python_only, nothing_is_overwritten, bad_options_are_named,
     bad_directories_are_named, a_late_failure_leaves_nothing, a_script_with_the_old_name, for_this_machine,
     failing_memory, failing_memory_with_metadata, nothing_given)
