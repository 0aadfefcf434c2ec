/* Where the loader would find a library, and what libraries say about themselves, without opening any. */
#include "root.h"

#include "base/memory.h"
#include "platform/libraries.h"

#include <dlfcn.h>
#include <elf.h>
#include <unistd.h>

static khub__pool pool;

static void setup(void)
{
    static const char *const variables[] = {"KHUB_TVM_FFI", "VIRTUAL_ENV", "LD_LIBRARY_PATH", "CUDA_HOME",
                                            "CUDA_PATH"};
    for (size_t i = 0; i < sizeof(variables) / sizeof(*variables); i++)
        unsetenv(variables[i]);
    make_root();
}

static void teardown(void)
{
    remove_root();
    ck_assert(!pool.failed);
    khub__pool_free(&pool);
}

/* ROOT/path, in one of a few buffers. */
static const char *in_root(const char *path)
{
    static char full[8][512];
    static int next;
    next = (next + 1) % 8;
    snprintf(full[next], sizeof(*full), "%s%s", root, path);
    return full[next];
}

/* The first bytes of a library for this machine. */
static void put_library(const char *path)
{
#if defined(__aarch64__)
    static const unsigned char machine = EM_AARCH64;
#else
    static const unsigned char machine = EM_X86_64;
#endif
    unsigned char head[64] = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, 1};
    head[16] = ET_DYN;
    head[18] = machine;
    put_bytes(path, head, sizeof(head));
}

static khub__places open_places(void)
{
    khub__places places;
    khub__places_open(&places, root, &pool);
    places.beside = in_root("/nowhere");
    return places;
}

static khub_library_info find_tvm_ffi(void)
{
    khub_library_info info;
    khub__places places = open_places();
    khub__find_tvm_ffi(&info, &places, &pool);
    khub__places_close(&places);
    return info;
}

START_TEST(nothing_there)
{
    setup();
    khub_library_info info = find_tvm_ffi();
    ck_assert_int_eq(info.presence, KHUB_ABSENT);
    ck_assert_str_eq(info.name, "libtvm_ffi");
    ck_assert_ptr_nonnull(
        strstr(info.reason, "no libtvm_ffi.so: KHUB_TVM_FFI is not set; virtual environment: none active; "));
    teardown();
}
END_TEST

/* A variable that is set and points to nothing isn't skipped in silence, even when another library is there.
 */
START_TEST(variable_points_to_nothing)
{
    static const struct {
        const char *path, *text, *words;
    } table[] = {
        {"/gone.so", NULL, "isn't there"},
        {"/empty.so", "", "is empty"},
        {"/text.so", "hello", "no ELF header"},
        {"/pointer.so", "version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "git-lfs pointer"},
        {"/dir.so", "/", "is a directory"},
        {"/other.so",
         "\x7f"
         "ELF\x02\x01\x01.........\x03.\x14.",
         "another kind of machine"},
    };
    setup();
    put_library("/usr/lib/libtvm_ffi.so");
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
        if (table[i].text && !strcmp(table[i].text, "/"))
            mkdir(in_root(table[i].path), 0777);
        else if (table[i].text)
            put(table[i].path, table[i].text);
        setenv("KHUB_TVM_FFI", in_root(table[i].path), 1);
        khub_library_info info = find_tvm_ffi();
        ck_assert_int_eq(info.presence, KHUB_BROKEN);
        ck_assert_str_eq(info.how, "KHUB_TVM_FFI");
        ck_assert_msg(strstr(info.reason, table[i].words) != NULL, "%s", info.reason);
        ck_assert_msg(strstr(info.reason, in_root(table[i].path)) != NULL, "%s", info.reason);
        ck_assert_ptr_null(info.version);
    }
    teardown();
}
END_TEST

