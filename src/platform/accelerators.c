#include "platform/accelerators.h"

#include "base/file.h"
#include "base/json.h"
#include "base/signals.h"
#include "platform/ask.h"
#include "platform/hints.h"
#include "platform/pci.h"
#include "platform/platform.h"
#include "platform/remembered.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

enum { MAX_NAMES = 5, MAX_DIRS = 2, MAX_CANDIDATES = 4 };

/* How a driver's library is called and where it may be besides the loader's path. The first name of which
 * there is a file is the one that counts. */
typedef struct kind {
    const char *backend, *system; /* `system`: what it exists on */
    const char *what;             /* what isn't there on another one */
    const char *names[MAX_NAMES];
    const char *dirs[MAX_DIRS];
    const char *path; /* opened as it is: on macOS it is in the loader's cache and not on the disk */
} kind;

static const kind kinds[KHUB__ACCELERATORS] = {
    /* the name without a number belongs to the toolkit's development files; WSL keeps the driver to itself */
    {"cuda", "linux", "CUDA driver", {"libcuda.so.1", "libcuda.so"}, {"/usr/lib/wsl/lib"}, NULL},
    {"rocm",
     "linux",
     "HIP runtime",
     {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5", "libamdhip64.so"},
     {"/opt/rocm/lib"},
     NULL},
    {"metal",
     "darwin",
     "Metal.framework of macOS",
     {NULL},
     {NULL},
     "/System/Library/Frameworks/Metal.framework/Metal"},
    {"xpu", "linux", "Level Zero loader", {"libze_loader.so.1"}, {NULL}, NULL},
    {"cann",
     "linux",
     "AscendCL of CANN",
     {"libascendcl.so"},
     {"/usr/local/Ascend/ascend-toolkit/latest/lib64", "/usr/local/Ascend/cann/lib64"},
     NULL},
    {"neuron", "linux", "Neuron runtime", {"libnrt.so.1"}, {"/opt/aws/neuron/lib"}, NULL},
    {"tpu", "linux", "TPU runtime", {"libtpu.so"}, {NULL}, NULL},
};

/* One backend on its way to an answer: files that may be its driver, tried one after the other. */
typedef struct search {
    const kind *kind;
    khub_accelerator_info *out;
    const char *candidates[MAX_CANDIDATES];
    size_t count, next;
    const char *key; /* what the answer to the question that is being asked depends on */
    int no_device;   /* the driver said so */
} search;

/* Adds DIR/NAME unless it is one of the files already. */
static void add_from_dir(search *s, const char *root, const char *dir, const char *name, khub__pool *pool)
{
    const char *path = khub__pool_textf(pool, "%s%s/%s", root, dir, name);
    if (!path || s->count == MAX_CANDIDATES || khub__file_kind(path) != KHUB__FILE_REGULAR) return;
    for (size_t i = 0; i < s->count; i++)
        if (!strcmp(s->candidates[i], path)) return;
    s->candidates[s->count++] = path;
}

static void find_candidates(search *s, const khub__places *places, khub__pool *pool)
{
    if (s->kind->path) s->candidates[s->count++] = s->kind->path;
    for (size_t n = 0; n < MAX_NAMES && s->kind->names[n] && !s->count; n++) {
        const char *name = s->kind->names[n];
        s->count = khub__loader_find(s->candidates, MAX_CANDIDATES, &places->loader, name, pool);
        for (size_t i = 0; i < MAX_DIRS && s->kind->dirs[i]; i++)
            add_from_dir(s, places->loader.root, s->kind->dirs[i], name, pool);
    }
}

/* "libcuda.so.1 or libcuda.so" */
static const char *list_names(const kind *k, khub__pool *pool)
{
    const char *list = k->names[0];
    for (size_t i = 1; i < MAX_NAMES && k->names[i] && list; i++)
        list = khub__pool_textf(pool, "%s or %s", list, k->names[i]);
    return list;
}

static void say_not_found(search *s, const khub__places *places, khub__pool *pool)
{
    const char *names = list_names(s->kind, pool), *loader = khub__loader_places(&places->loader, pool);
    const char *extra = s->kind->dirs[0];
    if (names && loader)
        s->out->reason =
            khub__pool_textf(pool, "no %s in %s%s%s", names, loader, extra ? ", " : "", extra ? extra : "");
}

/* Nobody is asked. Where only what decides is wanted, no runtime in reach is the answer. */
static void find_on_pci(search *s, const khub__places *places, khub__pool *pool)
{
    s->out->path = s->count ? s->candidates[0] : NULL;
    if (s->count || !places->brief) khub__pci_find(s->out, places->loader.root, pool);
    s->count = 0;
}

/* Nothing is asked when the answer is known: another system, no library, everything hidden. */
static void prepare(search *s, const char *os, const khub__places *places, khub__pool *pool)
{
    s->out->backend = s->kind->backend;
    if (strcmp(os, s->kind->system) != 0) {
        s->out->reason = khub__pool_textf(pool, "no %s: it exists on %s only, this is %s", s->kind->what,
                                          s->kind->system, os);
        return;
    }
    find_candidates(s, places, pool);
    if (khub__pci_is_known(s->kind->backend)) {
        find_on_pci(s, places, pool);
        return;
    }
    const char *hidden = s->count ? khub__hint_hidden(s->kind->backend) : NULL;
    if (hidden) {
        s->out->path = s->candidates[0];
        s->out->reason = hidden;
        s->count = 0;
    } else if (!s->count && !places->brief) {
        say_not_found(s, places, pool);
    }
}

/* An answer's devices, checked like a stranger's file. -1: it isn't what the protocol says. */
static int read_devices(khub_accelerator_info *out, const json_t *root, const khub__json_source *source,
                        khub__pool *pool)
{
    const json_t *array = NULL;
    if (khub__json_array(&array, root, "devices", source) != KHUB_OK || !array) return -1;
    size_t count = json_array_size(array);
    khub_device_info *devices = khub__pool_take(pool, count, sizeof(*devices));
    for (size_t i = 0; devices && i < count; i++) {
        const json_t *device = json_array_get(array, i);
        const char *name = NULL, *arch = NULL, *uuid = NULL;
        int64_t bytes = 0;
        int integrated = 0;
        if (!json_is_object(device) || khub__json_string(&name, device, "name", source) != KHUB_OK ||
            khub__json_string(&arch, device, "arch", source) != KHUB_OK ||
            khub__json_string(&uuid, device, "uuid", source) != KHUB_OK ||
            khub__json_bool(&integrated, device, "integrated", source) != KHUB_OK ||
            khub__json_integer(&bytes, device, "memory_bytes", source) != KHUB_OK || bytes < 0)
            return -1;
        devices[i].name = khub__pool_text(pool, name);
        devices[i].arch = khub__pool_text(pool, arch);
        devices[i].uuid = khub__pool_text(pool, uuid);
        devices[i].integrated = integrated;
        devices[i].memory_bytes = (uint64_t)bytes;
    }
    out->devices = devices;
    out->device_count = devices ? count : 0;
    return 0;
}

static int read_answer(khub_accelerator_info *out, int *no_device, const char *text, khub__pool *pool)
{
    const khub__json_source source = {"khub-probe", NULL};
    const char *presence = NULL, *version = NULL, *reason = NULL;
    khub__version parsed;
    json_t *root;
    int rc = khub__json_parse(&root, text, strlen(text), "khub-probe", NULL);
    if (rc == KHUB_E_NOMEM) pool->failed = 1;
    if (rc != KHUB_OK) return -1;
    int bad = khub__json_string(&presence, root, "presence", &source) != KHUB_OK ||
              khub__json_string(&version, root, "version", &source) != KHUB_OK ||
              khub__json_string(&reason, root, "reason", &source) != KHUB_OK ||
              khub__json_bool(no_device, root, "no_device", &source) != KHUB_OK ||
              khub__presence_parse(&out->presence, presence) != 0 ||
              (version && khub__version_parse(&parsed, version) != 0) ||
              read_devices(out, root, &source, pool) != 0;
    if (!bad) {
        out->version = khub__pool_text(pool, version);
        out->reason = khub__pool_text(pool, reason);
    }
    json_decref(root);
    return bad ? -1 : 0;
}

/* What became of the helper process when it gave no answer. */
static const char *say_end(const khub__ask *ask, uint32_t timeout_ms, khub__pool *pool)
{
    const char *at = ask->doing[0] ? ask->doing : "starting";
    switch (ask->end) {
    case KHUB__ASK_TIMED_OUT:
        return khub__pool_textf(pool, "the driver hung (%s) and was given up after %g s", at,
                                timeout_ms / 1000.0);
    case KHUB__ASK_SIGNALLED:
        return khub__pool_textf(pool, "the driver crashed (%s): signal %d, %s", at, ask->detail,
                                khub__signal_words(ask->detail));
    case KHUB__ASK_EXITED:
        if (ask->detail < 0) return khub__pool_textf(pool, "the driver ended its process (%s)", at);
        return khub__pool_textf(pool, "the driver ended its process (%s) with status %d", at, ask->detail);
    case KHUB__ASK_NOT_STARTED:
        return khub__pool_textf(pool, "can't ask: khub-probe doesn't start: %s", strerror(ask->detail));
    case KHUB__ASK_ANSWERED:
    case KHUB__ASK_BABBLED:
        break;
    }
    return "khub-probe's answer isn't understood";
}

/* Which of two answers tells more: a device, a failure, a driver without a device, no driver. */
static int weight(const khub_accelerator_info *info, int no_device)
{
    if (info->presence == KHUB_FOUND) return 4;
    if (info->presence == KHUB_BROKEN) return 3;
    return no_device ? 2 : info->reason ? 1 : 0;
}

/* 1: another file of that name is worth a try. */
static int take_end(search *s, const khub__ask *ask, uint32_t timeout_ms, khub__pool *pool)
{
    khub_accelerator_info info = {.backend = s->kind->backend};
    int no_device = 0;
    char *real = khub__file_real(ask->library); /* the C library's memory */
    if (ask->end != KHUB__ASK_ANSWERED || read_answer(&info, &no_device, ask->answer, pool) != 0) {
        info = (khub_accelerator_info){.backend = s->kind->backend, .presence = KHUB_BROKEN};
        info.reason = say_end(ask, timeout_ms, pool);
    }
    info.path = khub__pool_text(pool, real ? real : ask->library);
    free(real);
    int stop = info.presence == KHUB_FOUND || ask->end != KHUB__ASK_ANSWERED;
    if (weight(&info, no_device) > weight(s->out, s->no_device)) {
        *s->out = info;
        s->no_device = no_device;
    }
    return !stop;
}

/* How questions are asked. */
typedef struct asking {
    const char *program; /* khub-probe */
    uint32_t timeout_ms;
    int refresh; /* 1: whatever was answered before */
    khub__pool *pool;
} asking;

/* A driver that is broken may be mended without anything else changing. */
static int is_worth_keeping(const char *answer, khub__pool *pool)
{
    khub_accelerator_info info = {.presence = KHUB_BROKEN};
    int no_device = 0;
    return read_answer(&info, &no_device, answer, pool) == 0 && info.presence != KHUB_BROKEN;
}

static int recall(khub__ask *ask, const char *key, const asking *how)
{
    khub_accelerator_info info = {0};
    int no_device = 0;
    if (how->refresh || !khub__recall(ask, key, how->pool)) return 0;
    if (read_answer(&info, &no_device, ask->answer, how->pool) == 0) return 1;
    khub__text_free(&ask->output);
    return 0;
}

static void take(search *s, khub__ask *ask, const asking *how)
{
    if (!take_end(s, ask, how->timeout_ms, how->pool)) s->next = s->count;
    if (ask->output.failed) how->pool->failed = 1;
    khub__text_free(&ask->output);
}

/* One file of each backend that still has one, side by side. 0: there was nothing left to ask. */
static int ask_round(search *searches, const asking *how)
{
    khub__ask asks[KHUB__ACCELERATORS];
    search *whose[KHUB__ACCELERATORS];
    size_t count = 0;
    int more = 0;
    for (size_t i = 0; i < KHUB__ACCELERATORS; i++) {
        search *s = &searches[i];
        if (s->next >= s->count) continue;
        khub__ask ask = {.backend = s->kind->backend, .library = s->candidates[s->next++]};
        s->key = khub__answer_key(&ask, how->program, how->pool);
        more = 1;
        if (recall(&ask, s->key, how)) {
            take(s, &ask, how);
            continue;
        }
        asks[count] = ask;
        whose[count++] = s;
    }
    khub__ask_all(asks, count, how->program, how->timeout_ms);
    for (size_t i = 0; i < count; i++) {
        if (asks[i].end == KHUB__ASK_ANSWERED && is_worth_keeping(asks[i].answer, how->pool))
            khub__remember(&asks[i], whose[i]->key, how->pool);
        take(whose[i], &asks[i], how);
    }
    return more;
}

void khub__find_accelerators(khub_accelerator_info out[KHUB__ACCELERATORS], const char *os,
                             const khub_library_info *cudart, const khub__places *places, uint32_t timeout_ms,
                             int refresh, khub__pool *pool)
{
    search searches[KHUB__ACCELERATORS];
    const char *prefix = khub__install_prefix();
    const char *program = khub__pool_textf(pool, "%s/libexec/khub/khub-probe", prefix ? prefix : "");
    memset(searches, 0, sizeof(searches));
    memset(out, 0, KHUB__ACCELERATORS * sizeof(*out));
    for (size_t i = 0; i < KHUB__ACCELERATORS; i++) {
        searches[i].kind = &kinds[i];
        searches[i].out = &out[i];
        prepare(&searches[i], os, places, pool);
    }
    const asking how = {program, timeout_ms, refresh, pool};
    while (program && ask_round(searches, &how)) {}
    for (size_t i = 0; !places->brief && i < KHUB__ACCELERATORS; i++)
        khub__hint(&out[i], searches[i].no_device, cudart, places->loader.root, pool);
}
