/* Opening kernel libraries: the user reports F2, F3, F5 to F8 as far as one process can show them. What ends
 * the process, and what lies on disk in odd ways, is in tests/cli/test_load.py. */
#include "failing_memory.h"
#include "fakes.h"

#include "kernel/library.h"
#include "kernel/posix/loader_words.h"
#include "kernel/provider.h"

#include <khub/log.h>

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

static int64_t ask(const khub_kernel *kernel, const char *name)
{
    khub_function f = fake_function(kernel, name);
    khub_error err = {0};
    khub_value result;
    ck_khub_ok(khub_function_call(&f, NULL, 0, &result, &err), &err);
    ck_assert_int_eq(result.type, KHUB_TYPE_INT);
    return result.as.i64;
}

static void check_refused(const char *name, int status, const char *const *words)
{
    khub_error err = {0};
    khub_kernel *kernel;
    int rc = fake_get_error(&kernel, name, &err);
    ck_assert_str_eq(khub_status_name(rc), khub_status_name(status));
    ck_assert_ptr_null(kernel);
    for (; *words; words++)
        ck_assert_msg(strstr(err.message, *words) != NULL, "%s: \"%s\" isn't in: %s", name, *words,
                      err.message);
}

START_TEST(F2_undefined_symbols)
{
    /* the runtime brings the C++ library, which undoes the mangling */
    const char *const torch[] = {
        "_needs_torch_cpu_fa4e000.so: undefined symbol _ZN3c105ErrorC2ENS_14SourceLocationESs",
        "= c10::Error::Error(c10::SourceLocation, std::string)", "libtorch", "pre-C++11 strings", NULL};
    const char *const python[] = {"undefined symbol PyErr_SetString", "built for Python", NULL};
    const char *const nobody[] = {"undefined symbol nobody_has_this", "nothing in this process has it", NULL};
    const char *const sibling[] = {"_with_needy_sibling_cpu_fa4e000.so: undefined symbol nobody_has_this",
                                   "needed by ", "libfakeneedy.so", NULL};
    check_refused("needs_torch", KHUB_E_LOAD, torch);
    check_refused("needs_python", KHUB_E_LOAD, python);
    check_refused("needs_nobody", KHUB_E_LOAD, nobody);
    check_refused("with_needy_sibling", KHUB_E_LOAD, sibling);
    khub_kernel_close(fake_get("good")); /* the host goes on */
}
END_TEST

START_TEST(F2_providers)
{
    static const struct {
        const char *symbol, *words;
    } table[] = {
        {"_ZN2at6Tensor3addEv", "libtorch's C++"},
        {"_ZNK5torch8autograd4NodeE", "libtorch's C++"},
        {"aoti_torch_get_data_ptr", "stable C interface"},
        {"_PyObject_New", "built for Python"},
        {"TVMFFIErrorCreate", "libtvm_ffi"},
        {"cudaMalloc", "CUDA"},
        {"cuLaunchKernel", "NVIDIA driver"},
        {"hipMalloc", "ROCm"},
        {"zeInit", "Level Zero"},
        {"GOMP_parallel", "OpenMP"},
        {"_ZNSt6vectorIiE", "libstdc++"},
        {"__asan_init", "address sanitizer"},
        {"custom", NULL},
        {"zebra", NULL},
        {"_Z3foov", NULL},
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
        const khub__provider *provider = khub__symbol_provider(table[i].symbol);
        const char *words = provider ? provider->words : NULL;
        ck_assert_msg(!words == !table[i].words && (!words || strstr(words, table[i].words)), "%s: %s",
                      table[i].symbol, words ? words : "nobody");
    }
}
END_TEST

START_TEST(F3_missing_library)
{
    setenv("LD_LIBRARY_PATH", "/nowhere/in/particular",
           1); /* read by the loader at start only: shown, not used */
    char dir[4096];
    fake_path(dir, "%s", fake_file("needs_cudart", NULL));
    const char *const words[] = {"_needs_cudart_cpu_fa4e000.so: needs libcudart.so.99 (a CUDA library)",
                                 "looked in",
                                 dir,
                                 "/nowhere/in/particular",
                                 "system's library directories",
                                 NULL};
    check_refused("needs_cudart", KHUB_E_LOAD, words);
}
END_TEST

