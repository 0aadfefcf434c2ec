/* Where kernels and models come from: the Hub, and the cache that all Hugging Face tools share. */
#ifndef KHUB_HUB_H
#define KHUB_HUB_H

#include <khub/error.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What a name that a user writes is by its form; whether something is there is another question. */
typedef enum khub_name_kind {
    KHUB_NAME_OTHER,
    KHUB_NAME_PATH,   /* of this machine: starts with "/", "./" or "../", or is "." or ".." */
    KHUB_NAME_HUB,    /* "ORG/NAME" or "ORG/NAME@REV"; a built-in kernel ("khub/norm") too */
    KHUB_NAME_ADDRESS /* "https://...", "hf.co/...": names nothing here, a name of the Hub may be in it */
} khub_name_kind;

KHUB_API khub_name_kind khub_name_kind_of(const char *name); /* NULL: KHUB_NAME_OTHER */

/* How far a fetch is. One call of khub may fetch several times, one after another: the metadata of a build
 * and then the build, each kernel that it needs. Strings are borrowed for the call. */
typedef struct khub_progress {
    const char *what;     /* "kernels-community/activation@v1" */
    uint64_t bytes_done;  /* that arrived, what was there of an interrupted file included */
    uint64_t bytes_total; /* of all files that this fetch brings; grows while they become known */
    uint32_t files_done, files_total;
} khub_progress;

/* Called from the thread that called khub, at least every 50 ms while something is fetched or waited for,
 * also when nothing moves. Not 0 cancels: the fetch ends with KHUB_E_CANCELED within 100 ms and the cache is
 * intact. So another thread, or a signal handler, cancels by setting a flag that this function reads. */
typedef int (*khub_progress_fn)(void *user, const khub_progress *progress);

/* How the Hub is reached and what of it may be used. NULL or 0 in a field: as the environment says, which is
 * the environment of the other Hugging Face tools (docs/hub.md). */
typedef struct khub_hub_options {
    size_t struct_size;    /* set by KHUB_INIT */
    const char *endpoint;  /* "https://host[:port][/path]"; NULL: HF_ENDPOINT, else https://huggingface.co */
    const char *token;     /* NULL: HF_TOKEN, then the file of HF_TOKEN_PATH; "" is none */
    const char *cache_dir; /* NULL: KERNELS_CACHE (kernels only), HF_HUB_CACHE, HF_HOME/hub,
                              ~/.cache/huggingface/hub */
    int offline;           /* 1: no network; 0: as HF_HUB_OFFLINE says */
    int refresh; /* 1: ask the Hub where a version or branch stands, however fresh the cache's word is */
    const char *const
        *trust; /* "ORG" or "ORG/NAME", NULL-terminated: publishers that the caller vouches for */
    khub_progress_fn progress; /* NULL: none */
    void *progress_user;       /* handed to it */
    int no_retry; /* 1: what fails on the way to the Hub isn't tried again; 0: as KHUB_RETRIES says */
    const struct khub_policy *policy; /* what is trusted (<khub/trust.h>); NULL: the user's, as
                                         khub_policy_read(NULL) has it. `trust` is added to it */
} khub_hub_options;

/* What a request to the Hub would go through. Strings are static or the environment's; NULL: none. */
typedef struct khub_network_info {
    const char *version; /* of libcurl: "7.88.1" */
    const char *path;    /* of the library */
    const char *tls; /* its TLS library, "OpenSSL/3.0.19"; NULL: it was built without, https isn't spoken */
    int http2;       /* 1: it speaks HTTP/2 */
    /* Of the certificates that are trusted, and the variables that say so: "SSL_CERT_FILE"; NULL: libcurl. */
    const char *certificate_file, *certificate_file_from;
    const char *certificate_dir, *certificate_dir_from;
} khub_network_info;

/* Opens libcurl, which khub else does with the first request only; asks nothing. Any thread. KHUB_E_NETWORK:
 * it isn't there, or too old. */
