#include "platform/remembered.h"

#include "base/file.h"
#include "base/home.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/ours.h"
#include "base/path.h"
#include "platform/nodes.h"
#include "platform/probe/protocol.h"
#include "platform/system.h"

#include <khub/export.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_BYTES = 2 * PROBE_MAX_BYTES, MAX_GROUPS = 64, BOOT_DIGITS = 8 };

static const char end_mark[] = "\nend\n";

/* What drivers and the loader read. */
static const char *const variables[] = {
    "CUDA_VISIBLE_DEVICES",      "CUDA_DEVICE_ORDER",
    "NVIDIA_VISIBLE_DEVICES",    "ROCR_VISIBLE_DEVICES",
    "HIP_VISIBLE_DEVICES",       "GPU_DEVICE_ORDINAL",
    "ZE_AFFINITY_MASK",          "HSA_OVERRIDE_GFX_VERSION",
    "ZE_FLAT_DEVICE_HIERARCHY",  "ZE_ENABLE_ALT_DRIVERS",
    "ASCEND_RT_VISIBLE_DEVICES", "ASCEND_HOME_PATH",
    "LD_LIBRARY_PATH",           "LD_PRELOAD",
};
enum { VARIABLES = sizeof(variables) / sizeof(*variables) };

/* Device files of accelerators: how their names begin. */
static const struct {
    const char *dir, *begin;
} nodes[] = {{"/dev", "nvidia"},  {"/dev", "kfd"},         {"/dev", "dxg"},
             {"/dev", "davinci"}, {"/dev/dri", "renderD"}, {"/dev/nvidia-caps", ""}};
enum { NODES = sizeof(nodes) / sizeof(*nodes) };

/* Which file it is and when anything about it changed last. */
static void add_file(khub__text *key, const char *path)
{
    struct stat s;
    if (!path || stat(path, &s) != 0) memset(&s, 0, sizeof(s));
    khub__text_addf(key, "file %s %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %o %" PRId64 ".%09ld\n",
                    path ? path : "", (uint64_t)s.st_dev, (uint64_t)s.st_ino, (uint64_t)s.st_size,
                    (uint64_t)s.st_rdev, (unsigned)s.st_mode, (int64_t)s.st_ctim.tv_sec, s.st_ctim.tv_nsec);
}

static void add_user(khub__text *key)
{
    gid_t groups[MAX_GROUPS];
    int count = getgroups(MAX_GROUPS, groups);
    khub__text_addf(key, "user %u %u", (unsigned)geteuid(), (unsigned)getegid());
    for (int i = 0; i < count; i++)
        khub__text_addf(key, " %u", (unsigned)groups[i]);
    khub__text_add(key, "\n");
}

static void add_nodes(khub__text *key, khub__pool *pool)
{
    for (size_t n = 0; n < NODES; n++) {
        char **names;
        size_t count = khub__names_in(&names, nodes[n].dir, pool), length = strlen(nodes[n].begin);
        for (size_t i = 0; i < count; i++)
            if (!strncmp(names[i], nodes[n].begin, length))
                add_file(key, khub__pool_textf(pool, "%s/%s", nodes[n].dir, names[i]));
        khub__free(names);
    }
}

static void add_variables(khub__text *key)
{
    for (size_t i = 0; i < VARIABLES; i++) {
        const char *value = getenv(variables[i]);
        khub__text_addf(key, value ? "%s=%s\n" : "%s unset\n", variables[i], value);
    }
}

const char *khub__answer_key(const khub__ask *ask, const char *program, khub__pool *pool)
{
    char boot[KHUB__BOOT_MAX];
    khub__text key = {0};
    khub__system_boot(boot);
    if (strlen(boot) < BOOT_DIGITS) return NULL;
    khub__text_addf(&key, "%s\n%s asks for %s\n", boot, khub_version(), ask->backend);
    add_file(&key, program);
    add_file(&key, ask->library);
    add_user(&key);
    add_variables(&key);
    add_nodes(&key, pool);
    char *text = khub__text_take(&key);
    const char *kept = text ? khub__pool_text(pool, text) : NULL;
    if (!text) pool->failed = 1;
    khub__free(text);
    return kept;
}

/* FNV-1a of 64 bits. */
static uint64_t hash_of(const char *text)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
    return hash;
}

/* ~/.cache/khub/accelerators into *in and the answer's file BOOT-HASH there into *path; the key begins with
 * the boot's name. Both are the caller's. KHUB_E_NOTFOUND: there is no home directory. */