START_TEST(versions_of_tvm_ffi)
{
    static const char header[] = "/* x */\n#define TVM_FFI_VERSION_MAJOR 0\n#define TVM_FFI_VERSION_MINOR 1\n"
                                 "#define TVM_FFI_VERSION_PATCH 16\n";
    setup();
    /* in its name, behind a link */
    put_library("/a/lib/libtvm_ffi.so.0.2.3");
    ck_assert_int_eq(symlink("libtvm_ffi.so.0.2.3", in_root("/a/lib/libtvm_ffi.so")), 0);
    put("/a/include/tvm/ffi/c_api.h", header); /* the name is nearer */
    setenv("KHUB_TVM_FFI", in_root("/a/lib/libtvm_ffi.so"), 1);
    ck_assert_str_eq(find_tvm_ffi().version, "0.2.3");
    ck_assert_str_eq(find_tvm_ffi().path, in_root("/a/lib/libtvm_ffi.so.0.2.3"));
    /* in the headers beside it */
    put_library("/b/tvm_ffi/lib/libtvm_ffi.so");
    put("/b/tvm_ffi/include/tvm/ffi/c_api.h", header);
    put("/b/tvm_ffi/_version.py", "__version__ = version = '0.1.9'\n");
    setenv("KHUB_TVM_FFI", in_root("/b/tvm_ffi/lib/libtvm_ffi.so"), 1);
    ck_assert_str_eq(find_tvm_ffi().version, "0.1.16");
    /* in the package, whose list of names stands before the assignment */
    put_library("/c/tvm_ffi/lib/libtvm_ffi.so");
    put("/c/tvm_ffi/_version.py",
        "__all__ = [\n    \"__version__\",\n    \"version\",\n]\n__version__ = version = '0.1.15.post2'\n");
    setenv("KHUB_TVM_FFI", in_root("/c/tvm_ffi/lib/libtvm_ffi.so"), 1);
    ck_assert_str_eq(find_tvm_ffi().version, "0.1.15.post2");
    /* in the package's metadata */
    put_library("/d/tvm_ffi/lib/libtvm_ffi.so");
    put("/d/apache_tvm_ffi-0.3.1.dist-info/METADATA", "");
    setenv("KHUB_TVM_FFI", in_root("/d/tvm_ffi/lib/libtvm_ffi.so"), 1);
    ck_assert_str_eq(find_tvm_ffi().version, "0.3.1");
    /* nowhere: found, but nothing fits, and it says so */
    put_library("/e/lib/libtvm_ffi.so");
    put("/e/include/tvm/ffi/c_api.h", "#define TVM_FFI_VERSION_MAJOR 0\n#define TVM_FFI_VERSION_MINOR x\n");
    setenv("KHUB_TVM_FFI", in_root("/e/lib/libtvm_ffi.so"), 1);
    khub_library_info info = find_tvm_ffi();
    ck_assert_int_eq(info.presence, KHUB_FOUND);
    ck_assert_ptr_null(info.version);
    ck_assert_ptr_nonnull(strstr(info.reason, "no tvm-ffi build fits"));
    teardown();
}
END_TEST

/* The order: variable, virtual environment, beside libkhub, the loader's path. */
START_TEST(order_of_places)
{
    setup();
    put_library("/usr/lib/libtvm_ffi.so");
    khub_library_info info = find_tvm_ffi();
    ck_assert_str_eq(info.how, "loader's path");
    ck_assert_str_eq(info.path, in_root("/usr/lib/libtvm_ffi.so"));
    put_library("/path/libtvm_ffi.so");
    char list[1100];
    snprintf(list, sizeof(list), "%s:%s", in_root("/none"), in_root("/path"));
    setenv("LD_LIBRARY_PATH", list, 1);
    ck_assert_str_eq(find_tvm_ffi().path, in_root("/path/libtvm_ffi.so"));
    put_library("/nowhere/libtvm_ffi.so"); /* where open_places says that libkhub is */
    ck_assert_str_eq(find_tvm_ffi().how, "beside libkhub");
    put_library("/venv/lib/python3.11/site-packages/tvm_ffi/lib/libtvm_ffi.so");
    setenv("VIRTUAL_ENV", in_root("/venv"), 1);
    ck_assert_str_eq(find_tvm_ffi().how, "virtual environment");
    put_library("/venv/lib/python3.9/site-packages/tvm_ffi/lib/libtvm_ffi.so");
    ck_assert_ptr_nonnull(strstr(find_tvm_ffi().path, "/python3.11/")); /* 11 is more than 9 */
    put_library("/mine.so");
    setenv("KHUB_TVM_FFI", in_root("/mine.so"), 1);
    ck_assert_str_eq(find_tvm_ffi().how, "KHUB_TVM_FFI");
    setenv("KHUB_TVM_FFI", "", 1); /* empty is not set */
    ck_assert_str_eq(find_tvm_ffi().how, "virtual environment");
    setenv("VIRTUAL_ENV", in_root("/gone"), 1);
    ck_assert_str_eq(find_tvm_ffi().how, "beside libkhub");
    teardown();
}
END_TEST

