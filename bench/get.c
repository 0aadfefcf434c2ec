/* khub_get of a name of the Hub again in one process: at most 2 us. argv[1] is the name; the cache must have
 * it. */
#include "timing.h"

#include <khub/khub.h>

enum { ROUNDS = 200, GETS = 500 };

int main(int argc, char **argv)
{
    static double times[ROUNDS];
    if (argc < 2) {
        puts("get: run by khub_hub.py, which has a Hub");
        return 0;
    }
    for (int i = -1; i < ROUNDS; i++) {
        double start = seconds();
        for (int k = 0; k < (i < 0 ? 1 : GETS); k++) {
            khub_error err = {0};
            khub_kernel *kernel;
            khub_hub_options hub;
            khub_get_options options;
            KHUB_INIT(&hub);
            KHUB_INIT(&options);
            hub.trust = (const char *const[]){"org", NULL};
            options.hub = &hub;
            if (khub_get(&kernel, argv[1], &options, &err) != KHUB_OK) {
                fprintf(stderr, "%s\n", err.message);
                return 1;
            }
            khub_kernel_close(kernel);
        }
        if (i >= 0) times[i] = (seconds() - start) * 1e6 / GETS;
    }
    qsort(times, ROUNDS, sizeof(double), by_size);
    fprintf(stderr, "khub_get again in one process                   best %9.2f us   median %9.2f us\n",
            times[0], times[ROUNDS / 2]);
    return 0;
}
