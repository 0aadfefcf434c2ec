/* One khub_kernelize of several kernels of a Hub, for the thread sanitizer; test_kernelize.py is the Hub and
 * judges.
 *
 *     race_kernelize ROUNDS STOP NAME...   a slot for each NAME; progress says stop once it was told STOP
 * times (0: never)
 *
 * A line for each round: its status, how often progress was told, and how often in another thread than the
 * caller's; then a line for each slot: the kernel that serves it, or why none does. The environment says
 * where the Hub and the cache are. */
#include <khub/khub.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const layers_there[] = {"GeLU",      "SiLU",    "ReLU",       "GeluTanh",
                                           "QuickGELU", "Softmax", "SiluAndMul", "GeluAndMul"};
enum { MOST = sizeof(layers_there) / sizeof(*layers_there) };

static pthread_t caller;
static int told, elsewhere, stop_at;
static pthread_mutex_t inside = PTHREAD_MUTEX_INITIALIZER;

static int on_progress(void *user, const khub_progress *progress)
{
    (void)user;
    if (pthread_mutex_trylock(&inside) != 0 || !pthread_equal(caller, pthread_self()) || !*progress->what ||
        progress->files_done > progress->files_total)
        elsewhere++;
    else
        pthread_mutex_unlock(&inside);
    return ++told == stop_at;
}

static int nothing(void *self, const khub_value *args, int32_t n, khub_value *result)
{
    (void)self, (void)args, (void)n, (void)result;
    return 0;
}

static char *mapping_of(char **names, int count)
{
    char *text = malloc((size_t)count * 1000 + 3), *at = text;
    if (!text) exit(2);
    for (int i = 0; i < count; i++)
        at += snprintf(at, 1000, "%c\"%s\":{\"kernel\":\"%s\",\"function\":\"ask_state\"}", i ? ',' : '{',
                       layers_there[i], names[i]);
    memcpy(at, "}", 2);
    return text;
}

static void print_slots(const khub_report *report)
{
    const khub_slot_report *line;
    for (size_t i = 0; report && (line = khub_report_at(report, i)) != NULL; i++)
        printf("%s %s\n", line->kernel ? line->kernel : "-", line->kernel ? line->commit : line->reason);
}

static void one_round(khub_layers *layers, const khub_mapping *mapping)
{
    khub_error err = {0};
    khub_hub_options hub;
    khub_kernelize_options options;
    khub_report *report = NULL;
    KHUB_INIT(&hub);
    KHUB_INIT(&options);
    hub.progress = on_progress;
    options.hub = &hub;
    options.mapping = mapping;
    told = elsewhere = 0;
    int rc = khub_kernelize(layers, &options, &report, &err);
    printf("%s %d %d %s\n", khub_status_name(rc), told, elsewhere, err.message);
    print_slots(report);
    khub_report_free(report);
}

int main(int argc, char **argv)
{
    khub_error err = {0};
    khub_layers *layers;
    int count = argc - 3;
    if (count < 1 || count > MOST || khub_layers_new(&layers, &err) != KHUB_OK) return 2;
    caller = pthread_self();
    stop_at = atoi(argv[2]);
    for (int i = 0; i < count; i++) /* the layers' names do as paths */
        if (khub_layers_add(layers, layers_there[i], layers_there[i], (khub_function){nothing, NULL}, NULL,
                            NULL, &err) != KHUB_OK)
            return 2;
    char *text = mapping_of(argv + 3, count);
    khub_mapping *mapping;
    if (khub_mapping_parse(&mapping, text, NULL, &err) != KHUB_OK) return 2;
    for (int i = 0; i < atoi(argv[1]); i++)
        one_round(layers, mapping);
    khub_mapping_free(mapping);
    free(text);
    khub_layers_free(layers);
    return 0;
}