START_TEST(runtime_of_cuda)
{
    khub_library_info info;
    setup();
    khub__places places = open_places();
    khub__find_cudart(&info, &places, &pool);
    khub__places_close(&places);
    ck_assert_int_eq(info.presence, KHUB_ABSENT);
    put_library("/usr/local/cuda/lib64/libcudart.so.12.8.90");
    ck_assert_int_eq(symlink("libcudart.so.12.8.90", in_root("/usr/local/cuda/lib64/libcudart.so")), 0);
    places = open_places();
    khub__find_cudart(&info, &places, &pool);
    khub__places_close(&places);
    ck_assert_int_eq(info.presence, KHUB_FOUND);
    ck_assert_str_eq(info.version, "12.8.90");
    teardown();
}
END_TEST

/* libtvm_ffi in the process: it is asked itself. */
START_TEST(already_in_the_process)
{
    const char *stage = getenv("KHUB_STAGE");
    char path[4096], real[4096];
    snprintf(path, sizeof(path), "%s/lib/libtvm_ffi.so", stage ? stage : "");
    ck_assert_msg(realpath(path, real) != NULL, "%s isn't there", path);
    setup();
    void *handle = dlopen(real, RTLD_NOW);
    ck_assert_msg(handle != NULL, "%s", dlerror());
    put_library("/mine.so");
    setenv("KHUB_TVM_FFI", in_root("/mine.so"), 1); /* too late: there can be one only */
    khub_library_info info = find_tvm_ffi();
    ck_assert_str_eq(info.how, "in this process");
    ck_assert_str_eq(info.path, real);
    ck_assert_str_eq(info.version, strstr(real, ".so.") + 4);
    khub_error err = {0};
    char *found;
    ck_khub_ok(khub__tvm_ffi_path(&found, &err), &err);
    ck_assert_str_eq(found, real);
    khub_free(found);
    dlclose(handle);
    teardown();
}
END_TEST

START_TEST(path_to_open)
{
    khub_error err = {0};
    char *path;
    setup();
    setenv("KHUB_TVM_FFI", in_root("/gone.so"), 1);
    ck_khub_fails(khub__tvm_ffi_path(&path, &err), &err, KHUB_E_LOAD, "isn't there");
    ck_assert_ptr_null(path);
    put_library("/lib.so");
    setenv("KHUB_TVM_FFI", in_root("/lib.so"), 1);
    ck_khub_ok(khub__tvm_ffi_path(&path, &err), &err);
    ck_assert_str_eq(path, in_root("/lib.so"));
    khub_free(path);
    teardown();
}
END_TEST

