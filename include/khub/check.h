/* Checking a kernel before it is published, or before it is loaded: whether its libraries load everywhere
 * they claim to, and whether what is said about them is so. Nothing of what is looked at runs, unless it is
 * asked for. */
#ifndef KHUB_CHECK_H
#define KHUB_CHECK_H

#include <khub/hub.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum khub_check_level {
    KHUB_CHECK_LEVEL_NOTE,    /* a fact about the file */
    KHUB_CHECK_LEVEL_WARNING, /* it works, and somebody will wish it were otherwise */
    KHUB_CHECK_LEVEL_ERROR    /* it doesn't load where it should, or isn't what is said about it */
} khub_check_level;

/* "note", "warning", "error". Static. */
KHUB_API const char *khub_check_level_name(khub_check_level level);

/* One thing that was found. Texts are the report's; NULL where there is none. */
typedef struct khub_check_finding {
    const char *file;  /* what it is about: a library, a metadata.json, a build */
    const char *about; /* which check, a word that stays: "manylinux", "needed", … (docs/publishing.md) */
    khub_check_level level;
    const char *value;        /* for machines: "manylinux_2_17", "libfoo.so.1", "9.0+PTX" */
    const char *words;        /* for people */
    const char *const *items; /* all that it is about: names of symbols, of functions */
    size_t item_count;
} khub_check_finding;

typedef struct khub_check_options {
    size_t struct_size;    /* set by KHUB_INIT */
    const char *manylinux; /* the level that Linux libraries should have; NULL: "manylinux_2_28" */
    const char *python;    /* the Python whose limited API they may use; NULL: "3.9" */
    const char *macos;     /* the oldest macOS that they should load on; NULL: "15.0" */
    const char *torch;     /* the PyTorch whose stable ABI they may use; NULL: as the build's name says */
    const char *variant;   /* of a repository this build alone; NULL: all */
    int load;              /* 1: each library for this machine is loaded too, in a child process that is
                            * forked for it: for a program with one thread */
    const khub_hub_options *hub; /* for a name of the Hub; borrowed during the call; NULL: as the environment
                                  * says. Nothing is loaded whose publisher isn't trusted */
} khub_check_options;

/* The findings about one name, in the order of the files. */
typedef struct khub_check_report khub_check_report;

/* Checks a library (ELF, Mach-O or PE), the directory of a build, a directory with libraries, a kernel
 * repository with all its builds (a path, or a built-in kernel as "khub/norm"), or one of the Hub
 * ("ORG/NAME@REV"), whose builds are downloaded. `options` may be NULL. That something is wrong is a result,
 * not an error. *out is the caller's; NULL after a failure: KHUB_E_NOTFOUND, KHUB_E_IO, KHUB_E_INVAL,
 * KHUB_E_UNSUPPORTED (there is no libelf here), KHUB_E_NOMEM; for a name of the Hub those of khub_download.
 * One thread. */
KHUB_API int khub_check_kernel(khub_check_report **out, const char *name, const khub_check_options *options,
                               khub_error *err);

KHUB_API void khub_check_report_free(khub_check_report *report); /* NULL is a no-op */

/* The i-th finding; NULL past the last. */
KHUB_API const khub_check_finding *khub_check_report_at(const khub_check_report *report, size_t i);

/* How many findings have that level. */
KHUB_API size_t khub_check_report_count(const khub_check_report *report, khub_check_level level);

#ifdef __cplusplus
}
#endif

#endif
