/* Asks the client what its arguments say and prints what came of it as one JSON object, so that tests in
 * Python can look at it:
 *
 *     hub_driver [OPTIONS] refs|commit|tree|publisher|fetch|settings ARGUMENT...
 *     hub_driver fetch ORG/NAME COMMIT PATH[,SIZE[,ETAG]]...
 *
 * The endpoint and all else come from the environment. The waits before a new try are printed, and a
 * hundredth of each is waited. */
#include "base/file.h"
#include "base/hash.h"
#include "hub/client.h"
#include "hub/retry.h"

#include <khub/log.h>

#include <jansson.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static struct {
    khub__repo_kind kind;
    int cancel_ms, stall_ms, connect_ms, hurry, busy, repeat, slow_us, full;
    const char *have; /* a file whose first `have_bytes` are there already */
    size_t have_bytes;
    const char *token; /* handed over as the caller's */
} options = {.cancel_ms = -1, .repeat = 1};

static json_t *result, *waits, *logged, *files;
static struct timespec started;
static uint64_t last_tick_ms, longest_tick_ms, ticks;
static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;

static uint64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)(now.tv_sec - started.tv_sec) * 1000 + (uint64_t)(now.tv_nsec / 1000000) -
           (uint64_t)(started.tv_nsec / 1000000);
}

static uint32_t note_wait(uint32_t ms)
{
    json_array_append_new(waits, json_integer(ms));
    return ms / 100;
}

static void note_log(void *user, const khub_log_record *record)
{
    (void)user;
    pthread_mutex_lock(&log_lock);
    json_array_append_new(logged, json_sprintf("%s: %s: %s", record->stage, record->object, record->text));
    pthread_mutex_unlock(&log_lock);
}

static int tick(void *user, const khub_progress *progress)
{
    (void)user;
    uint64_t now = now_ms();
    if (ticks++ > 0 && now - last_tick_ms > longest_tick_ms) longest_tick_ms = now - last_tick_ms;
    last_tick_ms = now;
    json_object_set_new(result, "progress",
                        json_pack("{s:s?, s:I, s:I, s:i, s:i}", "what", progress->what, "bytes_done",
                                  (json_int_t)progress->bytes_done, "bytes_total",
                                  (json_int_t)progress->bytes_total, "files_done", (int)progress->files_done,
                                  "files_total", (int)progress->files_total));
    if (options.cancel_ms < 0 || now < (uint64_t)options.cancel_ms) return 0;
    json_object_set_new(result, "canceled_at_ms", json_integer((json_int_t)now));
    return 1;
}

/* A sink that hashes what it gets, and remembers what was called. */
typedef struct sink {
    const char *path;
    char etag[80];
    uint64_t size, bytes;
    khub__hash *hash;
    khub__hash_kind kind;
    json_t *calls;
    int busy, resumed;
} sink;

static void note(sink *s, const char *call)
{
    json_array_append_new(s->calls, json_string(call));
}

static void start_hash(sink *s, khub_error *err)
{
    khub__hash_free(s->hash);
    s->hash = NULL;
    s->bytes = 0;
    if (khub__hash_kind_of(&s->kind, s->etag) == 0) khub__hash_new(&s->hash, s->kind, s->size, err);
}

static int sink_begin(void *self, const char *etag, uint64_t size, uint64_t *have, khub_error *err)
{
    sink *s = self;
    if (s->busy > 0) {
        s->busy--;
        note(s, "busy");
        return KHUB__SINK_BUSY;
    }
    note(s, "begin");
    snprintf(s->etag, sizeof(s->etag), "%s", etag);
    s->size = size;
    start_hash(s, err);
    if (options.have && options.have_bytes <= size) {
        khub__bytes bytes;
        if (khub__file_read(&bytes, options.have, 1 << 30, err) != KHUB_OK) return err->code;
        khub__hash_add(s->hash, bytes.data, options.have_bytes);
        *have = s->bytes = options.have_bytes;
        s->resumed = 1;
        khub__bytes_free(&bytes);
    }
    return KHUB_OK;
}

static int sink_write(void *self, const void *data, size_t bytes, khub_error *err)
{
    sink *s = self;
    if (options.full && s->bytes + bytes > (uint64_t)options.full) {
        snprintf(err->message, sizeof(err->message), "%s: the disk is full", s->path);
        return err->code = KHUB_E_NOSPACE;
    }
    if (options.slow_us) {
        struct timespec pause = {0, options.slow_us * 1000L};
        nanosleep(&pause, NULL);
    }
    khub__hash_add(s->hash, data, bytes);
    s->bytes += bytes;
    return KHUB_OK;
}

