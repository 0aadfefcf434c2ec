/* A mapping: which kernel serves which layer, on which device, in which mode. docs/layers.md tells its rules.
 */
#ifndef KHUB_MAPPING_H
#define KHUB_MAPPING_H

#include <khub/error.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What a model is run for. A slot is filled for INFERENCE or TRAINING, either of them with COMPILE;
 * FALLBACK stands in mappings alone: for every mode that the mapping doesn't name. */
enum { KHUB_MODE_INFERENCE = 1, KHUB_MODE_TRAINING = 2, KHUB_MODE_COMPILE = 4, KHUB_MODE_FALLBACK = 8 };

/* A mapping is a value: once made it may be read by any thread as long as none changes it. */
typedef struct khub_mapping khub_mapping;

/* An empty one. *out is the caller's (khub_mapping_free), here and below; NULL after a failure. */
KHUB_API int khub_mapping_new(khub_mapping **out, khub_error *err);

/* The default mapping, that khub ships with and that `khub mapping` shows: kernels that a C program can
 * call. KHUB_E_NOMEM. */
KHUB_API int khub_mapping_builtin(khub_mapping **out, khub_error *err);

/* Reads one from JSON text; `name` (NULL: "mapping") stands for the file in messages. A mistake in one entry
 * is that entry's (khub_mapping_line.fault), and a warning in the log where no slot can get it as its reason.
 * KHUB_E_FORMAT: it isn't one JSON object, says something twice, or is too large. KHUB_E_NOMEM. */
KHUB_API int khub_mapping_parse(khub_mapping **out, const char *json, const char *name, khub_error *err);
/* The same from a file of at most 1 MiB: paths in it start from its folder. KHUB_E_NOTFOUND, KHUB_E_IO. */
KHUB_API int khub_mapping_read(khub_mapping **out, const char *file, khub_error *err);

/* What stands behind `--kernels=` of the command: parts between commas, each laid over those before it.
 * "LAYER=NAME" is an item ("GeLU=org/repo@v1:GeLU", "LayerNorm=" is off), "default" the default mapping, any
 * other part a file. Begins with an item: over the default mapping. KHUB_E_INVAL: an item that can't be one;
 * and as khub_mapping_read. */
KHUB_API int khub_mapping_items(khub_mapping **out, const char *items, khub_error *err);

/* One entry, for a C program that has no JSON. */
typedef struct khub_mapping_entry {
    size_t struct_size; /* set by KHUB_INIT */
    const char *device; /* as in a file: "cpu", "cuda:75-89"; NULL: every device */
    int mode;           /* KHUB_MODE_...; 0: FALLBACK */
    const char *kernel; /* "org/repo@v1:GeLU", "./path", "khub/norm"; "": the layer stays standard */
    const char *spec;   /* JSON object with the keys of layers.json; NULL: the kernel's layers.json */
} khub_mapping_entry;

/* Adds an entry under `key` ("GeLU", "Linear(encoder.*.dense)", "Linear + GeLU"), in the place of the one for
 * the same key, device, capabilities and mode, if there is one. Copies everything. KHUB_E_INVAL, with the
 * mapping as before: key or entry can't be one. KHUB_E_NOMEM likewise. */
KHUB_API int khub_mapping_set(khub_mapping *mapping, const char *key, const khub_mapping_entry *entry,
                              khub_error *err);

/* Lays `over` over `mapping`: of a key that both have, what `over` says for a device and range replaces all
 * that was said for it, and a value for every device replaces all that was said for that layer.
 * KHUB_E_NOMEM, with the mapping as before. */
KHUB_API int khub_mapping_merge(khub_mapping *mapping, const khub_mapping *over, khub_error *err);

/* As JSON that khub_mapping_parse reads back to an equal mapping; freed with khub_free. NULL: no memory. */
KHUB_API char *khub_mapping_json(const khub_mapping *mapping);

KHUB_API void khub_mapping_free(khub_mapping *mapping); /* NULL is a no-op */

/* One entry as it was read. Strings are the mapping's, until it is changed or freed; NULL where there is
 * none. */
typedef struct khub_mapping_line {
    const char *key;
    const char *device;   /* "cpu", "cuda:75-89"; NULL: every device */
    int mode;             /* KHUB_MODE_...; 0: it couldn't be read */
    const char *kernel;   /* as for khub_get: "org/repo@v1"; "": stays standard; NULL: `fault` says why */
    const char *layer;    /* of the kernel's layers.json, that serves; NULL: the one of the slot's name */
    const char *function; /* of an entry that says itself how it serves; NULL: layers.json does */
    const char *fault;    /* why the entry can't be used */
    const char *from;     /* the file, or what was given for it */
} khub_mapping_line;

/* The i-th entry, in the order of reading; NULL past the last. */
KHUB_API const khub_mapping_line *khub_mapping_at(const khub_mapping *mapping, size_t i);

/* What applies to a slot of `layer` at `path` on `device` ("cpu", "cuda", or with its capability "cuda:89")
 * in a mode (INFERENCE or TRAINING, with COMPILE or without): the candidates, the one that is tried first
 * first. KHUB_E_NOTFOUND: there is none, and what the mapping lacks; KHUB_E_INVAL. */
enum { KHUB_MAPPING_CANDIDATES = 6 };
KHUB_API int khub_mapping_find(const khub_mapping_line *out[KHUB_MAPPING_CANDIDATES], size_t *count,
                               const khub_mapping *mapping, const char *layer, const char *path,
                               const char *device, int mode, khub_error *err);

/* Where the i-th entry stands among those of its key on the device and in the mode: 0 is tried first; -1: it
 * doesn't count there. KHUB_E_INVAL. */
KHUB_API int khub_mapping_rank(int *rank, const khub_mapping *mapping, size_t i, const char *device, int mode,
                               khub_error *err);

/* "inference", "training|compile", "fallback": as mappings have it. KHUB_E_INVAL lists the modes. */
KHUB_API int khub_mode_parse(int *out, const char *text, khub_error *err);
KHUB_API const char *khub_mode_name(int mode); /* static; "?" for what is none */

#ifdef __cplusplus
}
#endif

#endif
