/* khub platform: what this machine is, and why something isn't there. */
#include "cli.h"

#include <stdlib.h>

enum { WIDTH = 100, LABEL = 14, MAX_INDENT = 40 };

/* Starts a row: two blanks, a label, and blanks up to the column of the text. */
static void label(const char *name)
{
    cli_print(stdout, "  %-*s", LABEL - 2, name);
}

/* Prints words from column `indent` on, broken before WIDTH, and ends the line. A word may be longer. */
static void wrap(const char *text, size_t indent)
{
    size_t column = indent;
    while (*text) {
        size_t word = strcspn(text, " ");
        if (column > indent && column + 1 + word > WIDTH) {
            printf("\n%*s", (int)indent, "");
            column = indent;
        } else if (column > indent) {
            putchar(' ');
            column++;
        }
        cli_text(stdout, text, word);
        column += word;
        text += word + strspn(text + word, " ");
    }
    putchar('\n');
}

static const char *or_unknown(const char *text)
{
    return text ? text : "unknown";
}

/* "512 KiB", "256 MiB", "139 GiB". */
static void print_bytes(uint64_t bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    size_t unit = 0;
    double n = (double)bytes;
    while (n >= 1024 && unit + 1 < sizeof(units) / sizeof(*units))
        n /= 1024, unit++;
    printf(n == (double)(uint64_t)n || n >= 100 ? "%.0f %s" : "%.1f %s", n, units[unit]);
}

static void print_system(const khub_platform *p)
{
    label("system");
    cli_print(stdout, "%s %s", or_unknown(khub_platform_os(p)), or_unknown(khub_platform_arch(p)));
    if (khub_platform_macos(p)) cli_print(stdout, ", macOS %s", khub_platform_macos(p));
    if (khub_platform_glibc(p)) cli_print(stdout, ", glibc %s", khub_platform_glibc(p));
    putchar('\n');
}

static void print_caches(const khub_platform *p)
{
    static const char *const names[] = {"L1d", "L2", "L3"};
    int printed = 0;
    for (int level = 1; level <= 3; level++) {
        uint64_t bytes = khub_platform_cache_bytes(p, level);
        if (!bytes) continue;
        if (!printed) label("caches");
        printf("%s%s ", printed++ ? ", " : "", names[level - 1]);
        print_bytes(bytes);
    }
    if (printed) putchar('\n');
}

static void print_features(const khub_platform *p)
{
    char text[1024];
    size_t length = 0;
    const char *name;
    for (size_t i = 0; (name = khub_platform_feature(p, i)) != NULL && length < sizeof(text) - 1; i++) {
        int n = snprintf(text + length, sizeof(text) - length, "%s%s", i ? " " : "", name);
        if (n < 0 || (size_t)n >= sizeof(text) - length) break;
        length += (size_t)n;
    }
    if (!length) return;
    label("features");
    wrap(text, LABEL);
}

static void print_machine(const khub_platform *p)
{
    unsigned cores = khub_platform_cores(p), threads = khub_platform_threads(p);
    const char *limit = khub_platform_threads_reason(p);
    puts("machine");
    print_system(p);
    if (khub_platform_cpu_model(p)) {
        label("processor");
        wrap(khub_platform_cpu_model(p), LABEL);
    }
    print_features(p);
    print_caches(p);
    if (!threads) return;
    label("threads");
    printf("%u", threads);
    if (cores) printf(" of %u", cores);
    if (limit) cli_print(stdout, " (%s)", limit);
    putchar('\n');
}

/* The first column of a found or missing thing. */
static void print_presence(const char *name, khub_presence presence, const char *version)
{
    label(name);
    if (presence == KHUB_FOUND)
        cli_print(stdout, "%s", version ? version : "version unknown");
    else
        printf("%s", presence == KHUB_BROKEN ? "broken" : "not there");
}

/* What belongs to the row above, on lines of its own. */
static void print_more(const char *text)
{
    if (!text) return;
    printf("%*s", LABEL, "");
    wrap(text, LABEL);
}

