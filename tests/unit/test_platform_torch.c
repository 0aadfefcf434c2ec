/* Which libtorch is found, and what is said of it, put together from pieces (tests/fake/torch.c). */
#include "failing_memory.h"
#include "root.h"

#include "base/file.h"
#include "platform/dynamic.h"
#include "platform/platform.h"
#include "platform/torch.h"

#include <elf.h>
#include <unistd.h>

#define SITE "/venv/lib/python3.12/site-packages"

static khub__pool pool;

static void setup(void)
{
    static const char *const variables[] = {"KHUB_TORCH_DIR", "VIRTUAL_ENV", "LD_LIBRARY_PATH"};
    for (size_t i = 0; i < sizeof(variables) / sizeof(*variables); i++)
        unsetenv(variables[i]);
    make_root();
    chmod(root, 0755);
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

static khub__bytes piece(const char *name)
{
    char path[4096];
    khub__bytes bytes;
    khub_error err = {0};
    snprintf(path, sizeof(path), "%s/tests/fake/torch/%s", getenv("KHUB_BINARY"), name);
    ck_khub_ok(khub__file_read(&bytes, path, 1 << 20, &err), &err);
    return bytes;
}

static void put_piece(const char *path, const char *name)
{
    khub__bytes bytes = piece(name);
    put_bytes(path, bytes.data, bytes.length);
    khub__bytes_free(&bytes);
}

/* What the packages have: SITE/torch, and the two of CUDA. */
static void put_torch(const char *site, const char *version, const char *kind, const char *abi)
{
    static const char *const cuda[] = {"libcudart.so.13", "libcupti.so.13", "libdeep.so"};
    char path[300], name[300];
    snprintf(path, sizeof(path), "%s/torch/lib/libtorch_cpu.so", site);
    snprintf(name, sizeof(name), "%s/libtorch_cpu.so", kind);
    put_piece(path, name);
    snprintf(path, sizeof(path), "%s/torch/lib/libc10.so", site);
    snprintf(name, sizeof(name), "%s/libc10.so", abi);
    put_piece(path, name);
    for (size_t i = 0; i < sizeof(cuda) / sizeof(*cuda); i++) {
        snprintf(path, sizeof(path), "%s/nvidia/cu13/lib/%s", site, cuda[i]);
        snprintf(name, sizeof(name), "nvidia/%s", cuda[i]);
        put_piece(path, name);
    }
    snprintf(path, sizeof(path), "%s/torch/version.py", site);
    snprintf(name, sizeof(name),
             "from typing import Optional\n__all__ = ['__version__', 'cuda', 'hip', 'xpu']\n"
             "__version__ = '%s'\ncuda: Optional[str] = '13.2'\nhip: Optional[str] = None\n",
             version);
    put(path, name);
}

static khub__torch find(void)
{
    khub__torch torch;
    khub__places places;
    khub__places_open(&places, root, &pool);
    places.beside = in_root("/nowhere");
    khub__find_torch(&torch, &places, &pool);
    khub__places_close(&places);
    ck_assert_str_eq(torch.info.name, "libtorch");
    if (torch.info.presence != KHUB_FOUND) {
        ck_assert_int_lt(torch.version.major, 0);
        ck_assert_int_eq(torch.cxx11_abi, -1);
        ck_assert_ptr_nonnull(torch.info.reason);
    }
    return torch;
}

static void expect(khub_presence presence, const char *words)
{
    khub__torch torch = find();
    ck_assert_msg(torch.info.presence == presence && strstr(torch.info.reason, words), "\"%s\" isn't in: %s",
                  words, torch.info.reason);
}

START_TEST(absent)
{
    setup();
    expect(KHUB_ABSENT, "no libtorch_cpu.so: KHUB_TORCH_DIR is not set; virtual environment: none active; ");
    teardown();
}
END_TEST

START_TEST(whole_package)
{
    setup();
    setenv("VIRTUAL_ENV", in_root("/venv"), 1);
    put_torch(SITE, "2.15.0+cu132", "rpath", "cxx11");
    put_piece(SITE "/torch/lib/libtorch_cuda.so", "cxx11/libc10.so");
    khub__torch torch = find();
    ck_assert_msg(torch.info.presence == KHUB_FOUND, "%s", torch.info.reason);
    ck_assert_str_eq(torch.info.version, "2.15.0+cu132");
    ck_assert_str_eq(torch.info.how, "virtual environment");
    ck_assert_str_eq(torch.info.path, in_root(SITE "/torch/lib/libtorch_cpu.so"));
    ck_assert_int_eq(torch.version.minor, 15);
    ck_assert_int_eq(torch.cxx11_abi, 1);
    ck_assert_str_eq(torch.backend->name, "cuda");
    ck_assert_int_eq(torch.backend_version.major, 13);
    ck_assert_int_eq(torch.backend_version.minor, 2);
    /* itself, libc10, libcupti, libcudart, and what libc10 needs; the C library isn't Torch's */
    ck_assert_ptr_nonnull(strstr(torch.info.reason, "C++11 ABI, for CPU and cuda 13.2; "));
    ck_assert_ptr_nonnull(strstr(torch.info.reason, " 5 files "));
    put_torch(SITE, "2.7.0a0+git1234", "rpath", "cxx98");
    unlink(in_root(SITE "/torch/lib/libtorch_cuda.so"));
    torch = find();
    ck_assert_msg(torch.info.presence == KHUB_FOUND, "%s", torch.info.reason);
    ck_assert_int_eq(torch.cxx11_abi, 0);
    ck_assert_str_eq(torch.backend->name, "cpu");
    put_piece(SITE "/torch/lib/libc10.so", "nvidia/libdeep.so"); /* no C++ in it */
    ck_assert_int_eq(find().cxx11_abi, -1);
    teardown();
}
END_TEST

/* All places where a version may stand; of a file that says something else the next one is asked. */
START_TEST(versions)
{
    static const char header[] = "\n#define TORCH_VERSION_MAJOR 2\n#define TORCH_VERSION_MINOR 9\n"
                                 "#define TORCH_VERSION_PATCH 1\n";
    setup();
    put_torch("/x", "2.10.0", "rpath", "cxx11");
    setenv("KHUB_TORCH_DIR", in_root("/x/torch"), 1);
    ck_assert_str_eq(find().info.version, "2.10.0");
    ck_assert_str_eq(find().info.how, "KHUB_TORCH_DIR");
    put("/x/torch/include/torch/csrc/api/include/torch/version.h", header);
    put("/x/torch/version.py", "__version__ = get()\n");
    ck_assert_str_eq(find().info.version, "2.9.1");
    put("/x/torch/lib/python3.9/site-packages/torch/version.py", "__version__ = '2.8.0'\n");
    ck_assert_str_eq(find().info.version, "2.8.0");
    put("/x/torch/build-version", "2.11.0+rocm6.4\n");
    put_piece("/x/torch/lib/libtorch_hip.so", "cxx11/libc10.so");
    khub__torch torch = find();
    ck_assert_str_eq(torch.info.version, "2.11.0+rocm6.4");
    ck_assert_str_eq(torch.backend->name, "rocm");
    ck_assert_int_eq(torch.backend_version.major, 6);
    ck_assert_int_eq(torch.backend_version.minor, 4);
    put("/x/torch/build-version", "2.6.9");
    expect(KHUB_BROKEN, "is Torch 2.6.9, whose operators can't be called from C; 2.7 or later is needed");
    put("/x/torch/build-version", "1.13.1");
    expect(KHUB_BROKEN, "is Torch 1.13.1, ");
    put("/x/torch/build-version", "unknown");
    unlink(in_root("/x/torch/lib/python3.9/site-packages/torch/version.py"));
    unlink(in_root("/x/torch/include/torch/csrc/api/include/torch/version.h"));
    expect(KHUB_BROKEN, "its version isn't known");
    teardown();
}
END_TEST

START_TEST(what_is_missing)
{
    setup();
    setenv("KHUB_TORCH_DIR", in_root("/x/torch"), 1);
    put_torch("/x", "2.15.0+cu132", "rpath", "cxx11");
    put_piece("/x/torch/lib/libtorch_cuda.so", "cxx11/libc10.so");
    put("/x/nvidia/cu13/lib/libcudart.so.13", "not yet unpacked");
    expect(KHUB_BROKEN, "needs libcudart.so.13 (package nvidia-cuda-runtime): ");
    expect(KHUB_BROKEN, "/nvidia/cu13/lib/libcudart.so.13 isn't a library (no ELF header)");
    unlink(in_root("/x/nvidia/cu13/lib/libcudart.so.13"));
    unlink(in_root("/x/nvidia/cu13/lib/libcupti.so.13"));
    expect(KHUB_BROKEN, "libcupti.so.13 (package nvidia-cuda-cupti), which isn't in reach");
    expect(KHUB_BROKEN, "libcudart.so.13 (package nvidia-cuda-runtime), which isn't in reach");
    put("/x/torch/version.py", "__version__ = '2.8.0+cu126'\n");
    expect(KHUB_BROKEN, "libcudart.so.13 (package nvidia-cuda-runtime-cu12), which isn't in reach");
    unlink(in_root("/x/torch/lib/libc10.so"));
    expect(KHUB_BROKEN, "needs libc10.so (Torch's own: it is only half there), which isn't in reach");
    put_piece("/usr/lib/libc10.so", "cxx11/libc10.so"); /* where the loader would look, too */
    put_piece("/usr/lib/libcudart.so.13", "nvidia/libcudart.so.13");
    put_piece("/usr/lib/libcupti.so.13", "nvidia/libcupti.so.13");
    ck_assert_int_eq(find().info.presence, KHUB_FOUND);
    khub__bytes bytes = piece("rpath/libtorch_cpu.so");
    put_bytes("/x/torch/lib/libtorch_cpu.so", bytes.data, bytes.length - 1);
    char words[100];
    snprintf(words, sizeof(words), "is cut off: %zu of %zu bytes are there", bytes.length - 1, bytes.length);
    expect(KHUB_BROKEN, words);
    bytes.data[18] = EM_SPARC;
    put_bytes("/x/torch/lib/libtorch_cpu.so", bytes.data, bytes.length);
    expect(KHUB_BROKEN, "is a library for another kind of machine");
    khub__bytes_free(&bytes);
    unlink(in_root("/x/torch/lib/libtorch_cpu.so"));
    expect(KHUB_BROKEN, "/x/torch/lib/libtorch_cpu.so isn't there");
    teardown();
}
END_TEST

/* libc10 says nothing itself about where libdeep is. */
START_TEST(whose_path_counts)
{
    setup();
    setenv("KHUB_TORCH_DIR", in_root("/x/torch"), 1);
    put_torch("/x", "2.15.0", "rpath", "cxx11");
    ck_assert_int_eq(find().info.presence, KHUB_FOUND);
    put_torch("/x", "2.15.0", "runpath", "cxx11");
    expect(KHUB_BROKEN, "needs libdeep.so, which isn't in reach");
    put_piece("/else/libdeep.so", "nvidia/libdeep.so");
    setenv("LD_LIBRARY_PATH", in_root("/else"), 1);
    ck_assert_int_eq(find().info.presence, KHUB_FOUND);
    teardown();
}
END_TEST

/* A store elsewhere whose files are linked into the environment: what is needed stands beside the links. */
START_TEST(links)
{
    setup();
    put_torch(SITE, "2.15.0", "rpath", "cxx11");
    put("/store/x", "");
    ck_assert_int_eq(rename(in_root(SITE "/torch/lib/libtorch_cpu.so"), in_root("/store/libtorch_cpu.so")),
                     0);
    ck_assert_int_eq(symlink(in_root("/store/libtorch_cpu.so"), in_root(SITE "/torch/lib/libtorch_cpu.so")),
                     0);
    ck_assert_int_eq(symlink("venv", in_root("/other")), 0);
    setenv("VIRTUAL_ENV", in_root("/other"), 1);
    khub__torch torch = find();
    ck_assert_msg(torch.info.presence == KHUB_FOUND, "%s", torch.info.reason);
    ck_assert_str_eq(torch.info.path, in_root(SITE "/torch/lib/libtorch_cpu.so"));
    teardown();
}
END_TEST

/* The first usable one is taken, and what of the others is said; one that is named isn't passed over. */
START_TEST(several)
{
    char words[600];
    setup();
    put_torch(SITE, "2.15.0", "rpath", "cxx11");
    put_torch("/y", "2.9.1", "rpath", "cxx11");
    setenv("VIRTUAL_ENV", in_root("/venv"), 1);
    setenv("LD_LIBRARY_PATH", in_root("/y/torch/lib"), 1);
    ck_assert_str_eq(find().info.version, "2.15.0");
    snprintf(words, sizeof(words), "; not taken (loader's path): %s, Torch 2.9.1",
             in_root("/y/torch/lib/libtorch_cpu.so"));
    expect(KHUB_FOUND, words);
    put_torch(SITE, "2.5.0", "rpath", "cxx11");
    ck_assert_str_eq(find().info.version, "2.9.1");
    snprintf(words, sizeof(words), "; not taken (virtual environment): %s is Torch 2.5.0, whose",
             in_root(SITE "/torch/lib/libtorch_cpu.so"));
    expect(KHUB_FOUND, words);
    setenv("KHUB_TORCH_DIR", in_root(SITE "/torch"), 1);
    expect(KHUB_BROKEN, "is Torch 2.5.0");
    setenv("KHUB_TORCH_DIR", "", 1); /* empty is not set */
    ck_assert_str_eq(find().info.version, "2.9.1");
    setenv("LD_LIBRARY_PATH", in_root("/venv/../" SITE "/torch/lib"), 1); /* the same once more */
    ck_assert_ptr_null(strstr(find().info.reason, "not taken"));
    teardown();
}
END_TEST

static khub_platform *platform(const char *json)
{
    khub_platform *p;
    khub_error err = {0};
    ck_khub_ok(khub_platform_parse(&p, json, strlen(json), "machine", &err), &err);
    return p;
}

static const khub_library_info *libtorch(const khub_platform *p)
{
    const khub_library_info *library;
    for (size_t i = 0; (library = khub_platform_library(p, i)) != NULL; i++)
        if (!strcmp(library->name, "libtorch")) return library;
    return NULL;
}

/* A named one is the platform's, or the platform stays as it was; none is none. */
START_TEST(named)
{
    khub_error err = {0};
    setup();
    put_torch("/x", "2.15.0", "rpath", "cxx11");
    put_torch("/y", "2.6.0", "rpath", "cxx11");
    khub_platform *p =
        platform("{\"os\": \"linux\", \"arch\": \"x86_64\", \"libraries\": [{\"name\": \"other\", "
                 "\"presence\": \"absent\", \"reason\": \"why\"}]}");
    ck_khub_fails(khub_platform_use_torch(p, in_root("/y/torch"), &err), &err, KHUB_E_LOAD,
                  "is Torch 2.6.0, whose operators can't be called from C");
    ck_assert_ptr_null(khub_platform_torch(p));
    ck_assert_ptr_null(libtorch(p));
    for (int again = 0; again < 2; again++) {
        ck_khub_ok(khub_platform_use_torch(p, in_root("/x/torch"), &err), &err);
        ck_assert_str_eq(khub_platform_torch(p), "2.15.0");
        ck_assert_str_eq(libtorch(p)->how, "as asked for");
        ck_assert_ptr_null(khub_platform_library(p, 2));
    }
    char *json = khub_platform_json(p);
    ck_assert_ptr_nonnull(strstr(json, "\"torch_cxx11_abi\": true"));
    khub_platform *same = platform(json);
    char *again = khub_platform_json(same);
    ck_assert_str_eq(again, json);
    ck_khub_fails(khub_platform_use_torch(p, in_root("/y/torch"), &err), &err, KHUB_E_LOAD, "2.6.0");
    ck_assert_str_eq(khub_platform_torch(p), "2.15.0");
    ck_khub_ok(khub_platform_use_torch(p, NULL, &err), &err);
    ck_assert_ptr_null(khub_platform_torch(p));
    ck_assert_int_eq(libtorch(p)->presence, KHUB_ABSENT);
    ck_assert_ptr_nonnull(strstr(libtorch(p)->reason, "left out"));
    khub_free(json);
    khub_free(again);
    khub_platform_free(p);
    khub_platform_free(same);
    teardown();
}
END_TEST

/* What a kernel for CUDA needs besides is looked for where there is CUDA; without it Torch is one for the
 * CPU. */
START_TEST(for_cuda)
{
    khub_error err = {0};
    setup();
    put_torch("/x", "2.15.0+cu132", "rpath", "cxx11");
    put_piece("/x/torch/lib/libtorch_cuda.so", "cxx11/libc10.so");
    khub_platform *cpu = platform("{\"os\": \"linux\", \"arch\": \"x86_64\", \"backend\": \"cpu\"}");
    khub_platform *p = platform("{\"os\": \"linux\", \"arch\": \"x86_64\", \"backend\": \"cu132\"}");
    ck_khub_ok(khub_platform_use_torch(cpu, in_root("/x/torch"), &err), &err);
    ck_assert_str_eq(cpu->torch_backend->name, "cuda");
    ck_khub_ok(khub_platform_use_torch(p, in_root("/x/torch"), &err), &err);
    ck_assert_str_eq(p->torch_backend->name, "cpu");
    ck_assert_msg(strstr(libtorch(p)->reason, "; for cuda it ") &&
                      strstr(libtorch(p)->reason, "libtorch.so isn't there, so"),
                  "%s", libtorch(p)->reason);
    put_piece("/x/torch/lib/libtorch.so", "rpath/libtorch_cpu.so");
    ck_khub_ok(khub_platform_use_torch(p, in_root("/x/torch"), &err), &err);
    ck_assert_str_eq(p->torch_backend->name, "cuda");
    ck_assert_int_eq(p->torch_backend_version.minor, 2);
    ck_assert_msg(strstr(libtorch(p)->reason, ", for one of cuda 5 files ") != NULL, "%s",
                  libtorch(p)->reason);
    khub_platform_free(cpu);
    khub_platform_free(p);
    teardown();
}
END_TEST

static int do_use(void *user, khub_error *err)
{
    khub_platform *p;
    int rc = khub_platform_parse(&p, "{}", 2, "machine", err);
    if (rc == KHUB_OK) rc = khub_platform_use_torch(p, user, err);
    khub_platform_free(p);
    return rc;
}

START_TEST(no_memory)
{
    setup();
    put_torch("/x", "2.15.0", "rpath", "cxx11");
    fm_fail_each(do_use, (void *)(uintptr_t)in_root("/x/torch"));
    teardown();
}
END_TEST

/* Damage anywhere is said or not seen, but never a read outside of the file. */
START_TEST(damaged)
{
    khub__dynamic dynamic;
    setup();
    khub__bytes bytes = piece("rpath/libtorch_cpu.so");
    size_t length = bytes.length;
    char *copy = malloc(length);
    for (size_t cut = 0; cut < length; cut += 1 + cut / 4) {
        put_bytes("/cut.so", bytes.data, cut);
        ck_assert_ptr_nonnull(khub__dynamic_read(&dynamic, in_root("/cut.so"), &pool));
    }
    unsigned random = 1;
    for (int round = 0; round < (SANITIZED ? 300 : 1000); round++) {
        memcpy(copy, bytes.data, length);
        for (int i = 0; i < 8; i++) {
            random = random * 1664525u + 1013904223u;
            copy[20 + (random >> 8) % (round % 2 ? length - 20 : 800)] = (char)(random >> 3);
        }
        unlink(in_root("/bad.so")); /* a file that is written anew may be waited for */
        put_bytes("/bad.so", copy, length);
        khub__dynamic_read(&dynamic, in_root("/bad.so"), &pool);
        khub__dynamic_has(&dynamic, in_root("/bad.so"), "__cxx11");
    }
    free(copy);
    khub__bytes_free(&bytes);
    teardown();
}
END_TEST

/* Names that lie across the pieces in which they are read. */
START_TEST(names_in_pieces)
{
    enum { LENGTH = 40000 };
    char *names = calloc(1, LENGTH);
    khub__dynamic dynamic = {.names_at = 10, .names_bytes = LENGTH - 10};
    setup();
    for (size_t at = 16370; at < 16395; at++) {
        memset(names, 'x', LENGTH);
        memcpy(names + at, "__cxx11", 7);
        unlink(in_root("/names"));
        put_bytes("/names", names, LENGTH);
        ck_assert_int_eq(khub__dynamic_has(&dynamic, in_root("/names"), "__cxx11"), 1);
        ck_assert_int_eq(khub__dynamic_has(&dynamic, in_root("/names"), "__cxx12"), 0);
    }
    ck_assert_int_eq(khub__dynamic_has(&dynamic, in_root("/gone"), "__cxx11"), 0);
    free(names);
    teardown();
}
END_TEST

UNIT("platform_torch", absent, whole_package, versions, what_is_missing, whose_path_counts, links, several,
     named, for_cuda, no_memory, damaged, names_in_pieces)