START_TEST(F3_sibling_by_origin)
{
    khub_kernel *kernel = fake_get("with_sibling");
    ck_assert_int_eq(ask(kernel, "ask_sibling"), 17);
    khub_kernel_close(kernel);
}
END_TEST

START_TEST(F3_current_directory_is_not_searched)
{
    char elsewhere[4096];
    fake_path(elsewhere, "%s/tests/fake/elsewhere", getenv("KHUB_BINARY"));
    ck_assert_int_eq(chdir(elsewhere), 0);
    ck_assert_int_eq(access("libcudart.so.99", F_OK), 0); /* it would be found here */
    const char *const words[] = {"needs libcudart.so.99", NULL};
    check_refused("needs_cudart", KHUB_E_LOAD, words);
}
END_TEST

START_TEST(F5_two_kernels_one_symbol_name)
{
    khub_kernel *one = fake_get("twin_one"), *two = fake_get("twin_two");
    ck_assert_int_eq(ask(one, "ask_helper"), 1);
    ck_assert_int_eq(ask(two, "ask_helper"), 2);
    ck_assert_int_eq(ask(one, "ask_state"), 1);
    ck_assert_int_eq(ask(two, "ask_state"), 2);
    khub_kernel_close(one);
    khub_kernel_close(two);
}
END_TEST

START_TEST(F5_in_the_other_order)
{
    khub_kernel *two = fake_get("twin_two"), *one = fake_get("twin_one");
    ck_assert_int_eq(ask(one, "ask_helper"), 1);
    ck_assert_int_eq(ask(two, "ask_helper"), 2);
    khub_kernel_close(one);
    khub_kernel_close(two);
}
END_TEST

START_TEST(F5_two_siblings_one_name)
{
    khub_kernel *first = fake_get("with_sibling"), *same = fake_get("with_same_sibling");
    ck_assert_int_eq(ask(same, "ask_sibling"), 17);
    const char *const words[] = {"_with_other_sibling_cpu_fa4e000.so: needs the libfakesibling.so beside it",
                                 "already has another library of that name", "/with_sibling/", NULL};
    check_refused("with_other_sibling", KHUB_E_LOAD, words);
    khub_kernel_close(first);
    khub_kernel_close(same);
}
END_TEST

START_TEST(F5_the_other_sibling_alone)
{
    khub_kernel *other = fake_get("with_other_sibling");
    ck_assert_int_eq(ask(other, "ask_sibling"), 18);
    khub_kernel_close(other);
}
END_TEST

/* What tests/fake/host.c prints for the twins. */
static void run_host(char *printed, size_t size)
{
    char command[16384], variant[256], one[4096], two[4096];
    const char *slash = strrchr(fake_file("good", NULL), '/');
    snprintf(variant, sizeof(variant), "%s", slash + 1);
    fake_path(one, "%s", fake_repository("twin_one"));
    fake_path(two, "%s", fake_repository("twin_two"));
    snprintf(command, sizeof(command), "'%s/tests/fake/host' '%s' '%s' '%s'", getenv("KHUB_BINARY"), variant,
             one, two);
    FILE *from = popen(command, "r");
    ck_assert_ptr_nonnull(from);
    size_t n = fread(printed, 1, size - 1, from);
    printed[n] = 0;
    ck_assert_int_eq(pclose(from), 0);
}

START_TEST(F5_a_host_that_exports_the_names)
{
    char printed[16384];
    run_host(printed, sizeof(printed));
    const char *sanitized = getenv("KHUB_SANITIZE");
    if (sanitized && !strcmp(sanitized, "1")) /* its runtime forbids what keeps them apart */
        ck_assert_msg(strstr(printed, "its symbol \"helper\" would be replaced by that of") ||
                          strstr(printed, "its symbol \"state\" would be replaced by that of"),
                      "%s", printed);
    else
        ck_assert_str_eq(printed, "1 1\n2 2\n");
}
END_TEST

