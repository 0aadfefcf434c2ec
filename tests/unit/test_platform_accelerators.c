/* Accelerators through khub-probe and fake drivers (tests/drivers): a driver can do what it likes, the report
 * has one line more and nothing else happens. */
#include "failing_memory.h"
#include "root.h"

#include "platform/accelerators.h"
#include "platform/hints.h"
#include "platform/platform.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/prctl.h>
#include <time.h>

static void run(const char *format, ...) KHUB_PRINTF(1, 2);
static void run(const char *format, ...)
{
    char command[4096];
    va_list args;
    va_start(args, format);
    vsnprintf(command, sizeof(command), format, args);
    va_end(args);
    ck_assert_msg(system(command) == 0, "%s", command);
}

/* A directory named after a behaviour with a copy of the fake driver in it, put into LD_LIBRARY_PATH. */
static void install(const char *file, const char *behaviour)
{
    run("mkdir -p %s/%s && cp $KHUB_BINARY/tests/drivers/%s %s/%s/", root, behaviour, file, root, behaviour);
    char path[4096];
    const char *before = getenv("LD_LIBRARY_PATH");
    snprintf(path, sizeof(path), "%s%s%s/%s", before ? before : "", before ? ":" : "", root, behaviour);
    setenv("LD_LIBRARY_PATH", path, 1);
}

static void setup(void)
{
    static const char *const variables[] = {"LD_LIBRARY_PATH",      "CUDA_VISIBLE_DEVICES",
                                            "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES",
                                            "ZE_AFFINITY_MASK",     "HSA_OVERRIDE_GFX_VERSION"};
    ck_assert_ptr_nonnull(getenv("KHUB_BINARY"));
    for (size_t i = 0; i < sizeof(variables) / sizeof(*variables); i++)
        unsetenv(variables[i]);
    make_root();
    setenv("XDG_CACHE_HOME", root, 1); /* where answers are remembered */
}

static khub_platform *detect(uint32_t timeout_ms)
{
    khub_error err = {0};
    khub_platform *p;
    khub_platform_options options;
    KHUB_INIT(&options);
    options.probe_timeout_ms = timeout_ms;
    ck_khub_ok(khub_platform_detect(&p, &options, &err), &err);
    return p;
}

static int open_descriptors(void)
{
    DIR *dir = opendir("/proc/self/fd");
    int count = 0;
    while (readdir(dir))
        count++;
    closedir(dir);
    return count;
}

START_TEST(two_devices)
{
    setup();
    install("libcuda.so.1", "two");
    khub_platform *p = detect(0);
    ck_assert_str_eq(khub_platform_backend(p), "cu128");
    ck_assert_str_eq(khub_platform_device_arch(p, 0), "8.6");
    ck_assert_str_eq(khub_platform_device_arch(p, 1), "12.0");
    ck_assert_ptr_null(khub_platform_device_arch(p, 2));
    const khub_accelerator_info *cuda = khub_platform_accelerator(p, 0);
    ck_assert_str_eq(cuda->backend, "cuda");
    ck_assert_str_eq(cuda->version, "12.8");
    ck_assert_uint_eq(cuda->device_count, 2);
    ck_assert_str_eq(cuda->devices[0].name, "Fake \"Ampere\" \\ ??"); /* what isn't ASCII is "?" */
    ck_assert_uint_eq(cuda->devices[1].memory_bytes, 32ull << 30);
    ck_assert_str_eq(cuda->devices[0].uuid, "GPU-46000102-0304-0506-0708-090a0b0c0d0e");
    ck_assert_ptr_nonnull(strstr(cuda->path, "/two/libcuda.so.1"));
    ck_assert_ptr_null(cuda->reason);
    khub_platform_free(p);
    remove_root();
}
END_TEST

