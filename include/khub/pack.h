/* Packing a kernel for publishing: from a directory with a library to a build of a kernel repository. */
#ifndef KHUB_PACK_H
#define KHUB_PACK_H

#include <khub/error.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What the build's metadata.json says, and how it is made. NULL: as the directory's own metadata.json has it,
 * if there is one. */
typedef struct khub_pack_options {
    size_t struct_size;  /* set by KHUB_INIT */
    const char *variant; /* the build's name (docs/variants.md); NULL: that of a tvm-ffi kernel on the CPU for
                          * this machine, unless metadata.json names another backend */
    const char *name;    /* of the kernel */
    const int64_t *version; /* from 0 on */
    const char *license;    /* "Apache-2.0" */
    const char *upstream;   /* address of the source that the kernel is made from */
    const char *source;     /* address of the kernel's own source */
    const char *id; /* unique to the build, and the library's name; NULL, and none in metadata.json: for a
                     * tvm-ffi kernel a name that changes with the library's content, for a torch one the name
                     * that the library has */
    const char *const
        *archs;            /* of the GPUs that the library has code for, NULL-terminated; for cuda and rocm */
    const char *library;   /* which of the directory's files is the kernel, if it has several *.so */
    const char *algorithm; /* of the digest: "sha256" or "sha512"; NULL: "sha256" */
    int replace;           /* 1: a build of that name that is there is replaced; 0: it is an error */
} khub_pack_options;

/* Makes repository/build/VARIANT of the files in `directory`: the library as ID.so, layers.json and the
 * Python face as they are, and metadata.json with a digest over all of them; for a tvm-ffi kernel without a
 * Python face also that. Links to files within the directory are followed; bytecode and names that start with
 * "." are left out. The build is put in place whole, or not at all. Nothing is loaded. *build (may be NULL)
 * is its directory, the caller's (khub_free); NULL after a failure. `options` may be NULL. Any thread.
 * KHUB_E_INVAL (something is there already; what the build would need and nobody says; a name that isn't
 * one), KHUB_E_FORMAT (a library for another CPU or system, metadata.json, layers.json, a file that can't be
 * packed), KHUB_E_NOTFOUND, KHUB_E_IO, KHUB_E_NOSPACE, KHUB_E_UNSUPPORTED (no libcrypto), KHUB_E_NOMEM. */
KHUB_API int khub_pack(char **build, const char *directory, const char *repository,
                       const khub_pack_options *options, khub_error *err);

#ifdef __cplusplus
}
#endif

#endif