static int count_runtimes(struct dl_phdr_info *info, size_t size, void *user)
{
    (void)size;
    *(int *)user += strstr(info->dlpi_name, "libtvm_ffi.so") != NULL;
    return 0;
}

START_TEST(F5_one_runtime)
{
    khub_kernel_close(fake_get("twin_one"));
    khub_kernel_close(fake_get("good"));
    int runtimes = 0;
    dl_iterate_phdr(count_runtimes, &runtimes);
    ck_assert_int_eq(runtimes, 1);
}
END_TEST

START_TEST(F5_a_runtime_that_is_there_already)
{
    char path[4096];
    fake_path(path, "%s/lib/libtvm_ffi.so", getenv("KHUB_PREFIX"));
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL); /* as a Python extension would */
    ck_assert_msg(handle != NULL, "%s", dlerror());
    setenv("KHUB_TVM_FFI", "/nowhere/libtvm_ffi.so", 1);
    khub_kernel *kernel = fake_get("good");
    ck_assert_int_eq(ask(kernel, "forty_two"), 42);
    khub_kernel_close(kernel);
    int runtimes = 0;
    dl_iterate_phdr(count_runtimes, &runtimes);
    ck_assert_int_eq(runtimes, 1);
    dlclose(handle);
}
END_TEST

START_TEST(F6_a_result_outlives_its_kernel)
{
    khub_kernel *kernel = fake_get("good");
    khub_function ones = fake_function(kernel, "ones"), alive = fake_function(kernel, "ones_alive");
    khub_value result, n = khub_arg_int(2), left;
    khub_error err = {0};
    ck_khub_ok(khub_function_call(&ones, &n, 1, &result, &err), &err);
    khub_kernel_close(kernel);
    ck_assert_float_eq(((const float *)khub_value_tensor(&result)->data)[1], 1);
    khub_value_release(&result); /* its deleter is code of the library */
    ck_khub_ok(khub_function_call(&alive, NULL, 0, &left, &err), &err);
    ck_assert_int_eq(left.as.i64, 0);
}
END_TEST

static void *thread_with_destructor(void *user)
{
    khub_kernel *kernel = fake_get("leaving");
    khub_function f = fake_function(kernel, "for_thread");
    khub_error err = {0};
    ck_khub_ok(khub_function_call(&f, NULL, 0, NULL, &err), &err);
    khub_kernel_close(kernel);
    return user;
}

START_TEST(F6_a_thread_that_used_it_ends)
{
    pthread_t thread;
    ck_assert_int_eq(pthread_create(&thread, NULL, thread_with_destructor, NULL), 0);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    khub_kernel *kernel = fake_get("leaving");
    ck_assert_int_eq(ask(kernel, "ended_threads"), 1);
    khub_kernel_close(kernel);
}
END_TEST

START_TEST(F6_the_process_ends_with_live_results)
{
    khub_kernel *leaving = fake_get("leaving"), *good = fake_get("good");
    khub_function f = fake_function(leaving, "for_process"), ones = fake_function(good, "ones");
    khub_error err = {0};
    khub_value result, n = khub_arg_int(1000);
    ck_khub_ok(khub_function_call(&f, NULL, 0, NULL, &err), &err);
    ck_khub_ok(khub_function_call(&ones, &n, 1, &result, &err), &err);
    khub_kernel_close(leaving);
    khub_kernel_close(good);
    int to[2];
    char said[200] = "";
    ck_assert_int_eq(pipe(to), 0);
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        dup2(to[1], 2);
        exit(7);
    }
    close(to[1]);
    ck_assert_int_ge(read(to[0], said, sizeof(said) - 1), 0);
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 7);
    ck_assert_str_eq(said, "the kernel's atexit function ran\n");
    khub_value_release(&result);
}
END_TEST