/* What each kind of driver becomes; the CPU counts in every row. */
START_TEST(drivers_that_do_not_work)
{
    static const struct {
        const char *behaviour;
        khub_presence presence;
        const char *words, *sanitized; /* `sanitized`: a sanitizer turns a signal into an exit */
    } table[] = {
        {"hang", KHUB_BROKEN, "the driver hung (cuInit) and was given up after 0.3 s", NULL},
        {"abort", KHUB_BROKEN, "the driver crashed (cuInit): signal 6, Aborted", "(cuInit)"},
        {"crash", KHUB_BROKEN, "the driver crashed (cuInit): signal 11, Segmentation fault", "(cuInit)"},
        {"exit", KHUB_BROKEN, "the driver ended its process (cuInit) with status 7", NULL},
        {"quit", KHUB_BROKEN, "the driver ended its process (cuInit) with status 0", NULL},
        {"babble", KHUB_BROKEN, "khub-probe's answer isn't understood", NULL},
        {"liar", KHUB_BROKEN, "khub-probe's answer isn't understood", NULL},
        {"stub", KHUB_ABSENT, "is the toolkit's stub, not a driver (cuInit says 34)", NULL},
        {"none", KHUB_ABSENT, "the driver sees no device (cuInit says 100)", NULL},
        {"zero", KHUB_ABSENT, "the driver sees no device", NULL},
        {"mismatch", KHUB_BROKEN,
         "cuInit says 803: system has unsupported display driver / cuda driver combination: library and "
         "kernel module are of different versions",
         NULL},
    };
    const char *sanitize = getenv("KHUB_SANITIZE");
    int sanitized = sanitize && !strcmp(sanitize, "1");
    setup();
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
        unsetenv("LD_LIBRARY_PATH");
        install("libcuda.so.1", table[i].behaviour);
        int before = open_descriptors();
        khub_platform *p = detect(strcmp(table[i].behaviour, "hang") ? 30000 : 300);
        ck_assert_int_eq(open_descriptors(), before);
        const khub_accelerator_info *cuda = khub_platform_accelerator(p, 0);
        ck_assert_msg(cuda->presence == table[i].presence, "%s: %s", table[i].behaviour, cuda->reason);
        const char *words = sanitized && table[i].sanitized ? table[i].sanitized : table[i].words;
        ck_assert_msg(strstr(cuda->reason, words) != NULL, "%s: %s", table[i].behaviour, cuda->reason);
        ck_assert_uint_eq(cuda->device_count, 0);
        ck_assert_str_eq(khub_platform_backend(p), "cpu");
        khub_platform_free(p);
        ck_assert_int_eq(waitpid(-1, NULL, WNOHANG), -1); /* nobody left behind, not even a zombie */
        ck_assert_int_eq(errno, ECHILD);
    }
    remove_root();
}
END_TEST

START_TEST(what_a_driver_prints_goes_nowhere)
{
    setup();
    char captured[512];
    snprintf(captured, sizeof(captured), "%s/out", root);
    install("libcuda.so.1", "print");
    fflush(stdout);
    int saved[2] = {dup(1), dup(2)};
    FILE *file = fopen(captured, "w+");
    dup2(fileno(file), 1);
    dup2(fileno(file), 2);
    khub_platform *p = detect(0);
    dup2(saved[0], 1);
    dup2(saved[1], 2);
    struct stat st;
    ck_assert_int_eq(fstat(fileno(file), &st), 0);
    ck_assert_int_eq(st.st_size, 0);
    ck_assert_str_eq(khub_platform_backend(p), "cu128");
    fclose(file);
    khub_platform_free(p);
    remove_root();
}
END_TEST

/* A process that a driver leaves behind doesn't keep us waiting: it is still there when we are done. */
START_TEST(a_drivers_daemon)
{
    setup();
    char log[512];
    long pid = 0;
    snprintf(log, sizeof(log), "%s/log", root);
    setenv("FAKE_DRIVER_LOG", log, 1);
    install("libcuda.so.1", "daemon");
    khub_platform *p = detect(600000);
    FILE *file = fopen(log, "r");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(fscanf(file, "cuInit %*d daemon %ld", &pid), 1);
    fclose(file);
    ck_assert_int_gt(pid, 1);
    ck_assert_int_eq(kill((pid_t)pid, SIGKILL), 0);
    ck_assert_str_eq(khub_platform_backend(p), "cu128");
    khub_platform_free(p);
    remove_root();
}
END_TEST

/* Case H2: the driver's library is never opened here, so a child of ours can use the device. */
START_TEST(driver_runs_elsewhere)
{
    setup();
    char log[512], line[100];
    snprintf(log, sizeof(log), "%s/log", root);
    setenv("FAKE_DRIVER_LOG", log, 1);
    install("libcuda.so.1", "two");
    install("libamdhip64.so.6", "two");
    install("libze_loader.so.1", "max");
    khub_platform *p = detect(0);
    FILE *file = fopen(log, "r");
    ck_assert_ptr_nonnull(file);
    int calls = 0;
    for (long pid = 0; fgets(line, sizeof(line), file); calls++) {
        ck_assert_int_eq(sscanf(line, "%*s %ld", &pid), 1);
        ck_assert_int_ne(pid, getpid());
    }
    ck_assert_int_eq(calls, 3);
    fclose(file);
    ck_assert_str_eq(khub_platform_backend(p), "cu128"); /* CUDA before ROCm before XPU */
    khub_error err = {0};
    ck_khub_ok(khub_platform_select(p, "rocm", &err), &err);
    ck_assert_str_eq(khub_platform_backend(p), "rocm64");
    khub_platform_free(p);
    remove_root();
}
END_TEST

