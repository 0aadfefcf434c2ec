/* khub_platform_detect inside a process: what `khub variants` and every program that loads a kernel pays
 * once. */
#include <khub/platform.h>

#include "timing.h"

static void detect(void *options)
{
    khub_platform *p = NULL;
    khub_error err = {0};
    if (khub_platform_detect(&p, options, &err) != KHUB_OK) {
        fprintf(stderr, "%s\n", err.message);
        exit(1);
    }
    khub_platform_free(p);
}

int main(void)
{
    khub_platform_options cpu;
    KHUB_INIT(&cpu);
    cpu.no_accelerators = 1;
    timing whole = measure(detect, NULL, 2), part = measure(detect, &cpu, 2);
    printf("detect                    best %6.0f us   median %6.0f us\n", 1e6 * whole.best,
           1e6 * whole.median);
    printf("detect, no accelerators   best %6.0f us   median %6.0f us\n", 1e6 * part.best, 1e6 * part.median);
    return 0;
}
