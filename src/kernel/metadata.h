/* metadata.json: what the publisher says about one build. */
#ifndef KERNEL_METADATA_H
#define KERNEL_METADATA_H

#include <khub/error.h>

#include <jansson.h>

/* A larger metadata.json isn't read: a digest of 100,000 files still fits. */
#define KHUB__METADATA_MAX ((size_t)16 << 20)

/* Another kernel that this one needs: a version or a revision. */
typedef struct khub__metadata_need {
    char *repo_id;   /* "org/name" */
    int64_t version; /* -1: `revision` is given instead */
    char *revision;
} khub__metadata_need;

/* The state of a source tree when it was built. */
typedef struct khub__metadata_git {
    char *commit; /* 40 or 64 hexadecimal digits; NULL: not told */
    int dirty;    /* 1: it held changes that no commit has */
} khub__metadata_git;

/* Strings are the struct's; NULL where the file says nothing. */
typedef struct khub__metadata {
    char *name;      /* "relu": [a-z][-a-z0-9]*[a-z0-9] */
    char *id;        /* "_relu_cpu_30dc0ae": a file name's stem, never a path */
    int64_t version; /* from 0 on */
    char *license, *upstream, *source;
    char *backend; /* "cpu", "cuda", "rocm", "metal", "xpu", "neuron", "tpu" or "cann" */
    char **archs;  /* "9.0+PTX", "gfx90a"; as written, since a later builder may know more forms */
    size_t arch_count;
    char **python_depends;
    size_t python_depend_count;
    khub__metadata_need *needs; /* "kernel-depends" */
    size_t need_count;
    char *kernels_minver; /* of the Python package; nothing to us but worth showing */
    json_t *digest;       /* an object, as it stands in the file; NULL: none */
    char *builder_version;
    khub__metadata_git builder, kernel; /* "provenance" */
} khub__metadata;

/* Reads the file of one build. All required fields that are missing are named in one message. Unknown keys
 * are ignored, but not in "kernel-depends", where they could change what is loaded. KHUB_E_NOTFOUND,
 * KHUB_E_IO, KHUB_E_FORMAT (file, field, fact), KHUB_E_NOMEM; then *out is zeroed. */
int khub__metadata_read(khub__metadata *out, const char *path, khub_error *err);

/* The same from text; `file` stands for it in messages. */
int khub__metadata_parse(khub__metadata *out, const char *text, size_t length, const char *file,
                         khub_error *err);

/* Frees what it holds and zeroes it. A zeroed one is a no-op. */
void khub__metadata_free(khub__metadata *metadata);

#endif