static void print_libraries(const khub_platform *p)
{
    const khub_library_info *library;
    if (khub_platform_library(p, 0)) puts("\nlibraries");
    for (size_t i = 0; (library = khub_platform_library(p, i)) != NULL; i++) {
        print_presence(library->name, library->presence, library->version);
        if (library->how) cli_print(stdout, " (%s)", library->how);
        putchar('\n');
        if (library->presence == KHUB_FOUND) print_more(library->path);
        print_more(library->reason);
    }
}

static void print_device(const khub_device_info *device)
{
    cli_print(stdout, "%*s%s", LABEL, "", or_unknown(device->name));
    if (device->integrated) fputs(" (integrated)", stdout);
    if (device->arch) cli_print(stdout, ", %s", device->arch);
    if (device->memory_bytes) {
        printf(", ");
        print_bytes(device->memory_bytes);
    }
    putchar('\n');
}

static void print_accelerators(const khub_platform *p)
{
    const khub_accelerator_info *a;
    if (khub_platform_accelerator(p, 0)) puts("\naccelerators");
    for (size_t i = 0; (a = khub_platform_accelerator(p, i)) != NULL; i++) {
        print_presence(a->backend, a->presence, a->version);
        putchar('\n');
        print_more(a->path);
        for (size_t d = 0; d < a->device_count; d++)
            print_device(&a->devices[d]);
        print_more(a->reason);
    }
}

/* A place of certificates, and whether it can be used. */
static void print_certificates(const char *path, int is_directory, const char *from)
{
    FILE *file = is_directory ? NULL : fopen(path, "r");
    int there = is_directory ? !cli_not_a_directory(path) : file != NULL;
    if (file) fclose(file);
    label("trusts");
    cli_print(stdout, "%s", path);
    if (from) cli_print(stdout, " (%s)", from);
    puts(there ? "" : ": can't be read");
}

/* Opening libcurl takes longer than all else here, so it is asked for only with -v. */
static void print_network(void)
{
    khub_network_info info;
    khub_error err = {0};
    puts("\nnetwork");
    int found = khub_network(&info, &err) == KHUB_OK;
    print_presence("libcurl", found ? KHUB_FOUND : KHUB_ABSENT, info.version);
    puts(found && info.http2 ? ", HTTP/2" : "");
    print_more(found ? info.path : err.message);
    if (!found) return;
    label("TLS");
    cli_print(stdout, "%s\n", info.tls ? info.tls : "not there: this libcurl can't speak https");
    if (!info.tls) return;
    if (info.certificate_file) print_certificates(info.certificate_file, 0, info.certificate_file_from);
    if (info.certificate_dir) print_certificates(info.certificate_dir, 1, info.certificate_dir_from);
}

/* The digits at *text, which is moved past them. -1: none, or more than a version has. */
static long number(const char **text)
{
    char *end = NULL;
    long n = **text >= '0' && **text <= '9' ? strtol(*text, &end, 10) : -1;
    if (n < 0 || n > 999999999) return -1;
    *text = end;
    return n;
}

/* "0.1.16" as builds write it, "01". 0: unknown. */
static int squeezed(char buffer[32], const char *version)
{
    if (!version) return 0;
    long major = number(&version);
    if (major < 0 || *version++ != '.') return 0;
    long minor = number(&version);
    if (minor < 0) return 0;
    snprintf(buffer, 32, "%ld%ld", major, minor);
    return 1;
}

static void print_archs(const khub_platform *p)
{
    const char *arch;
    for (size_t i = 0; (arch = khub_platform_device_arch(p, i)) != NULL; i++)
        cli_print(stdout, "%s%s", i ? ", " : "  for devices of architecture ", arch);
    if (khub_platform_device_arch(p, 0)) putchar('\n');
}