KHUB_API int khub_network(khub_network_info *out, khub_error *err);

/* A repository at one commit, in the cache. */
typedef struct khub_snapshot khub_snapshot;

/* Which files of a repository are wanted. */
typedef struct khub_download_options {
    size_t struct_size;          /* set by KHUB_INIT */
    const khub_hub_options *hub; /* borrowed during the call; NULL: as the environment says */
    const char *const *patterns; /* NULL-terminated globs over whole paths ("*" crosses "/", as the peers have
                                    it): a file that one of them takes is fetched; NULL: every file */
    int model;                   /* 1: a model repository; 0: a kernel repository */
    const char *lock; /* a kernels.lock: the kernel is taken at the commit it has there; NULL: none */
} khub_download_options;

/* Makes the wanted files of ORG/NAME@REV be in the cache: REV is "v1" or "1" (version 1), of a kernel also
 * ">=1,<3" (the highest version in the range), a branch, a tag or a commit; for a model it may be left out
 * ("main"). Nothing is asked for that the cache knows. With a lock, each build that it has a hash of is
 * compared with it. Any thread. *out is the caller's (khub_snapshot_free), NULL after a failure:
 * KHUB_E_NOTFOUND (repository, revision, or nothing that a pattern takes), KHUB_E_UNTRUSTED, KHUB_E_DENIED
 * (private, gated, disabled, or a rejected token), KHUB_E_OFFLINE, KHUB_E_NETWORK, KHUB_E_FORMAT (the Hub's
 * answer), KHUB_E_NOSPACE, KHUB_E_IO, KHUB_E_CANCELED, KHUB_E_INVAL, KHUB_E_NOMEM. */
KHUB_API int khub_download(khub_snapshot **out, const char *name, const khub_download_options *options,
                           khub_error *err);

/* May the kernels of ORG/NAME be loaded: does the Hub call their publisher trusted, or the caller? The
 * cache's answer is taken when it has one. KHUB_OK; KHUB_E_UNTRUSTED with the reason; else as khub_download.
 */
KHUB_API int khub_trusted(const char *name, const khub_hub_options *options, khub_error *err);

/* Facts; strings are the snapshot's, valid until it is freed. */
KHUB_API const char *khub_snapshot_repository(
    const khub_snapshot *snapshot);                                       /* "ORG/NAME", after redirects */
KHUB_API const char *khub_snapshot_commit(const khub_snapshot *snapshot); /* 40 hex digits */
KHUB_API const char *khub_snapshot_path(
    const khub_snapshot *snapshot);                        /* the directory that holds its files */
KHUB_API void khub_snapshot_free(khub_snapshot *snapshot); /* NULL is a no-op */

/* The versions of a kernel repository: its branches v0, v1, … */
typedef struct khub_versions khub_versions;

/* Asks the Hub for the versions of ORG/NAME, or of ORG/NAME@RANGE those in the range; offline, or when the
 * Hub can't be reached, those that the cache has. *out is the caller's (khub_versions_free). Errors as
 * khub_download's. */
KHUB_API int khub_versions_list(khub_versions **out, const char *name, const khub_hub_options *options,
                                khub_error *err);

typedef struct khub_version_info {
    int64_t version;    /* 1 for branch v1; 0 is experimental */
    const char *commit; /* that the branch stands at */
    int cached;         /* 1: the cache has a snapshot of that commit */
} khub_version_info;

/* The i-th, lowest version first; NULL past the last. Valid until the list is freed. */
KHUB_API const khub_version_info *khub_versions_at(const khub_versions *versions, size_t i);
KHUB_API int khub_versions_offline(const khub_versions *versions); /* 1: the cache answered, not the Hub */
KHUB_API void khub_versions_free(khub_versions *versions);         /* NULL is a no-op */

#ifdef __cplusplus
}
#endif

#endif