static long address_pages(void)
{
    long pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    ck_assert_int_eq(fscanf(f, "%ld", &pages), 1);
    fclose(f);
    return pages;
}

START_TEST(F6_a_thousand_times)
{
    fm_install();
    khub_kernel_close(fake_get("good"));
    void *handle = dlopen(fake_library("good"), RTLD_NOLOAD | RTLD_NOW);
    ck_assert_ptr_nonnull(handle);
    khub_kernel_close(fake_get("good"));
    long blocks = atomic_load(&fm_live), pages = address_pages();
    for (int i = 0; i < 1000; i++) {
        khub_kernel *kernel = fake_get("good");
        khub_function f = fake_function(kernel, "forty_two");
        ck_assert_ptr_eq(*(void **)&f.call, dlsym(handle, "__tvm_ffi_forty_two")); /* the same library */
        khub_kernel_close(kernel);
    }
    ck_assert_int_eq(atomic_load(&fm_live), blocks);
    ck_assert_int_le(address_pages() - pages, 2000); /* mapped anew it would be 4,000 at least */
}
END_TEST

START_TEST(F7_an_error_shorter_than_the_header_says)
{
    khub_kernel *kernel = fake_get("small_error");
    khub_function f = fake_function(kernel, "fail_small");
    khub_error err = {0};
    for (int i = 0; i < 3; i++)
        ck_khub_fails(khub_function_call(&f, NULL, 0, NULL, &err), &err, KHUB_E_KERNEL,
                      "KeyError: of an older release");
    ck_assert_int_eq(ask(kernel, "alive"), 0); /* released, by its own deleter */
    khub_kernel_close(kernel);
}
END_TEST

/* A copy of good's library, of which `length` bytes (-1: all) are taken and bytes may be changed. */
static const char *copy_of_good(long length, size_t at, const char *bytes, size_t count)
{
    static char file[32];
    strcpy(file, "/tmp/khub-load-XXXXXX.so");
    int made = mkstemps(file, 3);
    ck_assert_int_ge(made, 0);
    FILE *from = fopen(fake_library("good"), "rb"), *to = fdopen(made, "wb");
    ck_assert(from && to);
    for (int c; (c = getc(from)) != EOF && length != 0; length--)
        putc(c, to);
    if (count) {
        fseek(to, (long)at, SEEK_SET);
        fwrite(bytes, 1, count, to);
    }
    fclose(from);
    ck_assert_int_eq(fclose(to), 0);
    return file;
}

static void check_file(const char *path, int status, const char *words)
{
    const khub__library *library;
    khub_error err = {0};
    int rc = khub__library_open(&library, path, NULL, NULL, &err);
    ck_assert_msg(rc == status && strstr(err.message, words) && strstr(err.message, path),
                  "%s: %s (\"%s\" is expected)", khub_status_name(rc), err.message, words);
    ck_assert_ptr_null(library);
    if (strncmp(path, "/tmp/", 5) == 0) unlink(path);
}

START_TEST(F8_files_that_are_no_library)
{
    static const char pointer[] = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n";
    check_file(copy_of_good(0, 0, pointer, sizeof(pointer) - 1), KHUB_E_LOAD,
               "git-lfs pointer file, not the content");
    check_file(copy_of_good(0, 0, "", 0), KHUB_E_LOAD, "is empty: 0 bytes");
    check_file(copy_of_good(0, 0, "hello\nworld", 11), KHUB_E_LOAD,
               "is a text file, not a library; it starts with \"hello\"");
    check_file(copy_of_good(0, 0, "<!DOCTYPE html>", 15), KHUB_E_LOAD, "is a web page");
    check_file(copy_of_good(0, 0, "\xCF\xFA\xED\xFE....", 8), KHUB_E_LOAD, "is a library for macOS");
    check_file(copy_of_good(0, 0, "MZ\x90", 3), KHUB_E_LOAD, "is a library for Windows");
    check_file(copy_of_good(0, 0, "\x01\x02\x03", 3), KHUB_E_LOAD,
               "isn't a library: it starts with the bytes 01 02");
    check_file("/nowhere/x.so", KHUB_E_NOTFOUND, "can't open it");
    check_file("/tmp", KHUB_E_FORMAT, "is a directory, not a file");
}
END_TEST

