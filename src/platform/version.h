/* Versions and backends: the words that platforms and build names share. */
#ifndef PLATFORM_VERSION_H
#define PLATFORM_VERSION_H

#include <khub/export.h>

/* 2.10: {2, 10, -1}. Unknown parts are -1. */
typedef struct khub__version {
    int major, minor, patch;
} khub__version;

#define KHUB__VERSION_UNKNOWN                                                                                \
    {                                                                                                        \
        -1, -1, -1                                                                                           \
    }

/* Room for any version in words, and for any backend in a build's name. */
#define KHUB__VERSION_TEXT 40

/* Reads "26", "2.10", "2.10.0", "2.10.0+cu128", "0.1.15.post2". 0, or -1 with *out unknown. */
int khub__version_parse(khub__version *out, const char *text);

/* "2.10" as far as it is known, "unknown" when nothing is; written into `buffer`, which is returned. */
const char *khub__version_text(khub__version version, char buffer[KHUB__VERSION_TEXT]);

/* Below, equal or above 0 as `a` is before, at or after `b`; an unknown part counts as 0. */
int khub__version_compare(khub__version a, khub__version b);

/* macOS tells a program built with an old SDK 10.16 for 11 and 16 for 26: the version that is meant. */
khub__version khub__macos_version(khub__version reported);

/* A kind of backend. Its names are static, so one backend is one pointer. */
typedef struct khub__backend {
    const char *name;   /* "cuda" */
    const char *prefix; /* in the name of a build: "cu" */
    int versioned;      /* 1: builds carry its version, "cu128" */
} khub__backend;

/* By its name ("cuda"); NULL for an unknown one. */
const khub__backend *khub__backend_find(const char *name);

/* Reads a backend as builds are named: "cpu", "cu128" (the last digit is the minor), "xpu20253". Its kind, or
 * NULL for a text outside the grammar; *version is unknown for a backend without one. */
const khub__backend *khub__backend_parse(khub__version *version, const char *text);

/* The reverse, into `buffer`, which is returned: "cu128"; the name alone ("xpu") when the version is
 * unknown or can't be written so. */
const char *khub__backend_text(const khub__backend *backend, khub__version version,
                               char buffer[KHUB__VERSION_TEXT]);

#endif