/* The toolkit's stub comes first in the path, the driver after it: the one that has a device counts. */
START_TEST(the_driver_with_a_device_wins)
{
    static const char *const first[] = {"stub", "none", "mismatch"};
    for (size_t i = 0; i < sizeof(first) / sizeof(*first); i++) {
        setup();
        install("libcuda.so.1", first[i]);
        install("libcuda.so.1", "two");
        khub_platform *p = detect(0);
        ck_assert_int_eq(khub_platform_accelerator(p, 0)->presence, KHUB_FOUND);
        ck_assert_ptr_nonnull(strstr(khub_platform_accelerator(p, 0)->path, "/two/"));
        khub_platform_free(p);
        remove_root();
    }
    /* when none has, the one that tells more */
    static const char *const pairs[][3] = {{"mismatch", "none", "803"},
                                           {"stub", "none", "sees no device"},
                                           {"none", "stub", "sees no device"},
                                           {"none", "mismatch", "803"}};
    for (size_t i = 0; i < sizeof(pairs) / sizeof(*pairs); i++) {
        setup();
        install("libcuda.so.1", pairs[i][0]);
        install("libcuda.so.1", pairs[i][1]);
        khub_platform *p = detect(0);
        const char *reason = khub_platform_accelerator(p, 0)->reason;
        ck_assert_msg(strstr(reason, pairs[i][2]) != NULL, "%s", reason);
        khub_platform_free(p);
        remove_root();
    }
}
END_TEST

START_TEST(files_that_are_no_driver)
{
    setup();
    run("mkdir %s/x && echo hello > %s/x/libcuda.so.1", root, root);
    setenv("LD_LIBRARY_PATH", root, 1);
    char path[512];
    snprintf(path, sizeof(path), "%s/x", root);
    setenv("LD_LIBRARY_PATH", path, 1);
    khub_platform *p = detect(0);
    const khub_accelerator_info *cuda = khub_platform_accelerator(p, 0);
    ck_assert_int_eq(cuda->presence, KHUB_BROKEN);
    ck_assert_ptr_nonnull(strstr(cuda->reason, "the loader refuses it: "));
    khub_platform_free(p);
    run("cp $KHUB_BINARY/tests/drivers/libze_loader.so.1 %s/x/libcuda.so.1", root);
    p = detect(0);
    ck_assert_ptr_nonnull(strstr(khub_platform_accelerator(p, 0)->reason, "has no function cuInit"));
    khub_platform_free(p);
    remove_root();
}
END_TEST

/* Case H3. */
START_TEST(device_masks)
{
    static const struct {
        const char *mask, *words;
        khub_presence presence;
    } table[] = {
        {"", "hidden by CUDA_VISIBLE_DEVICES (it is set and empty)", KHUB_ABSENT},
        {"-1", "sees no device (cuDeviceGetCount says 100); hidden by CUDA_VISIBLE_DEVICES=-1", KHUB_ABSENT},
        {"0,foo", NULL, KHUB_FOUND},
        {"GPU-8932f937-d72c-4106-c12f-20bd9faed9f6", NULL, KHUB_FOUND},
        {"MIG-8932f937-d72c-4106-c12f-20bd9faed9f6", NULL, KHUB_FOUND}};
    setup();
    install("libcuda.so.1", "two");
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
        setenv("CUDA_VISIBLE_DEVICES", table[i].mask, 1);
        khub_platform *p = detect(0);
        const khub_accelerator_info *cuda = khub_platform_accelerator(p, 0);
        ck_assert_msg(cuda->presence == table[i].presence, "%s: %s", table[i].mask, cuda->reason);
        if (table[i].words) ck_assert_msg(strstr(cuda->reason, table[i].words) != NULL, "%s", cuda->reason);
        khub_platform_free(p);
    }
    unsetenv("LD_LIBRARY_PATH");
    install("libcuda.so.1", "none");
    khub_platform *p = detect(0);
    ck_assert_ptr_nonnull(
        strstr(khub_platform_accelerator(p, 0)->reason, "CUDA_VISIBLE_DEVICES is \"MIG-8932f937"));
    unsetenv("CUDA_VISIBLE_DEVICES");
    khub_platform_free(p);
    p = detect(0);
    ck_assert_ptr_null(strstr(khub_platform_accelerator(p, 0)->reason, "CUDA_VISIBLE_DEVICES"));
    khub_platform_free(p);
    remove_root();
}
END_TEST