/* The loader's own tool lists the cache: each of its entries must be found, in its order. */
START_TEST(cache_of_this_machine)
{
    khub__loader loader;
    char line[4096], last[1024] = "";
    int checked = 0;
    khub__loader_open(&loader, "", NULL);
    FILE *list = popen("/sbin/ldconfig -p", "r");
    ck_assert_ptr_nonnull(list);
    while (fgets(line, sizeof(line), list)) {
        char name[1024], path[1024];
        /* "\tlibz.so.1 (libc6,x86-64) => /lib/x86_64-linux-gnu/libz.so.1" */
        if (sscanf(line, " %1023s (%*[^)]) => %1023s", name, path) != 2) continue;
        if (!strstr(line, sizeof(void *) == 8 ? "64" : "libc6") || strstr(line, "x32")) continue;
        const char *found = khub__loader_cache_find(loader.cache.data, loader.cache.length, name);
        ck_assert_msg(found != NULL, "%s isn't found", name);
        if (strcmp(name, last) != 0) ck_assert_str_eq(found, path);
        snprintf(last, sizeof(last), "%s", name);
        checked++;
    }
    ck_assert_int_eq(pclose(list), 0);
    ck_assert_int_gt(checked, 20);
    ck_assert_ptr_null(khub__loader_cache_find(loader.cache.data, loader.cache.length, "libnope.so.1"));
    ck_assert_ptr_null(khub__loader_cache_find(loader.cache.data, loader.cache.length, ""));
    khub__loader_close(&loader);
}
END_TEST

/* Damage anywhere in the cache is a library not found, or found elsewhere, but never a read outside of it. */
START_TEST(damaged_cache)
{
    khub__loader loader;
    khub__loader_open(&loader, "", NULL);
    size_t length = loader.cache.length;
    ck_assert_uint_gt(length, 100);
    char *copy = malloc(length); /* exactly: a sanitizer sees one byte too many */
    unsigned random = 1;
    for (int round = 0; round < 3000; round++) {
        memcpy(copy, loader.cache.data, length);
        for (int i = 0; i < 8; i++) {
            random = random * 1664525u + 1013904223u;
            size_t at = (random >> 8) % (round % 2 ? length : 4096 < length ? 4096 : length);
            copy[at] = (char)(random >> 3);
        }
        const char *path = khub__loader_cache_find(copy, length, "libc.so.6");
        ck_assert(!path || (path >= copy && path + strlen(path) < copy + length));
    }
    for (size_t cut = 0; cut < length; cut += 1 + cut / 16) {
        char *exact = malloc(cut ? cut : 1);
        memcpy(exact, loader.cache.data, cut);
        khub__loader_cache_find(exact, cut, "libc.so.6");
        free(exact);
    }
    ck_assert_ptr_null(khub__loader_cache_find(NULL, 0, "libc.so.6"));
    free(copy);
    khub__loader_close(&loader);
}
END_TEST

START_TEST(each_file_once)
{
    const char *paths[8];
    setup();
    put_library("/one/libx.so");
    put_library("/usr/lib/libx.so");
    mkdir(in_root("/two"), 0777);
    ck_assert_int_eq(symlink(in_root("/one/libx.so"), in_root("/two/libx.so")), 0);
    ck_assert_int_eq(symlink("usr/lib", in_root("/lib")), 0);
    char list[2048];
    snprintf(list, sizeof(list), "%s:%s;%s::", in_root("/two"), in_root("/one"), in_root("/absent"));
    khub__loader loader;
    khub__loader_open(&loader, root, list);
    ck_assert_uint_eq(khub__loader_find(paths, 8, &loader, "libx.so", &pool), 2);
    ck_assert_str_eq(paths[0], in_root("/two/libx.so"));
    ck_assert_str_eq(paths[1], in_root("/usr/lib/libx.so"));
    ck_assert_uint_eq(khub__loader_find(paths, 1, &loader, "libx.so", &pool), 1);
    ck_assert_uint_eq(khub__loader_find(paths, 8, &loader, "liby.so", &pool), 0);
    ck_assert_str_eq(khub__loader_places(&loader, &pool), "LD_LIBRARY_PATH, /usr/lib");
    khub__loader_close(&loader);
    teardown();
}
END_TEST

UNIT("platform_libraries", nothing_there, variable_points_to_nothing, versions_of_tvm_ffi, order_of_places,
     runtime_of_cuda, already_in_the_process, path_to_open, cache_of_this_machine, damaged_cache,
     each_file_once)
