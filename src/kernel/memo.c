#include "kernel/memo.h"

#include "base/error.h"
#include "base/home.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/text.h"
#include "kernel/marks.h"
#include "trust/held.h"
#include "trust/policy.h"
#include "trust/trust.h"

#include <stdatomic.h>
#include <stdint.h>

enum { HEADS = 256, MAX_ENTRIES = 65536 };

/* Never changed once it is in the list, and never taken out. */
typedef struct entry {
    const struct entry *next;
    char *key, *variant, *build, *commit;
    khub__marks *marks; /* of a directory of this machine; NULL: a commit, which doesn't change */
    khub__kept_layers *layers;
    int64_t version;
    khub_trust *trust;
    const khub__library *library;
} entry;

static _Atomic(const entry *) heads[HEADS];
static atomic_size_t entries;

/* Each part with a byte behind it that no part holds. */
static void add(khub__text *key, const char *part)
{
    if (part) khub__text_add(key, part);
    khub__text_add_bytes(key, "\n", 1);
}

/* Its text has line ends: behind its length it can't be taken for other parts. */
static void add_policy(khub__text *key, const khub_policy *policy)
{
    if (!policy) {
        add(key, NULL);
        return;
    }
    char *text = khub__policy_text(policy);
    if (!text) key->failed = 1;
    khub__text_addf(key, "%zu:", text ? strlen(text) : 0);
    add(key, text);
    khub__free(text);
}

/* A lock that was written anew may name another commit. */
static void add_lock(khub__text *key, const char *lock)
{
    khub__identity file = {0};
    add(key, lock);
    if (lock && khub__identify(&file, NULL, lock, 0) == 0)
        khub__text_addf(key, "%llu %llu %llu %lld\n", (unsigned long long)file.device,
                        (unsigned long long)file.inode, (unsigned long long)file.size,
                        (long long)file.changed_ns);
}

int khub__memo_key(char **out, const char *name, const khub_get_options *options, khub_error *err)
{
    enum { USUAL = 1024 }; /* bytes of a key */
    static const char *const counts[] = {
        "LOCAL_KERNELS",   "KERNELS_CACHE",   "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE",
        "HF_HOME",         "XDG_CACHE_HOME",  "HOME",         "HF_ENDPOINT",
        "KHUB_TRUST_FILE", "XDG_CONFIG_HOME", "KHUB_PREFIX"};
    khub_hub_options hub;
    *out = NULL;
    if (khub__options(&hub, sizeof(hub), options->hub, "khub_hub_options", NULL) != KHUB_OK) return KHUB_OK;
    if (options->platform || hub.refresh || name[0] == '.') return KHUB_OK;
    const char *values[sizeof(counts) / sizeof(*counts)];
    khub__env_all(values, counts, sizeof(counts) / sizeof(*counts));
    khub__text key = {.data = khub__malloc(USUAL)};
    key.failed = !key.data;
    key.capacity = key.data ? USUAL : 0;
    add(&key, name);
    add(&key, options->backend);
    add(&key, options->torch);
    add(&key, options->no_torch ? "no torch" : NULL);
    add(&key, options->variant);
    add_lock(&key, options->lock);
    add(&key, hub.endpoint);
    add(&key, hub.cache_dir);
    for (size_t i = 0; hub.trust && hub.trust[i]; i++)
        add(&key, hub.trust[i]);
    add_policy(&key, hub.policy);
    for (size_t i = 0; i < sizeof(counts) / sizeof(*counts); i++)
        add(&key, values[i]);
    *out = khub__text_take(&key);
    return *out ? KHUB_OK : khub__fail_memory(err, "getting a kernel");
}

/* As FNV-1a with its authors' offset basis and prime, but eight bytes a step; what a step does to the highest
 * bits reaches the lower ones by the shift. */
static size_t head_of(const char *key)
{
    uint64_t hash = 0xcbf29ce484222325u, word;
    for (size_t left = strlen(key); left; left -= left < sizeof(word) ? left : sizeof(word)) {
        word = 0;
        memcpy(&word, key, left < sizeof(word) ? left : sizeof(word));
        hash = (hash ^ word) * 0x100000001b3u;
        hash ^= hash >> 32;
        key += sizeof(word);
    }
    return (size_t)(hash >> 32) % HEADS;
}

static const entry *find(const char *key)
{
    const entry *e = atomic_load_explicit(&heads[head_of(key)], memory_order_acquire);
    while (e && (strcmp(e->key, key) != 0 || (e->marks && !khub__marks_hold(e->marks))))
        e = e->next;
    return e;
}

int khub__memo_find(khub_kernel *kernel, const char *key)
{
    const entry *e = find(key);
    if (!e) return 0;
    kernel->is_kept = 1;
    kernel->variant = e->variant;
    kernel->build = e->build;
    kernel->commit = e->commit;
    kernel->version = e->version;
    kernel->library = e->library;
    kernel->kept_layers = e->layers;
    kernel->trust = e->trust;
    return 1;
}

static void free_entry(entry *e)
{
    khub__free(e->key);
    khub__free(e->variant);
    khub__free(e->build);
    khub__free(e->commit);
    if (e->layers) khub__free(e->layers->text.text);
    khub__free(e->layers);
    khub__marks_free(e->marks);
    khub_trust_free(e->trust);
    khub__free(e);
}

/* What the layers are read from once they are asked for. 0: no memory. */
static int keep_text(khub__kept_layers *to, const khub_kernel *kernel)
{
    const khub__layers_text *from = &kernel->layers_text;
    if (!to) return 0;
    to->text = (khub__layers_text){from->is_proven, NULL, from->bytes};
    if (from->text) to->text.text = khub__strndup(from->text, from->bytes);
    return !to->text.text == !from->text;
}

/* Takes the marks over. NULL: no memory. */
static entry *new_entry(const khub_kernel *kernel, const char *key, khub__marks *marks)
{
    entry *e = khub__calloc(1, sizeof(*e));
    if (!e) {
        khub__marks_free(marks);
        return NULL;
    }
    *e = (entry){.key = khub__strdup(key),
                 .marks = marks,
                 .layers = khub__calloc(1, sizeof(*e->layers)),
                 .variant = khub__strdup(kernel->variant),
                 .build = khub__strdup(kernel->build),
                 .commit = kernel->commit ? khub__strdup(kernel->commit) : NULL,
                 .version = kernel->version,
                 .trust = khub__trust_share(kernel->trust),
                 .library = kernel->library};
    if (e->key && e->variant && e->build && !e->commit == !kernel->commit && keep_text(e->layers, kernel))
        return e;
    free_entry(e);
    return NULL;
}

int khub__memo_keep(khub_kernel *kernel, const char *key, int64_t since_ns, khub_error *err)
{
    khub__marks *marks = NULL;
    int rc = kernel->commit ? KHUB_OK : khub__marks_take(&marks, kernel->build, since_ns, err);
    if (rc != KHUB_OK || (!kernel->commit && !marks)) return rc;
    if (find(key) || atomic_fetch_add(&entries, 1) >= MAX_ENTRIES) {
        khub__marks_free(marks);
        return KHUB_OK;
    }
    entry *e = new_entry(kernel, key, marks);
    if (!e) return khub__fail_memory(err, "getting a kernel");
    kernel->kept_layers = e->layers;
    _Atomic(const entry *) *head = &heads[head_of(key)];
    const entry *first = atomic_load(head);
    do
        e->next = first;
    while (!atomic_compare_exchange_weak(head, &first, e));
    return KHUB_OK;
}