static int sink_restart(void *self, khub_error *err)
{
    sink *s = self;
    note(s, "restart");
    s->resumed = 0;
    start_hash(s, err);
    return KHUB_OK;
}

static int sink_finish(void *self, khub_error *err)
{
    sink *s = self;
    char hex[KHUB__HASH_HEX_MAX + 1] = "";
    note(s, "finish");
    khub__hash_end(s->hash, hex);
    if (strcmp(hex, s->etag) == 0) return KHUB_OK;
    if (s->resumed) {
        s->resumed = 0;
        start_hash(s, err);
        return KHUB__SINK_AGAIN;
    }
    snprintf(err->message, sizeof(err->message), "%s: the content is %s, not %s", s->path, hex, s->etag);
    return err->code = KHUB_E_UNTRUSTED;
}

static void sink_abandon(void *self, int keep)
{
    note(self, keep ? "abandon, keep" : "abandon");
}

static const khub__sink sink_calls = {sink_begin, sink_write, sink_restart, sink_finish, sink_abandon};

static json_t *refs_json(const khub__ref *refs, size_t count)
{
    json_t *object = json_object();
    for (size_t i = 0; i < count; i++)
        json_object_set_new(object, refs[i].name, json_string(refs[i].commit));
    return object;
}

static int do_refs(khub__client *client, const khub__repo *repo, khub_error *err)
{
    khub__refs refs;
    int rc = khub__client_refs(&refs, client, repo, err);
    json_object_set_new(result, "branches", refs_json(refs.branches, refs.branch_count));
    json_object_set_new(result, "tags", refs_json(refs.tags, refs.tag_count));
    json_object_set_new(result, "moved_to", json_string(refs.moved_to.id));
    khub__refs_free(&refs);
    return rc;
}

static int do_tree(khub__client *client, const khub__repo *repo, const char *commit, khub_error *err)
{
    khub__tree tree;
    json_t *list = json_array();
    int rc = khub__client_tree(&tree, NULL, client, repo, commit, err);
    json_object_set_new(result, "count", json_integer((json_int_t)tree.count));
    for (size_t i = 0; i < tree.count && i < 5000; i++)
        json_array_append_new(list, json_pack("{s:s, s:I, s:s?}", "path", tree.files[i].path, "size",
                                              (json_int_t)tree.files[i].size, "etag",
                                              khub__tree_etag(&tree.files[i])));
    json_object_set_new(result, "tree", list);
    khub__tree_free(&tree);
    return rc;
}

/* PATH[,SIZE[,ETAG]] */
static void read_file_argument(khub__fetch *out, sink *s, char *argument)
{
    char *size = strchr(argument, ','), *etag = size ? strchr(size + 1, ',') : NULL;
    if (size) *size++ = 0;
    if (etag) *etag++ = 0;
    *s = (sink){.path = argument, .calls = json_array(), .busy = options.busy};
    *out = (khub__fetch){.path = argument,
                         .size = size && *size ? strtoull(size, NULL, 10) : UINT64_MAX,
                         .etag = etag,
                         .sink = &sink_calls,
                         .self = s};
}

static int do_fetch(khub__client *client, const khub__repo *repo, const char *commit, char **arguments,
                    size_t count, khub_error *err)
{
    khub__fetch *list = calloc(count, sizeof(*list));
    sink *sinks = calloc(count, sizeof(*sinks));
    for (size_t i = 0; i < count; i++)
        read_file_argument(&list[i], &sinks[i], arguments[i]);
    int rc = khub__client_fetch(client, repo, commit, list, count, "the files", err);
    for (size_t i = 0; i < count; i++) {
        json_object_set_new(files, sinks[i].path,
                            json_pack("{s:s, s:I, s:I, s:o}", "etag", sinks[i].etag, "size",
                                      (json_int_t)sinks[i].size, "bytes", (json_int_t)sinks[i].bytes, "calls",
                                      sinks[i].calls));
        khub__hash_free(sinks[i].hash);
    }
    free(list);
    free(sinks);
    return rc;
}

static int do_settings(const khub__hub_settings *settings)
{
    json_object_set_new(result, "settings",
                        json_pack("{s:s, s:s?, s:s?, s:s, s:b}", "endpoint", settings->endpoint, "token",
                                  settings->token, "source", settings->token_source, "agent",
                                  settings->user_agent, "offline", settings->offline));
    return KHUB_OK;
}

