#include "device.h"

#include <stdlib.h>

int cli_device_put(cli_device *device, const cli_argument *arguments, int count, khub_value *values,
                   khub_error *err)
{
    int rc = KHUB_OK;
    device->arguments = calloc((size_t)count + 1, sizeof(*device->arguments));
    if (!device->arguments) return cli_no_memory(err);
    for (; device->count < count && rc == KHUB_OK; device->count++) {
        const khub_tensor *from = khub_value_tensor(&arguments[device->count].value);
        khub_gpu_array *to = &device->arguments[device->count];
        if (!from) continue;
        rc = khub_gpu_array_new(to, device->gpu, from, err);
        if (rc == KHUB_OK) rc = khub_gpu_put(device->gpu, &to->tensor, from, err);
        values[device->count] = khub_arg_tensor(&to->tensor);
    }
    return rc;
}

/* One that came back; what isn't a tensor, or is one on the host, stays as it is. */
static int take_result(cli_device *device, size_t i, khub_error *err)
{
    const khub_tensor *from = khub_value_tensor(&device->results[i]);
    khub_array *to = &device->hosts[i];
    if (!from || from->device.type == KHUB_DEVICE_CPU) return KHUB_OK;
    int rc = khub_array_new(to, from->dtype, from->ndim, from->shape, err);
    if (rc == KHUB_OK) rc = khub_gpu_take(device->gpu, &to->tensor, from, err);
    device->results[i] = khub_arg_tensor(&to->tensor);
    return rc;
}

int cli_device_take(cli_device *device, const cli_argument *arguments, const khub_value *items, size_t count,
                    khub_error *err)
{
    int rc = KHUB_OK;
    device->results = calloc(count + 1, sizeof(*device->results));
    device->hosts = calloc(count + 1, sizeof(*device->hosts));
    if (!device->results || !device->hosts) return cli_no_memory(err);
    device->result_count = count;
    if (count) memcpy(device->results, items, count * sizeof(*items));
    for (int i = 0; i < device->count && rc == KHUB_OK; i++)
        if (arguments[i].name)
            rc = khub_gpu_take(device->gpu, &arguments[i].array.tensor, &device->arguments[i].tensor, err);
    for (size_t i = 0; i < count && rc == KHUB_OK; i++)
        rc = take_result(device, i, err);
    return rc == KHUB_OK ? khub_gpu_synchronize(device->gpu, err) : rc;
}

void cli_device_free(cli_device *device)
{
    if (device->gpu) khub_gpu_synchronize(device->gpu, NULL); /* nothing uses the memory any more */
    for (int i = 0; i < device->count; i++)
        khub_gpu_array_free(&device->arguments[i]);
    for (size_t i = 0; i < device->result_count; i++)
        khub_array_free(&device->hosts[i]);
    free(device->arguments);
    free(device->results);
    free(device->hosts);
    khub_gpu_close(device->gpu);
}
