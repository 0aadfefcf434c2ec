/* The arguments and results of a function that runs on a GPU, for a command line that has them on the host.
 */
#ifndef CLI_DEVICE_H
#define CLI_DEVICE_H

#include "arguments.h"

typedef struct cli_device {
    khub_gpu *gpu; /* NULL: the function runs on the host, and nothing else is used */
    khub_gpu_array *arguments;
    int count;
    khub_value *results; /* what came back, with tensors on the host */
    khub_array *hosts;   /* their memory */
    size_t result_count;
} cli_device;

/* Puts every tensor among the arguments onto the device; values[i] becomes the one there. */
int cli_device_put(cli_device *device, const cli_argument *arguments, int count, khub_value *values,
                   khub_error *err);

/* Takes the outputs among the arguments back, and copies of what came back, and waits until all is done. */
int cli_device_take(cli_device *device, const cli_argument *arguments, const khub_value *items, size_t count,
                    khub_error *err);

/* Frees everything but what came back, which must be gone by then. */
void cli_device_free(cli_device *device);

#endif