START_TEST(F8_for_another_machine)
{
    ElfW(Ehdr) good;
    FILE *from = fopen(fake_library("good"), "rb");
    ck_assert_uint_eq(fread(&good, sizeof(good), 1, from), 1);
    fclose(from);
    uint16_t other = good.e_machine == EM_AARCH64 ? EM_X86_64 : EM_AARCH64;
    check_file(copy_of_good(-1, offsetof(ElfW(Ehdr), e_machine), (const char *)&other, 2), KHUB_E_LOAD,
               other == EM_AARCH64 ? "is for another machine: aarch64, 64 bits; this process is"
                                   : "is for another machine: x86_64");
    check_file(copy_of_good(-1, EI_CLASS, "\x01", 1), KHUB_E_LOAD, "32 bits; this process is");
    check_file(copy_of_good(-1, EI_DATA, "\x02", 1), KHUB_E_LOAD, "other byte order");
    uint16_t object = ET_REL, program = ET_EXEC;
    check_file(copy_of_good(-1, offsetof(ElfW(Ehdr), e_type), (const char *)&object, 2), KHUB_E_LOAD,
               "is an object file, not a shared");
    check_file(copy_of_good(-1, offsetof(ElfW(Ehdr), e_type), (const char *)&program, 2), KHUB_E_LOAD,
               "is a program, not a shared");
}
END_TEST

START_TEST(F8_truncated)
{
    FILE *from = fopen(fake_library("good"), "rb");
    ck_assert_int_eq(fseek(from, 0, SEEK_END), 0);
    long whole = ftell(from);
    fclose(from);
    check_file(copy_of_good(3, 0, NULL, 0), KHUB_E_LOAD, "is truncated: it has 3 bytes");
    check_file(copy_of_good(20, 0, NULL, 0), KHUB_E_LOAD, "its first headers end at byte 64");
    check_file(copy_of_good(100, 0, NULL, 0), KHUB_E_LOAD, "its segment headers end at byte");
    check_file(copy_of_good(whole / 2, 0, NULL, 0), KHUB_E_LOAD, "is truncated");
    check_file(copy_of_good(whole - 1, 0, NULL, 0), KHUB_E_LOAD,
               "its section headers end at byte"); /* the loader wouldn't mind */
}
END_TEST

/* Any length and any damaged byte of the headers: refused or loaded, never a crash of ours. What the loader
 * does with damage that we can't see is its own affair, so only those are tried that don't reach it. */
START_TEST(F8_every_length_of_the_start)
{
    for (long length = 0; length < 1200; length += 13) {
        const khub__library *library;
        khub_error err = {0};
        const char *path = copy_of_good(length, 0, NULL, 0);
        ck_assert_int_eq(khub__library_open(&library, path, NULL, NULL, &err), KHUB_E_LOAD);
        unlink(path);
    }
}
END_TEST

START_TEST(F8_without_the_function)
{
    khub_kernel *kernel = fake_get("twin_one"), *empty = fake_get("empty");
    khub_function f;
    khub_error err = {0};
    ck_khub_fails(khub_kernel_function(&f, kernel, "helper", &err), &err, KHUB_E_NOTFOUND,
                  "has no function \"helper\"; it has: ask_helper, ask_state");
    ck_assert_ptr_null(*(void **)&f.call);
    ck_khub_fails(khub_kernel_function(&f, empty, "f", &err), &err, KHUB_E_NOTFOUND,
                  "has no function \"f\", nor any other: the library exports none");
    khub_kernel_close(kernel);
    khub_kernel_close(empty);
}
END_TEST

START_TEST(compiled_modules_are_refused)
{
    const char *const words[] = {"compiled tvm-ffi module", "__tvm_ffi__library_ctx", NULL};
    check_refused("module", KHUB_E_UNSUPPORTED, words);
}
END_TEST