static int place_of(char **in, char **path, const char *key)
{
    const char *cache = khub__env("XDG_CACHE_HOME");
    char *home = khub__path_expand(cache ? cache : "~/.cache");
    khub__text text = {0};
    *path = NULL;
    *in = home ? khub__path_join(home, "khub/accelerators") : NULL;
    int absolute = home && home[0] == '/';
    khub__free(home);
    if (!*in) return KHUB_E_NOMEM;
    if (!absolute) return KHUB_E_NOTFOUND;
    khub__text_addf(&text, "%s/%.*s-%016" PRIx64, *in, BOOT_DIGITS, key, hash_of(key));
    *path = khub__text_take(&text);
    return *path ? KHUB_OK : KHUB_E_NOMEM;
}

/* The answer behind the key in a file's text; NULL: it isn't all there, or about something else. */
static char *answer_in(khub__bytes *bytes, const char *key)
{
    size_t length = strlen(key), mark = strlen(end_mark);
    if (strlen(bytes->data) != bytes->length || bytes->length < length + mark) return NULL;
    char *end = bytes->data + bytes->length - mark;
    if (strncmp(bytes->data, key, length) != 0 || strcmp(end, end_mark) != 0) return NULL;
    *end = 0;
    return bytes->data + length;
}

static int recall_from(khub__ask *ask, const char *path, const char *key)
{
    khub__bytes bytes;
    int rc = khub__path_is_ours(NULL, path, NULL);
    if (rc == KHUB_OK) rc = khub__file_read(&bytes, path, MAX_BYTES, NULL);
    if (rc != KHUB_OK) return rc;
    const char *answer = answer_in(&bytes, key);
    if (answer) khub__text_add(&ask->output, answer);
    khub__bytes_free(&bytes);
    if (ask->output.failed) return KHUB_E_NOMEM;
    if (!answer) {
        khub__log(KHUB_LOG_DEBUG, "platform", path, "isn't whole, or about something else: it doesn't count");
        return KHUB_E_FORMAT;
    }
    ask->answer = ask->output.data;
    ask->end = KHUB__ASK_ANSWERED;
    khub__log(KHUB_LOG_DEBUG, "platform", ask->library, "has answered since the machine started: %s", path);
    return KHUB_OK;
}

int khub__recall(khub__ask *ask, const char *key, khub__pool *pool)
{
    char *in, *path;
    if (!key) return 0;
    int rc = place_of(&in, &path, key);
    if (rc == KHUB_OK) rc = recall_from(ask, path, key);
    if (rc == KHUB_E_NOMEM) pool->failed = 1;
    khub__free(path);
    khub__free(in);
    return rc == KHUB_OK;
}

/* What was remembered before the machine started counts no more. */
static int forget_others(const char *in, const char *key)
{
    char **names = NULL;
    size_t count = 0;
    int rc = khub__dir_list(&names, &count, in, NULL);
    for (size_t i = 0; rc == KHUB_OK && i < count; i++) {
        if (!strncmp(names[i], key, BOOT_DIGITS)) continue;
        char *path = khub__path_join(in, names[i]);
        if (path) unlink(path);
        if (!path) rc = KHUB_E_NOMEM;
        khub__free(path);
    }
    khub__free(names);
    return rc;
}

static int write_to(const char *path, const char *key, const char *answer)
{
    khub__draft *draft;
    int rc = khub__draft_open(&draft, path, NULL);
    if (rc != KHUB_OK) return rc;
    rc = khub__draft_for_us(draft, NULL);
    if (rc == KHUB_OK) rc = khub__draft_write(draft, key, strlen(key), NULL);
    if (rc == KHUB_OK) rc = khub__draft_write(draft, answer, strlen(answer), NULL);
    if (rc == KHUB_OK) rc = khub__draft_write(draft, end_mark, strlen(end_mark), NULL);
    if (rc == KHUB_OK) return khub__draft_commit(draft, NULL);
    khub__draft_discard(draft);
    return rc;
}

void khub__remember(const khub__ask *ask, const char *key, khub__pool *pool)
{
    char *in, *path;
    if (!key) return;
    int rc = place_of(&in, &path, key);
    if (rc == KHUB_OK) rc = khub__make_our_directory(in, NULL);
    if (rc == KHUB_OK) rc = forget_others(in, key);
    if (rc == KHUB_OK) rc = write_to(path, key, ask->answer);
    if (rc == KHUB_E_NOMEM) pool->failed = 1;
    khub__free(path);
    khub__free(in);
}
