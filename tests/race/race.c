/* What many threads ask of khub at once, for the thread sanitizer; test_hub.py is the Hub and judges.
 *
 *     race_hub get ROUNDS NAME...      a thread for each NAME: khub_get at the same moment, then a function
 * of it race_hub download NAME...        a thread for each: khub_download of a model, all files race_hub
 * cancel WHO FILES NAME   one khub_download of a model, canceled once FILES of its files are there: by
 * another "thread" that sets a flag, or by the "callback" itself
 *
 * A line for each call: its status and what came of it. The environment says where the Hub and the cache are.
 */
#include <khub/khub.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOST = 64 };

static pthread_barrier_t start;
static atomic_uint logged;
static int rounds = 1;

static void count_line(void *user, const khub_log_record *record)
{
    (void)user;
    if (*record->text) atomic_fetch_add(&logged, 1);
}

typedef struct ask {
    const char *name;
    int status;
    char result[1000];
} ask;

static void fail(ask *a, int status, const khub_error *err)
{
    a->status = status;
    snprintf(a->result, sizeof(a->result), "%.900s", err->message);
}

/* 1 when add_one adds one; kernels without that function aren't called. */
static int adds_one(const khub_kernel *kernel, khub_error *err)
{
    khub_function add_one;
    float x[4] = {0, 1, 2, 3}, y[4] = {0};
    int64_t shape[] = {4};
    if (khub_kernel_function(&add_one, kernel, "add_one", err) != KHUB_OK) return 1;
    khub_tensor in = khub_tensor_f32(x, 1, shape), out = khub_tensor_f32(y, 1, shape);
    return khub_call(&add_one, err, khub_arg_tensor(&out), khub_arg_tensor(&in)) == KHUB_OK && y[3] == 4;
}

static void get_once(ask *a)
{
    khub_error err = {0}, other = {0};
    khub_kernel *kernel;
    int rc = khub_get(&kernel, a->name, NULL, &err);
    if (rc != KHUB_OK) {
        fail(a, rc, &err);
        return;
    }
    if (adds_one(kernel, &other))
        snprintf(a->result, sizeof(a->result), "%s", khub_kernel_library(kernel));
    else
        fail(a, KHUB_E_KERNEL, &other);
    khub_kernel_close(kernel);
}

static void *get(void *user)
{
    ask *a = user;
    for (int i = 0; i < rounds && a->status == KHUB_OK; i++) {
        pthread_barrier_wait(&start);
        get_once(a);
    }
    return NULL;
}

static int download_with(ask *a, const khub_hub_options *hub)
{
    khub_error err = {0};
    khub_snapshot *snapshot;
    khub_download_options options;
    KHUB_INIT(&options);
    options.hub = hub;
    options.model = 1;
    int rc = khub_download(&snapshot, a->name, &options, &err);
    if (rc == KHUB_OK)
        snprintf(a->result, sizeof(a->result), "%s", khub_snapshot_path(snapshot));
    else
        fail(a, rc, &err);
    khub_snapshot_free(snapshot);
    return rc;
}

static void *download(void *user)
{
    pthread_barrier_wait(&start);
    download_with(user, NULL);
    return NULL;
}

static void say(const ask *a)
{
    printf("%s %s %s\n", khub_status_name(a->status), a->name, a->result);
}

static int side_by_side(void *(*work)(void *), char **names, int count)
{
    static ask asks[MOST];
    pthread_t threads[MOST];
    pthread_barrier_init(&start, NULL, (unsigned)count);
    for (int i = 0; i < count; i++) {
        asks[i].name = names[i];
        if (pthread_create(&threads[i], NULL, work, &asks[i]) != 0) return 1;
    }
    for (int i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < count; i++)
        say(&asks[i]);
    return 0;
}

/* What the one who fetches and the one who cancels share. */
static struct {
    unsigned from; /* files that are there when it is canceled */
    int by_callback;
    atomic_uint files, looks, looks_after;
    atomic_int canceled;
    _Atomic int64_t canceled_us;
} cancel;

static int64_t now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static void cancel_now(void)
{
    atomic_store(&cancel.canceled_us, now_us());
    atomic_store(&cancel.canceled, 1);
}

static int look(void *user, const khub_progress *progress)
{
    (void)user;
    atomic_fetch_add(&cancel.looks, 1);
    atomic_store(&cancel.files, progress->files_total > 1 ? progress->files_done : 0);
    if (cancel.by_callback && progress->files_done >= cancel.from && progress->files_total > 1) cancel_now();
    if (!atomic_load(&cancel.canceled)) return 0;
    atomic_fetch_add(&cancel.looks_after, 1);
    return 1;
}

static void *cancel_from_outside(void *user)
{
    const struct timespec while_ = {0, 200000};
    (void)user;
    while (atomic_load(&cancel.files) < cancel.from)
        nanosleep(&while_, NULL);
    cancel_now();
    return NULL;
}

/* "STATUS NAME ..." and then how often progress was told after the cancel, and the milliseconds that it took.
 */
static int canceled_download(const char *name)
{
    ask a = {.name = name};
    pthread_t thread;
    khub_hub_options hub;
    const int by_thread = !cancel.by_callback;
    KHUB_INIT(&hub);
    hub.progress = look;
    if (by_thread && pthread_create(&thread, NULL, cancel_from_outside, NULL) != 0) return 1;
    download_with(&a, &hub);
    double took_ms = (double)(now_us() - atomic_load(&cancel.canceled_us)) / 1000;
    if (by_thread) {
        atomic_store(&cancel.files, cancel.from); /* it ends, whatever became of the download */
        pthread_join(thread, NULL);
    }
    say(&a);
    printf("%u %u %.1f\n", atomic_load(&cancel.looks), atomic_load(&cancel.looks_after), took_ms);
    return 0;
}

int main(int argc, char **argv)
{
    const char *what = argc > 2 ? argv[1] : "";
    khub_set_log(count_line, NULL);
    if (strcmp(what, "get") == 0 && argc > 3 && argc - 3 <= MOST) {
        rounds = atoi(argv[2]);
        return side_by_side(get, argv + 3, argc - 3);
    }
    if (strcmp(what, "download") == 0 && argc - 2 <= MOST) return side_by_side(download, argv + 2, argc - 2);
    if (strcmp(what, "cancel") == 0 && argc == 5) {
        cancel.by_callback = strcmp(argv[2], "callback") == 0;
        cancel.from = (unsigned)atoi(argv[3]);
        return canceled_download(argv[4]);
    }
    return 2;
}