START_TEST(a_library_that_was_replaced)
{
    khub_kernel_close(fake_get("good")); /* brings libtvm_ffi */
    const char *path = copy_of_good(-1, 0, NULL, 0);
    const khub__library *library, *again;
    khub_error err = {0};
    ck_khub_ok(khub__library_open(&library, path, NULL, NULL, &err), &err);
    ck_khub_ok(khub__library_open(&again, path, NULL, NULL, &err), &err);
    ck_assert_ptr_eq(library, again);
    char other[4096];
    fake_path(other, "%s.new", path);
    FILE *to = fopen(other, "wb");
    fputs("another file", to);
    fclose(to);
    ck_assert_int_eq(rename(other, path), 0);
    ck_khub_fails(khub__library_open(&again, path, NULL, NULL, &err), &err, KHUB_E_LOAD,
                  "was replaced after this process loaded it");
    unlink(path);
}
END_TEST

static void collect(void *user, const khub_log_record *record)
{
    char *all = user;
    size_t n = strlen(all);
    if (strstr(record->object, "good") || strstr(record->object, "in_call"))
        snprintf(all + n, 4000 - n, "%s\n", record->stage);
}

START_TEST(what_is_at_work_is_logged)
{
    char stages[4000] = "";
    khub_set_log(collect, stages);
    khub_kernel *kernel = fake_get("in_call");
    ck_assert_str_eq(stages, "load\nloaded\n");
    stages[0] = 0;
    ck_assert_ptr_nonnull(khub_kernel_function_info(kernel, 0));
    khub_set_log(NULL, NULL);
    ck_assert_str_eq(stages, "call\ncalled\n");
    khub_kernel_close(kernel);
}
END_TEST

static void on_crash(int number)
{
    (void)number;
}

/* libtvm_ffi would take SIGSEGV, the kernel SIGFPE. */
START_TEST(the_program_keeps_its_handlers)
{
    static const int numbers[] = {SIGSEGV, SIGABRT, SIGFPE};
    struct sigaction mine = {.sa_handler = on_crash, .sa_flags = SA_ONSTACK}, found;
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(sigaction(numbers[i], &mine, NULL), 0);
    khub_kernel_close(fake_get("takes_handlers"));
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(sigaction(numbers[i], NULL, &found), 0);
        ck_assert(found.sa_handler == on_crash);
        ck_assert_int_eq(found.sa_flags & SA_ONSTACK, SA_ONSTACK);
    }
}
END_TEST

static void *get_good(void *user)
{
    khub_kernel *kernel = fake_get("good");
    khub_function f = fake_function(kernel, "forty_two");
    khub_kernel_close(kernel);
    memcpy(user, &f.call, sizeof(f.call));
    return NULL;
}

START_TEST(threads_get_the_same_library)
{
    enum { THREADS = 8 };
    pthread_t threads[THREADS];
    void *calls[THREADS];
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, get_good, &calls[i]), 0);
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
    for (int i = 1; i < THREADS; i++)
        ck_assert_ptr_eq(calls[i], calls[0]);
}
END_TEST

UNIT("kernel_load", F2_undefined_symbols, F2_providers, F3_missing_library, F3_sibling_by_origin,
     F3_current_directory_is_not_searched, F5_two_kernels_one_symbol_name, F5_in_the_other_order,
     F5_two_siblings_one_name, F5_the_other_sibling_alone, F5_a_host_that_exports_the_names, F5_one_runtime,
     F5_a_runtime_that_is_there_already, F6_a_result_outlives_its_kernel, F6_a_thread_that_used_it_ends,
     F6_the_process_ends_with_live_results, F6_a_thousand_times, F7_an_error_shorter_than_the_header_says,
     F8_files_that_are_no_library, F8_for_another_machine, F8_truncated, F8_every_length_of_the_start,
     F8_without_the_function, compiled_modules_are_refused, a_library_that_was_replaced,
     what_is_at_work_is_logged, the_program_keeps_its_handlers, threads_get_the_same_library)
