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

static void show(const char *what, const khub_platform_options *options)
{
    timing t = measure(detect, (void *)(uintptr_t)options, 2);
    printf("%-34s best %6.0f us   median %6.0f us\n", what, 1e6 * t.best, 1e6 * t.median);
}

/* Where there is no driver, nobody is asked and the first two are the same. */
int main(void)
{
    khub_platform_options cpu, anew;
    KHUB_INIT(&cpu);
    KHUB_INIT(&anew);
    cpu.no_accelerators = 1;
    anew.refresh = 1;
    show("detect, what drivers have answered", NULL);
    show("detect, drivers asked anew", &anew);
    show("detect, no accelerators", &cpu);
    return 0;
}
