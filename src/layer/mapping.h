/* A mapping in memory: keys in the order of reading, each with its entries. Entries don't change once made,
 * so that mappings share them. */
#ifndef LAYER_MAPPING_H
#define LAYER_MAPPING_H

#include <khub/kernel.h>

#include "base/index.h"
#include "layer/key.h"
#include "layer/names.h"
#include "layer/targets.h"

#include <jansson.h>
#include <stdatomic.h>

/* How much of an entry could be read, and so what its value is when it is written again. */
typedef enum khub__entry_read {
    KHUB__ENTRY_KEY,    /* the key or its value as a whole is faulty */
    KHUB__ENTRY_DEVICE, /* what stands for one device is */
    KHUB__ENTRY_MODE,   /* what stands for one mode of it is */
    KHUB__ENTRY_ALL     /* it is known where it applies; a fault, if any, is of the kernel it names */
} khub__entry_read;

typedef struct khub__entry {
    atomic_int refs;
    khub_mapping_line line; /* the strings are the entry's */
    khub__target target;    /* of the device KHUB__DEVICES: it couldn't be read, and is none */
    khub__entry_read read;
    char *key, *kernel, *layer, *fault, *from;
    char device[KHUB__TARGET_MAX];
    char *word;            /* the device or mode that couldn't be read; NULL */
    char *value;           /* JSON: what stands behind it */
    khub_layer_spec *spec; /* of an entry that says itself how it serves; NULL: the kernel's layers.json */
    int built_in;          /* 1: of the default mapping, nobody wrote it */
} khub__entry;

/* Not "", which leaves a layer standard on purpose. */
int khub__entry_names_kernel(const khub__entry *entry);

typedef struct khub__mapped {
    khub__key *key; /* NULL: `text` can't be read as a key; then it has one entry, its fault */
    char *text;     /* of the key, as keys are compared */
    khub__entry **entries;
    size_t count, capacity;
} khub__mapped;

struct khub_mapping {
    char *name;               /* its file, or what it is called in messages */
    const char *forbidden_by; /* the environment's variable that emptied it; NULL: none */
    int built_in;             /* 1: the default mapping, nobody wrote anything of it */
    khub__mapped *keys;
    size_t key_count, key_capacity;
    khub__index by_text; /* of keys */
};

#define KHUB__MAPPING_MAX_BYTES ((size_t)1 << 20)

/* The default mapping as the environment wants it: DISABLE_KERNEL_MAPPING=1 leaves nothing of it. */
int khub__mapping_default(khub_mapping **out, khub_error *err);

/* Where a mapping's text stands: what it is called in messages, and the folder of its file, from which its
 * paths start (NULL: no file, the current directory). */
typedef struct khub__mapping_place {
    const char *name;
    const char *folder;
    int built_in;
} khub__mapping_place;

/* "FILE: KEY: cuda:75-89: training", for messages. */
enum { KHUB__WHERE_MAX = 1000 };
void khub__mapping_where(char out[KHUB__WHERE_MAX], const khub__mapping_place *place, const char *key,
                         const khub__target *target, int mode);

/* What stands behind a key, a device and a mode: a name, or an object. *out has a fault
 * when that is no entry. KHUB_E_NOMEM only. */
int khub__entry_parse(khub__entry **out, const khub__key *key, const khub__target *target, int mode,
                      const json_t *value, const khub__mapping_place *place, khub_error *err);
/* One whose place can't be read; `word` says what stands where the device or mode would. */
int khub__entry_faulty(khub__entry **out, const char *key, khub__entry_read read, const khub__target *target,
                       const char *word, const json_t *value, const char *fault,
                       const khub__mapping_place *place, khub_error *err);
void khub__entry_free(khub__entry *entry); /* one reference less; NULL is a no-op */

/* For what fills a mapping. An empty one of that name; a key by its text as it is compared (NULL: it isn't
 * there); a key added (`key` taken over, NULL for a text that is none; NULL: no memory); an entry added,
 * taken over even when there is no memory. */
int khub__mapping_begin(khub_mapping **out, const char *name, khub_error *err);
khub__mapped *khub__mapping_find(const khub_mapping *mapping, const char *key);
khub__mapped *khub__mapping_add_key(khub_mapping *mapping, const char *text, khub__key *key);
int khub__mapped_add(khub__mapped *mapped, khub__entry *entry, khub_error *err);

/* khub_mapping_set; `from` is the entry's in messages. */
int khub__mapping_put(khub_mapping *mapping, const char *key, const khub_mapping_entry *entry,
                      const char *from, khub_error *err);

/* Takes the JSON over. */
int khub__mapping_from(khub_mapping **out, json_t *root, const khub__mapping_place *place, khub_error *err);

#endif