START_TEST(rocm_devices)
{
    setup();
    install("libamdhip64.so.6", "two");
    setenv("HSA_OVERRIDE_GFX_VERSION", "11.0.0", 1);
    khub_platform *p = detect(0);
    const khub_accelerator_info *rocm = khub_platform_accelerator(p, 1);
    ck_assert_str_eq(khub_platform_backend(p), "rocm64");
    ck_assert_str_eq(rocm->devices[0].arch, "gfx942:sramecc+:xnack-");
    ck_assert_str_eq(rocm->devices[1].arch, "gfx1036");
    ck_assert_str_eq(rocm->devices[1].name, "AMD Radeon Graphics gfx1036");
    ck_assert_int_eq(rocm->devices[1].integrated, 1);
    ck_assert_str_eq(rocm->devices[0].name, "AMD Instinct MI300X");
    ck_assert_uint_eq(rocm->devices[0].memory_bytes, 192ull << 30);
    ck_assert_ptr_nonnull(strstr(rocm->reason, "HSA_OVERRIDE_GFX_VERSION is 11.0.0"));
    khub_platform_free(p);
    unsetenv("LD_LIBRARY_PATH");
    install("libamdhip64.so.6", "none");
    setenv("ROCR_VISIBLE_DEVICES", "1", 1);
    setenv("HIP_VISIBLE_DEVICES", "1", 1);
    p = detect(0);
    rocm = khub_platform_accelerator(p, 1);
    ck_assert_int_ne(rocm->presence, KHUB_FOUND);
    ck_assert_ptr_nonnull(strstr(rocm->reason, "the runtime sees no device"));
    ck_assert_ptr_nonnull(strstr(rocm->reason, "each of these selects from what the one before leaves"));
    khub_platform_free(p);
    remove_root();
}
END_TEST

START_TEST(xpu_devices)
{
    setup();
    install("libze_loader.so.1", "max");
    khub_platform *p = detect(0);
    const khub_accelerator_info *xpu = khub_platform_accelerator(p, 3);
    ck_assert_str_eq(xpu->backend, "xpu");
    ck_assert_int_eq(xpu->presence, KHUB_FOUND);
    ck_assert_ptr_null(xpu->version);
    ck_assert_str_eq(xpu->devices[0].name, "Fake Data Center GPU Max");
    ck_assert_str_eq(xpu->devices[0].arch, "12.60.7");
    ck_assert_ptr_nonnull(strstr(xpu->reason, "the version that builds are named after isn't known"));
    ck_assert_str_eq(khub_platform_backend(p), "xpu");
    char *json = khub_platform_json(p); /* a backend without version reads back */
    khub_platform *q;
    khub_error err = {0};
    ck_khub_ok(khub_platform_parse(&q, json, strlen(json), "p.json", &err), &err);
    ck_assert_str_eq(khub_platform_backend(q), "xpu");
    khub_free(json);
    khub_platform_free(p);
    khub_platform_free(q);
    unsetenv("LD_LIBRARY_PATH");
    install("libze_loader.so.1", "integrated");
    p = detect(0);
    xpu = khub_platform_accelerator(p, 3);
    ck_assert_int_eq(xpu->presence, KHUB_BROKEN);
    ck_assert_ptr_nonnull(strstr(xpu->reason, "only integrated GPUs"));
    ck_assert_uint_eq(xpu->device_count, 1);
    ck_assert_str_eq(khub_platform_backend(p), "cpu");
    khub_platform_free(p);
    remove_root();
}
END_TEST

START_TEST(cann_devices)
{
    static const struct {
        const char *behaviour, *backend, *words;
        khub_presence presence;
    } table[] = {
        {"two", "cann83", NULL, KHUB_FOUND},
        {"again", "cann83", NULL, KHUB_FOUND}, /* somebody initialised it before */
        {"unset", "cann", "ASCEND_HOME_PATH isn't set", KHUB_FOUND},
        {"words", "cann", "version that builds are named after isn't known", KHUB_FOUND},
        {"none", "cpu", "the runtime sees no device (aclrtGetDeviceCount says 107003)", KHUB_ABSENT},
        {"broken", "cpu", "aclInit says 507008: driver isn't ready", KHUB_BROKEN},
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
        setup();
        install("libascendcl.so", table[i].behaviour);
        khub_platform *p = detect(0);
        const khub_accelerator_info *cann = khub__platform_accelerator_of(p, "cann");
        ck_assert_msg(cann->presence == table[i].presence, "%s: %s", table[i].behaviour, cann->reason);
        ck_assert_str_eq(khub_platform_backend(p), table[i].backend);
        if (table[i].words)
            ck_assert_msg(strstr(cann->reason, table[i].words) != NULL, "%s", cann->reason);
        else
            ck_assert_str_eq(cann->devices[1].arch, "Ascend910B3");
        khub_platform_free(p);
        remove_root();
    }
}
END_TEST

