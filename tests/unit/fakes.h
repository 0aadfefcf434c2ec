/* The fake kernels of tests/fake, found by the build directory. */
#ifndef FAKES_H
#define FAKES_H

#include "unit.h"

#include <khub/kernel.h>

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/utsname.h>

/* Writes a path that must fit. */
static inline void KHUB_PRINTF(2, 3) fake_path(char path[4096], const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vsnprintf(path, 4096, format, args);
    va_end(args);
    ck_assert(n > 0 && n < 4096);
}

/* The repository NAME. Static. */
static inline const char *fake_repository(const char *name)
{
    static char path[4096];
    const char *binary = getenv("KHUB_BINARY");
    ck_assert_msg(binary != NULL, "KHUB_BINARY isn't set: run by ctest, or set it to the build directory");
    fake_path(path, "%s/tests/fake/repos/%s", binary, name);
    return path;
}

/* The build directory of NAME, and a file in it (NULL: the directory). Static. */
static inline const char *fake_file(const char *name, const char *file)
{
    static char path[4096];
    struct utsname machine;
    uname(&machine);
    fake_path(path, "%s/build/tvm-ffi01-cpu-%s-linux%s%s", fake_repository(name), machine.machine,
              file ? "/" : "", file ? file : "");
    return path;
}

/* The library of NAME. Static. */
static inline const char *fake_library(const char *name)
{
    char file[256];
    snprintf(file, sizeof(file), "_%s_cpu_fa4e000.so", name);
    return fake_file(name, file);
}

/* This machine as far as the choice needs it, without looking. */
static inline khub_platform *fake_platform(void)
{
    struct utsname machine;
    uname(&machine);
    char json[256];
    snprintf(json, sizeof(json), "{\"os\":\"linux\",\"arch\":\"%s\",\"backend\":\"cpu\",\"tvm_ffi\":\"0.1\"}",
             machine.machine);
    khub_platform *platform;
    khub_error err = {0};
    ck_khub_ok(khub_platform_parse(&platform, json, strlen(json), "fake", &err), &err);
    return platform;
}

static inline int fake_get_error(khub_kernel **kernel, const char *name, khub_error *err)
{
    khub_platform *platform = fake_platform();
    khub_get_options options;
    KHUB_INIT(&options);
    options.platform = platform;
    int rc = khub_get(kernel, fake_repository(name), &options, err);
    khub_platform_free(platform);
    return rc;
}

static inline khub_kernel *fake_get(const char *name)
{
    khub_kernel *kernel;
    khub_error err = {0};
    ck_khub_ok(fake_get_error(&kernel, name, &err), &err);
    return kernel;
}

static inline khub_function fake_function(const khub_kernel *kernel, const char *name)
{
    khub_function f;
    khub_error err = {0};
    ck_khub_ok(khub_kernel_function(&f, kernel, name, &err), &err);
    return f;
}

#endif