static int run(khub__client *client, int argc, char **argv, khub_error *err)
{
    khub__wanted wanted = {0};
    const char *what = argv[0], *third = argc > 2 ? argv[2] : "";
    char commit[KHUB__COMMIT_MAX + 1] = "";
    int rc, trusted = 0;
    if (strcmp(what, "publisher") == 0) {
        rc = khub__client_publisher(&trusted, client, argv[1], err);
        json_object_set_new(result, "trusted", json_boolean(trusted));
        return rc;
    }
    rc = khub__wanted_parse(&wanted, options.kind, argv[1], err);
    if (rc != KHUB_OK) return rc;
    if (strcmp(what, "refs") == 0) return do_refs(client, &wanted.repo, err);
    if (strcmp(what, "tree") == 0) return do_tree(client, &wanted.repo, third, err);
    if (strcmp(what, "fetch") == 0)
        return do_fetch(client, &wanted.repo, third, argv + 3, (size_t)argc - 3, err);
    rc = khub__client_commit(commit, client, &wanted.repo, third, err);
    json_object_set_new(result, "commit", json_string(commit));
    return rc;
}

/* One client, one call. */
static int once(int argc, char **argv, khub_error *err)
{
    khub__hub_settings settings;
    khub_hub_options hub = {.struct_size = sizeof(hub), .token = options.token};
    khub__client *client;
    int rc = khub__hub_settings_read(&settings, &hub, err);
    if (rc != KHUB_OK) return rc;
    if (options.stall_ms) settings.stall_timeout_ms = (uint32_t)options.stall_ms;
    if (options.connect_ms) settings.connect_timeout_ms = (uint32_t)options.connect_ms;
    if (strcmp(argv[0], "settings") == 0) {
        rc = do_settings(&settings);
        khub__hub_settings_free(&settings);
        return rc;
    }
    rc = khub__client_open(&client, &settings, tick, NULL, err);
    if (rc != KHUB_OK) return rc;
    khub__client_hurry(client, options.hurry);
    rc = run(client, argc, argv, err);
    khub__client_close(client);
    return rc;
}

static int take_option(const char *name, const char *value)
{
    if (strcmp(name, "--model") == 0) return options.kind = KHUB__REPO_MODEL, 1;
    if (strcmp(name, "--hurry") == 0) return options.hurry = 1;
    if (strcmp(name, "--have") == 0) return options.have = value, 2;
    if (strcmp(name, "--token") == 0) return options.token = value, 2;
    const struct {
        const char *name;
        int *value;
    } numbers[] = {{"--cancel", &options.cancel_ms},   {"--stall", &options.stall_ms},
                   {"--connect", &options.connect_ms}, {"--busy", &options.busy},
                   {"--repeat", &options.repeat},      {"--slow", &options.slow_us},
                   {"--full", &options.full}};
    for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
        if (strcmp(numbers[i].name, name) == 0) return *numbers[i].value = atoi(value), 2;
    if (strcmp(name, "--have-bytes") == 0) return options.have_bytes = strtoull(value, NULL, 10), 2;
    fprintf(stderr, "what is %s?\n", name);
    exit(2);
}

int main(int argc, char **argv)
{
    clock_gettime(CLOCK_MONOTONIC, &started);
    khub__retry_wait = note_wait;
    khub_set_log(note_log, NULL);
    result = json_object();
    waits = json_array();
    logged = json_array();
    files = json_object();
    int at = 1;
    while (at + 1 < argc && strncmp(argv[at], "--", 2) == 0)
        at += take_option(argv[at], argv[at + 1]);
    khub_error err = {0};
    int rc = KHUB_OK;
    for (int i = 0; i < options.repeat && rc == KHUB_OK; i++)
        rc = once(argc - at, argv + at, &err);
    json_object_set_new(result, "ended_at_ms", json_integer((json_int_t)now_ms()));
    json_object_set_new(result, "status", json_string(khub_status_name(rc)));
    json_object_set_new(result, "message", json_string(err.message));
    json_object_set_new(result, "requests", json_integer((json_int_t)khub__client_requests()));
    json_object_set_new(result, "ticks", json_integer((json_int_t)ticks));
    json_object_set_new(result, "longest_tick_ms", json_integer((json_int_t)longest_tick_ms));
    json_object_set_new(result, "waits", waits);
    json_object_set_new(result, "log", logged);
    json_object_set_new(result, "files", files);
    json_dumpf(result, stdout, JSON_SORT_KEYS);
    putchar('\n');
    json_decref(result);
    return 0;
}