/* Runs the probe on a fake Metal, which this system wouldn't ask for; its answer is in ROOT/answer. */
static const char *ask_metal(const char *behaviour)
{
    static char answer[1024];
    run("mkdir -p %s/%s && cp $KHUB_BINARY/tests/drivers/Metal %s/%s/", root, behaviour, root, behaviour);
    run("$KHUB_STAGE/libexec/khub/khub-probe metal %s/%s/Metal 5 3>%s/answer", root, behaviour, root);
    snprintf(answer, sizeof(answer), "%s/answer", root);
    FILE *file = fopen(answer, "r");
    answer[fread(answer, 1, sizeof(answer) - 1, file)] = 0;
    fclose(file);
    return answer;
}

START_TEST(metal_devices)
{
    setup();
    ck_assert_ptr_nonnull(
        strstr(ask_metal("m3"), "\"presence\": \"found\", \"version\": null, \"reason\": null"));
    ck_assert_ptr_nonnull(strstr(ask_metal("m3"),
                                 "{\"name\": \"Apple M3\", \"arch\": \"apple9\", \"uuid\": null, "
                                 "\"integrated\": false, \"memory_bytes\": 18253611008}"));
    ck_assert_ptr_nonnull(strstr(ask_metal("amd"), "only GPUs that aren't Apple's"));
    ck_assert_ptr_nonnull(strstr(ask_metal("none"), "Metal sees no device"));
    remove_root();
}
END_TEST

static void add_pci(const char *address, const char *vendor, const char *device)
{
    run("mkdir -p %s/sys/bus/pci/devices/%s && cd %s/sys/bus/pci/devices/%s && echo %s >vendor && echo %s "
        ">device",
        root, address, root, address, vendor, device);
}

/* Nobody is asked: the bus, /dev and the runtime's file tell. */
START_TEST(devices_that_are_not_asked)
{
    static const struct {
        const char *backend, *vendor, *device, *node, *library, *arch, *runtime;
        int at;
    } table[] = {{"neuron", "0x1d0f", "0x7364", "neuron0", "libnrt.so.1", "trn2", "libnrt.so.1 of", 5},
                 {"tpu", "0x1ae0", "0x0063", "accel0", "libtpu.so", "v5e", "libtpu.so of", 6},
                 {"tpu", "0x1ae0", "0x006f", "vfio/0", "libtpu.so", "v6e", "libtpu.so of", 6}};
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
        khub_accelerator_info found[KHUB__ACCELERATORS], *a = &found[table[i].at];
        khub__pool pool = {0};
        khub__places places;
        setup();
        run("mkdir -p %s/usr/lib %s/dev/vfio", root, root);
        add_pci("0000:00:1f.0", "0x8086", table[i].device); /* another vendor's */
        add_pci("0000:00:1e.0", table[i].vendor, "0xffff"); /* another product */
        prctl(PR_SET_NAME,
              table[i].vendor); /* its vendor is in a file that, as in /sys, doesn't tell its length */
        khub__places_open(&places, root, &pool);
        for (int step = 0; step < 5; step++) {
            if (step == 1) add_pci("0000:a0:00.0", table[i].vendor, table[i].device);
            if (step == 2) run("touch %s/dev/%s", root, table[i].node);
            if (step == 3)
                run("cp $KHUB_BINARY/tests/drivers/libcuda.so.1 %s/usr/lib/%s", root, table[i].library);
            if (step == 4) add_pci("0000:a0:01.0", table[i].vendor, table[i].device);
            if (step == 4)
                run("ln -sf /proc/%ld/comm %s/sys/bus/pci/devices/0000:a0:01.0/vendor", (long)getpid(), root);
            khub__find_accelerators(found, "linux", NULL, &places, 30000, 0, &pool);
            ck_assert_str_eq(a->backend, table[i].backend);
            ck_assert_int_eq(a->presence, step == 0 ? KHUB_ABSENT : step < 3 ? KHUB_BROKEN : KHUB_FOUND);
            ck_assert_uint_eq(a->device_count, step == 0 ? 0 : step < 4 ? 1 : 2);
            if (step > 0) ck_assert_str_eq(a->devices[0].arch, table[i].arch);
            static const char *const words[] = {"on the PCI bus", "driver"};
            if (step < 2) ck_assert_msg(strstr(a->reason, words[step]) != NULL, "%s", a->reason);
            if (step == 2) ck_assert_msg(strstr(a->reason, table[i].runtime) != NULL, "%s", a->reason);
            if (step > 2) ck_assert_ptr_null(a->reason);
        }
        khub__places_close(&places);
        khub__pool_free(&pool);
        remove_root();
    }
}
END_TEST

