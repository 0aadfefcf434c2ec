/* From a name to a device that is ready, and back. */
#include "gpu/gpu.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"
#include "gpu/bound.h"
#include "kernel/machine.h"
#include "platform/platform.h"
#include "variant/name.h"

#include <stdio.h>
#include <stdlib.h>

static const khub__gpu_driver *const drivers[] = {&khub__gpu_cuda, &khub__gpu_hip};

/* "cuda:1", "cu128", "rocm": the backend and the device's number. */
static int parse_name(const khub__backend **backend, int *index, const char *name, khub_error *err)
{
    char text[32] = "", *end = NULL;
    khub__version version;
    size_t n = strcspn(name, ":");
    if (n < sizeof(text)) memcpy(text, name, n);
    *backend = khub__backend_find(text);
    if (!*backend) *backend = khub__backend_parse(&version, text);
    unsigned long number = name[n] ? strtoul(name + n + 1, &end, 10) : 0;
    int is_number = !name[n] || (strspn(name + n + 1, "0123456789") > 0 && !*end && number < 1000000);
    *index = (int)number;
    if (*backend && is_number) return KHUB_OK;
    return khub__fail(err, KHUB_E_INVAL, "\"%s\" isn't the name of a device, as cuda:0 is", name);
}

static int find_driver(const khub__gpu_driver **out, const khub__backend *backend, khub_error *err)
{
    for (size_t i = 0; i < sizeof(drivers) / sizeof(*drivers); i++)
        if (!strcmp(drivers[i]->name, backend->name)) {
            *out = drivers[i];
            return KHUB_OK;
        }
    return khub__fail(err, KHUB_E_UNSUPPORTED, "%s: khub calls functions on the CPU, with CUDA and with ROCm",
                      backend->name);
}

/* What the helper process found of the backend; NULL: it wasn't asked. */
static int find_info(const khub_accelerator_info **out, const char *backend, const khub_platform *platform,
                     khub_error *err)
{
    int rc = platform ? KHUB_OK : khub__this_machine(&platform, 0, err);
    if (rc != KHUB_OK) return rc;
    const khub_accelerator_info *info = *out = khub__platform_accelerator_of(platform, backend);
    if (!info || info->presence == KHUB_FOUND) return KHUB_OK;
    return khub__fail(err, KHUB_E_NOTFOUND, "%s: there is no device: %s", backend,
                      info->reason ? info->reason : "no driver in reach");
}

/* What is known of the device besides. */
static void describe(khub_gpu *gpu, const khub_accelerator_info *info)
{
    const khub_device_info *device =
        info && (size_t)gpu->index < info->device_count ? &info->devices[gpu->index] : NULL;
    if (device && device->name) khub__copy(gpu->model, sizeof(gpu->model), device->name);
    if (device && device->arch) khub__copy(gpu->arch, sizeof(gpu->arch), device->arch);
}

static int open_stream(khub_gpu *gpu, khub_error *err)
{
    void *before;
    int rc = khub__gpu_enter(gpu, &before, err);
    if (rc != KHUB_OK) return rc;
    const khub__gpu_calls *calls = gpu->driver->calls;
    int code = calls->stream_new(&gpu->own_stream, GPU_STREAM_DEFAULT);
    gpu->stream = gpu->own_stream;
    if (code == 0) code = calls->host_alloc(&gpu->board, sizeof(unsigned), GPU_HOST_PORTABLE_MAPPED);
    if (code == 0) code = calls->host_address(&gpu->board_address, gpu->board, 0);
    if (code == 0) *(volatile unsigned *)gpu->board = 0;
    khub__gpu_leave(gpu, before);
    return code ? khub__gpu_fail(gpu, code, "making a stream", err) : KHUB_OK;
}

static int open_device(khub_gpu *gpu, khub_error *err)
{
    int count = 0, code = gpu->driver->calls->init(0);
    if (code == 0) code = gpu->driver->calls->count(&count);
    if (code == GPU_NO_DEVICE || (code == 0 && (gpu->index >= count || gpu->index < 0)))
        return khub__fail(err, KHUB_E_NOTFOUND, "%s: there is no such device: the driver has %d", gpu->name,
                          code ? 0 : count);
    if (code) return khub__gpu_fail(gpu, code, "starting the driver", err);
    code = gpu->driver->open(&gpu->context, gpu->index);
    if (code) return khub__gpu_fail(gpu, code, "opening it", err);
    gpu->is_open = 1;
    return open_stream(gpu, err);
}