/* What must be known before any build can fit; NULL: nothing is missing. */
static const char *why_no_build(const khub_platform *p)
{
    static const char *const versioned[] = {"cuda", "rocm", "xpu", "cann"};
    const char *backend = khub_platform_backend(p), *macos = khub_platform_macos(p);
    if (!backend || !khub_platform_arch(p) || !khub_platform_os(p))
        return "none: backend, architecture and system have to be known";
    for (size_t i = 0; i < sizeof(versioned) / sizeof(*versioned); i++)
        if (!strcmp(backend, versioned[i])) return "none: the backend's version isn't known";
    if (!strcmp(backend, "metal") && (!macos || number(&macos) < 26))
        return "none: metal builds need macOS 26.0";
    if (!khub_platform_tvm_ffi(p) && !khub_platform_torch(p))
        return "none: neither tvm-ffi nor torch is known";
    return NULL;
}

/* The names of builds, as far as the facts that decide are known. */
static void print_builds(const khub_platform *p)
{
    char version[32];
    const char *backend = khub_platform_backend(p), *arch = khub_platform_arch(p), *os = khub_platform_os(p);
    const char *none = why_no_build(p);
    puts("\nbuilds that fit");
    if (none) {
        printf("  %s\n", none);
        return;
    }
    if (squeezed(version, khub_platform_tvm_ffi(p)))
        cli_print(stdout, "  tvm-ffi%s-%s-%s-%s\n", version, backend, arch, os);
    if (squeezed(version, khub_platform_torch(p)))
        cli_print(stdout, "  torch%s-%s-%s-%s\n  torch-stable-abi%s-%s-%s-%s, and lower\n", version, backend,
                  arch, os, version, backend, arch, os);
    if (!strncmp(backend, "cu", 2)) puts("  and the same with a lower minor version of CUDA");
    print_archs(p);
}

static int print_json(const khub_platform *p)
{
    char *json = khub_platform_json(p);
    if (!json) return cli_fail_memory();
    fputs(json, stdout);
    khub_free(json);
    return EXIT_DONE;
}

static int run(int argc, char **argv)
{
    int json = 0;
    cli_machine machine = {0};
    const cli_option options[] = {
        {"--json", CLI_FLAG, &json}, {"--refresh", CLI_FLAG, &machine.refresh}, CLI_MACHINE_OPTIONS(machine)};
    int kept = cli_options(argc, argv, options, sizeof(options) / sizeof(*options));
    if (kept < 0) return EXIT_USAGE;
    if (kept > 0) return cli_usage(argv[0], "takes no argument, not \"%s\"", argv[1]);
    khub_error err = {0};
    khub_platform *platform;
    int status = EXIT_DONE;
    if (cli_platform(&platform, &machine, &err) != KHUB_OK) {
        status = cli_fail(&err);
    } else if (json) {
        status = print_json(platform);
    } else {
        print_machine(platform);
        print_libraries(platform);
        print_accelerators(platform);
        if (cli_verbose() && !machine.file) print_network();
        print_builds(platform);
    }
    khub_platform_free(platform);
    return status;
}

const cli_command cli_platform_command = {
    .name = "platform",
    .summary = "what this machine is: processor, libraries, accelerators",
    .help =
        "khub platform\n"
        "khub platform --json > this-machine.json\n"
        "khub platform --platform h100\n"
        "\n"
        "Shows what decides which builds of a kernel fit: the system, the processor and what it can do, the\n"
        "libraries and accelerators in reach, and why something isn't there. Drivers are asked in a process "
        "of\n"
        "their own, so a driver that hangs or crashes is a line in the report.\n"
        "\n"
        "    --json            as JSON; a file with it can be given to --platform\n" CLI_MACHINE_HELP
        "    --refresh         asks drivers anew; else an answer counts until the machine starts again, a "
        "driver's "
        "file,\n"
        "                      a device file or a variable that drivers read has changed\n"
        "    -v                also what the Hub would be reached with: libcurl, its TLS, whose certificates "
        "it "
        "trusts\n"
        "\n"
        "KHUB_TVM_FFI (path of libtvm_ffi) and KHUB_TORCH_DIR (folder of torch) name libraries to use.\n",
    .run = run,
};