/* The kernel's own list of GPUs, where the runtime is missing; files that can't be understood are none. */
START_TEST(topology_of_amdkfd)
{
    khub__pool pool = {0};
    khub_accelerator_info rocm = {.backend = "rocm", .reason = "no libamdhip64.so"};
    setup();
    run("for i in 0 1 2 3; do mkdir -p %s/sys/class/kfd/kfd/topology/nodes/$i; done", root);
    run("cd %s/sys/class/kfd/kfd/topology/nodes && printf 'cpu_cores_count 16\\ngfx_target_version 0\\n' "
        ">0/properties && "
        "printf 'simd_count 1216\\ngfx_target_version 90402\\n' >1/properties && "
        "printf 'gfx_target_version 90010\\n' >2/properties && printf 'gfx_target_version nonsense\\n' "
        ">3/properties",
        root);
    khub__hint(&rocm, 0, NULL, root, &pool);
    ck_assert_str_eq(rocm.reason, "no libamdhip64.so; the kernel's driver lists gfx942, gfx90a");
    khub__pool_free(&pool);
    remove_root();
}
END_TEST

/* A device below what the Hub serves is found, and said to be so. */
START_TEST(a_device_that_is_too_old)
{
    khub__pool pool = {0};
    static const khub_device_info devices[] = {{.name = "GeForce GTX 1080", .arch = "6.1"},
                                               {.name = "V100", .arch = "7.0"}};
    khub_accelerator_info cuda = {
        .backend = "cuda", .presence = KHUB_FOUND, .version = "12.8", .devices = devices, .device_count = 2};
    khub__hint(&cuda, 0, NULL, "", &pool);
    ck_assert_str_eq(cuda.reason,
                     "kernels of the Hub are built for capability 7.0 and later, GeForce GTX 1080 has 6.1");
    khub__pool_free(&pool);
}
END_TEST

/* Case J1: one error of Level Zero, told apart by what is around. */
START_TEST(level_zero_uninitialized)
{
    khub__pool pool = {0};
    khub_accelerator_info xpu = {
        .backend = "xpu", .presence = KHUB_BROKEN, .reason = "zeInit says 0x78000001"};
    setup();
    khub_accelerator_info a = xpu;
    khub__hint(&a, 1, NULL, root, &pool);
    ck_assert_int_eq(a.presence, KHUB_ABSENT);
    ck_assert_ptr_nonnull(strstr(a.reason, "no render node"));
    run("mkdir -p %s/dev/dri && touch %s/dev/dri/card0 %s/dev/dri/renderD128", root, root, root);
    a = xpu;
    khub__hint(&a, 1, NULL, root, &pool);
    ck_assert_int_eq(a.presence, KHUB_BROKEN);
    ck_assert_ptr_nonnull(
        strstr(a.reason, "is there and permitted: Intel's driver (libze_intel_gpu.so.1) is missing"));
    if (getuid() == 0) { /* to root nothing is forbidden */
        run("chmod 755 %s && chmod 600 %s/dev/dri/renderD128", root, root);
        ck_assert_int_eq(setreuid(65534, (uid_t)-1), 0); /* access() asks for the real user */
    } else {
        run("chmod 0 %s/dev/dri/renderD128", root);
    }
    a = xpu;
    khub__hint(&a, 1, NULL, root, &pool);
    ck_assert_ptr_nonnull(strstr(a.reason, "renderD128 isn't permitted to this user"));
    if (geteuid() == 0) ck_assert_int_eq(setreuid(0, 0), 0);
    khub__pool_free(&pool);
    remove_root();
}
END_TEST

START_TEST(kfd_not_permitted)
{
    khub__pool pool = {0};
    khub_accelerator_info rocm = {.backend = "rocm", .reason = "the runtime sees no device"}, a = rocm;
    setup();
    khub__hint(&a, 1, NULL, root, &pool);
    ck_assert_int_eq(a.presence, KHUB_ABSENT);
    ck_assert_ptr_nonnull(strstr(a.reason, "/dev/kfd isn't there"));
    run("mkdir -p %s/dev %s/opt/rocm && touch %s/dev/kfd", root, root, root);
    a = rocm;
    khub__hint(&a, 1, NULL, root, &pool);
    ck_assert_str_eq(a.reason,
                     "the runtime sees no device; toolkit files found in /opt/rocm, which prove nothing");
    khub__pool_free(&pool);
    remove_root();
}
END_TEST