int khub_gpu_open(khub_gpu **out, const char *name, const khub_platform *platform, khub_error *err)
{
    const khub__backend *backend;
    const khub_accelerator_info *info = NULL;
    const khub__gpu_driver *driver = NULL;
    int index, rc = khub__given("khub_gpu_open", out && name, err);
    if (rc != KHUB_OK) return rc;
    *out = NULL;
    rc = parse_name(&backend, &index, name, err);
    if (rc == KHUB_OK) rc = find_driver(&driver, backend, err);
    if (rc == KHUB_OK) rc = find_info(&info, backend->name, platform, err);
    if (rc == KHUB_OK) rc = khub__gpu_driver_load(driver, info ? info->path : NULL, err);
    if (rc != KHUB_OK) return rc;
    khub_gpu *gpu = khub__calloc(1, sizeof(*gpu));
    if (!gpu) return khub__fail_memory(err, "opening a device");
    gpu->driver = driver;
    gpu->index = index;
    gpu->users = 1;
    snprintf(gpu->name, sizeof(gpu->name), "%s:%d", driver->name, index);
    describe(gpu, info);
    rc = open_device(gpu, err);
    if (rc != KHUB_OK)
        khub__gpu_drop(gpu);
    else
        *out = gpu;
    return rc;
}

/* The backend of the kernel's build; "cpu" where its name has none. */
static const char *backend_of(const khub_kernel *kernel)
{
    khub__variant_name variant;
    return khub__variant_name_parse(&variant, khub_kernel_variant(kernel)) && variant.backend
               ? variant.backend->name
               : "cpu";
}

int khub__gpu_takes(const khub_gpu *gpu, const khub_kernel *kernel, khub_error *err)
{
    const char *backend = backend_of(kernel);
    if (!strcmp(backend, gpu->driver->name)) return KHUB_OK;
    return khub__fail(err, KHUB_E_UNSUPPORTED, "%s: the build %s is for %s, and can't be called on %s",
                      khub_kernel_name(kernel), khub_kernel_variant(kernel), backend, gpu->name);
}

int khub_gpu_open_for(khub_gpu **out, const khub_kernel *kernel, const char *name,
                      const khub_platform *platform, khub_error *err)
{
    const khub__backend *asked = NULL;
    int index, rc = khub__given("khub_gpu_open_for", out && kernel, err);
    if (rc != KHUB_OK) return rc;
    *out = NULL;
    const char *backend = backend_of(kernel);
    if (name) rc = parse_name(&asked, &index, name, err);
    if (rc == KHUB_OK && asked && strcmp(asked->name, backend) != 0)
        rc = khub__fail(err, KHUB_E_INVAL, "%s: the build %s is for %s", name, khub_kernel_variant(kernel),
                        backend);
    if (rc != KHUB_OK || !strcmp(backend, "cpu")) return rc;
    return khub_gpu_open(out, name ? name : backend, platform, err);
}

/* What fails here has no reader: the device may be lost. */
static void close_device(khub_gpu *gpu)
{
    void *before = NULL;
    int entered = gpu->driver->enter(gpu->context, &before) == 0;
    if (gpu->board) gpu->driver->calls->host_free(gpu->board);
    if (gpu->own_stream) gpu->driver->calls->stream_free(gpu->own_stream);
    if (entered) gpu->driver->leave(before);
    gpu->driver->close(gpu->index);
}

void khub__gpu_keep(khub_gpu *gpu)
{
    gpu->users++;
}

void khub__gpu_drop(khub_gpu *gpu)
{
    if (--gpu->users > 0) return;
    if (gpu->is_open) close_device(gpu);
    khub__free(gpu);
}

void khub_gpu_close(khub_gpu *gpu)
{
    if (!gpu) return;
    khub_gpu_synchronize(gpu, NULL);
    khub__gpu_drop(gpu);
}

const char *khub_gpu_name(const khub_gpu *gpu)
{
    return gpu->name;
}

const char *khub_gpu_model(const khub_gpu *gpu)
{
    return gpu->model;
}

const char *khub__gpu_arch(const khub_gpu *gpu)
{
    return gpu->arch;
}

khub_device khub_gpu_device(const khub_gpu *gpu)
{
    return (khub_device){gpu->driver->device_type, gpu->index};
}

void *khub_gpu_stream(const khub_gpu *gpu)
{
    return gpu->stream;
}