/* Case H4: WSL keeps its driver in a place of its own. */
START_TEST(wsl_driver)
{
    khub_accelerator_info found[KHUB__ACCELERATORS];
    khub__pool pool = {0};
    khub__places places;
    setup();
    run("mkdir -p %s/usr/lib/wsl/lib && cp $KHUB_BINARY/tests/drivers/libcuda.so.1 %s/usr/lib/wsl/lib/", root,
        root);
    khub__places_open(&places, root, &pool);
    khub__find_accelerators(found, "linux", NULL, &places, 30000, 0, &pool);
    ck_assert_int_eq(found[0].presence, KHUB_FOUND);
    ck_assert_ptr_nonnull(strstr(found[0].path, "/usr/lib/wsl/lib/libcuda.so.1"));
    khub__places_close(&places);
    khub__pool_free(&pool);
    remove_root();
}
END_TEST

START_TEST(no_driver_no_process)
{
    khub_accelerator_info found[KHUB__ACCELERATORS];
    khub_library_info cudart = {
        .name = "libcudart", .presence = KHUB_FOUND, .version = "12.8", .path = "/t/libcudart.so"};
    khub__pool pool = {0};
    khub__places places;
    setup();
    setenv("CUDA_VISIBLE_DEVICES", "", 1); /* hides nothing where there is nothing */
    run("mkdir -p %s/usr/lib", root);
    khub__places_open(&places, root, &pool);
    khub__find_accelerators(found, "linux", &cudart, &places, 1, 0, &pool);
    ck_assert_str_eq(found[0].reason,
                     "no libcuda.so.1 or libcuda.so in /usr/lib, /usr/lib/wsl/lib; CUDA runtime 12.8 found "
                     "(/t/libcudart.so), which needs a driver and a device");
    ck_assert_str_eq(found[3].reason, "no libze_loader.so.1 in /usr/lib");
    for (int i = 0; i < KHUB__ACCELERATORS; i++)
        ck_assert_int_eq(found[i].presence, KHUB_ABSENT);
    ck_assert_str_eq(found[2].reason, "no Metal.framework of macOS: it exists on darwin only, this is linux");
    khub__find_accelerators(found, "darwin", NULL, &places, 1, 0, &pool);
    ck_assert_str_eq(found[0].reason, "no CUDA driver: it exists on linux only, this is darwin");
    khub__places_close(&places);
    khub__pool_free(&pool);
    remove_root();
}
END_TEST

START_TEST(probe_is_missing)
{
    setup();
    setenv("KHUB_PREFIX", root, 1);
    install("libcuda.so.1", "two");
    khub_platform *p = detect(0);
    const khub_accelerator_info *cuda = khub_platform_accelerator(p, 0);
    ck_assert_int_eq(cuda->presence, KHUB_BROKEN);
    ck_assert_ptr_nonnull(strstr(cuda->reason, "can't ask: khub-probe doesn't start: No such file"));
    khub_platform_free(p);
    remove_root();
}
END_TEST

/* A host that lets the system collect its children. */
START_TEST(host_ignores_its_children)
{
    setup();
    install("libcuda.so.1", "two");
    install("libamdhip64.so.6", "exit");
    signal(SIGCHLD, SIG_IGN);
    khub_platform *p = detect(0);
    ck_assert_str_eq(khub_platform_backend(p), "cu128");
    ck_assert_ptr_nonnull(
        strstr(khub_platform_accelerator(p, 1)->reason, "the driver ended its process (hipGetDeviceCount)"));
    khub_platform_free(p);
    signal(SIGCHLD, SIG_DFL);
    remove_root();
}
END_TEST

START_TEST(accelerators_not_wanted)
{
    khub_error err = {0};
    khub_platform *p;
    khub_platform_options options;
    KHUB_INIT(&options);
    options.no_accelerators = 1;
    setup();
    install("libcuda.so.1", "hang");
    ck_khub_ok(khub_platform_detect(&p, &options, &err), &err);
    ck_assert_str_eq(khub_platform_backend(p), "cpu");
    ck_assert_ptr_null(khub_platform_accelerator(p, 0));
    khub_platform_free(p);
    options.struct_size = 0;
    ck_khub_fails(khub_platform_detect(&p, &options, &err), &err, KHUB_E_INVAL, "struct_size");
    remove_root();
}
END_TEST

static int do_detect(void *user, khub_error *err)
{
    khub_platform *p;
    (void)user;
    int rc = khub_platform_detect(&p, NULL, err);
    khub_platform_free(p);
    return rc;
}

/* With a driver, a virtual environment and headers to read, so that every place that takes memory is passed.
 */
/* How often the driver was begun, by the file that it writes to. */
static int times_begun(void)
{
    int count = 0;
    char path[512], line[256];
    snprintf(path, sizeof(path), "%s/log", root);
    FILE *file = fopen(path, "r");
    while (file && fgets(line, sizeof(line), file))
        count++;
    if (file) fclose(file);
    return count;
}

static void look_again(int expected, khub_presence presence)
{
    khub_platform *p = detect(0);
    const khub_accelerator_info *cuda = khub_platform_accelerator(p, 0);
    ck_assert_msg(cuda->presence == presence, "%s", cuda->reason);
    ck_assert_uint_eq(cuda->device_count, presence == KHUB_FOUND ? 2 : 0);
    if (presence == KHUB_FOUND)
        ck_assert_str_eq(cuda->devices[1].uuid, "GPU-47000102-0304-0506-0708-090a0b0c0d0e");
    khub_platform_free(p);
    ck_assert_int_eq(times_begun(), expected);
}

/* A driver is asked once until something changes that its answer depends on; what isn't whole or ours is
 * asked again, and nothing is left of what was remembered before the machine started. */
START_TEST(an_answer_is_remembered)
{
    static const char *const spoil[] = {"truncate -s -5 $f", "truncate -s 0 $f",
                                        "printf x | dd of=$f conv=notrunc bs=1 seek=3 2>/dev/null",
                                        "sed -i 's/\"found\"/\"fonud\"/' $f", "chmod 666 $f"};
    char variable[512];
    int asked = 1;
    setup();
    install("libcuda.so.1", "two");
    snprintf(variable, sizeof(variable), "%s/log", root);
    setenv("FAKE_DRIVER_LOG", variable, 1);
    look_again(asked, KHUB_FOUND);
    look_again(asked, KHUB_FOUND);
    for (size_t i = 0; i < sizeof(spoil) / sizeof(*spoil); i++) {
        run("f=$(ls %s/khub/accelerators/*) && %s", root, spoil[i]);
        look_again(++asked, KHUB_FOUND);
        look_again(asked, KHUB_FOUND);
    }
    run("touch %s/khub/accelerators/00000000-0123456789abcdef", root);
    setenv("CUDA_VISIBLE_DEVICES", "0,1", 1);
    look_again(++asked, KHUB_FOUND);
    unsetenv("CUDA_VISIBLE_DEVICES");
    look_again(asked, KHUB_FOUND); /* both are remembered */
    run("test $(ls %s/khub/accelerators | wc -l) = 2", root);
    run("cp %s/two/libcuda.so.1 %s/two/new && mv %s/two/new %s/two/libcuda.so.1", root, root, root, root);
    look_again(++asked, KHUB_FOUND);
    khub_platform_options options;
    khub_platform *p;
    KHUB_INIT(&options);
    options.refresh = 1;
    ck_assert_int_eq(khub_platform_detect(&p, &options, NULL), KHUB_OK);
    khub_platform_free(p);
    ck_assert_int_eq(times_begun(), ++asked);
    unsetenv("LD_LIBRARY_PATH");
    install("libcuda.so.1", "mismatch"); /* what is broken may be mended */
    look_again(++asked, KHUB_BROKEN);
    look_again(++asked, KHUB_BROKEN);
    unsetenv("FAKE_DRIVER_LOG");
    remove_root();
}
END_TEST

START_TEST(memory_runs_out)
{
    setup();
    install("libcuda.so.1", "two");
    install("libze_loader.so.1", "uninitialized");
    run("mkdir -p %s/venv/lib/python3.11/site-packages/tvm_ffi/lib && cp $KHUB_STAGE/lib/libkhub.so.0 "
        "%s/venv/lib/python3.11/site-packages/tvm_ffi/lib/libtvm_ffi.so",
        root, root);
    char path[512];
    snprintf(path, sizeof(path), "%s/venv", root);
    setenv("VIRTUAL_ENV", path, 1);
    khub_error err;
    int status;
    long n = 1;
    fm_install();
    json_set_alloc_funcs(malloc, free); /* jansson ignores some failures while it reads a string */
    fm_run(do_detect, NULL, 0, &status, &err);
    ck_assert_int_eq(status, KHUB_OK);
    long before = atomic_load(&fm_live);
    for (; fm_run(do_detect, NULL, n, &status, &err); n++) {
        fm_check_nomem(n, status, &err);
        ck_assert_int_eq(atomic_load(&fm_live), before);
    }
    ck_assert_int_gt(n, 5);
    remove_root();
}
END_TEST

UNIT("platform_accelerators", two_devices, drivers_that_do_not_work, what_a_driver_prints_goes_nowhere,
     a_drivers_daemon, driver_runs_elsewhere, the_driver_with_a_device_wins, files_that_are_no_driver,
     device_masks, rocm_devices, xpu_devices, cann_devices, metal_devices, devices_that_are_not_asked,
     topology_of_amdkfd, a_device_that_is_too_old, level_zero_uninitialized, kfd_not_permitted, wsl_driver,
     no_driver_no_process, probe_is_missing, host_ignores_its_children, accelerators_not_wanted,
     an_answer_is_remembered, memory_runs_out)
