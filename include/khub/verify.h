/* Verifying kernels that are there: whether every file is still what it should be. */
#ifndef KHUB_VERIFY_H
#define KHUB_VERIFY_H

#include <khub/hub.h>
#include <khub/trust.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct khub_verify_options {
    size_t struct_size;          /* set by KHUB_INIT */
    const khub_hub_options *hub; /* borrowed during the call; NULL: as the environment says */
    const char *lock; /* a kernels.lock: names of the Hub are taken at the commits it has; NULL: none */
} khub_verify_options;

/* What was found about one build. Strings are borrowed for the call. */
typedef struct khub_verified {
    const char *name;        /* of the kernel, as it was asked for or as the lock has it */
    const char *commit;      /* NULL: a directory of this machine */
    const char *variant;     /* name of the build; NULL: nothing of the kernel is in the cache */
    const char *path;        /* of the build's directory; NULL like the variant */
    const khub_trust *trust; /* all decisions; what is refused is wrong. NULL like the variant */
} khub_verified;

/* Not 0 stops. */
typedef int (*khub_verified_fn)(void *user, const khub_verified *build);

/* Judges every build that is there of a kernel, as before it is loaded (docs/trust.md), but hashes every file
 * anew, whatever was proven before, and names each that is wrong. `name`: "ORG/NAME@REV" in the cache,
 * "ORG/NAME" for all its commits there, a directory (a kernel repository, or one build), or a built-in
 * kernel; NULL: each kernel of options.lock, of which some may not be in the cache. What a kernel needs isn't
 * followed. Nothing is fetched or mended; where there is a network the Hub is asked for what the cache lacks
 * of it: the list of a commit's files, and whether the publisher is trusted. *wrong (may be NULL) is the
 * number of builds with something refused. Any thread. KHUB_E_OFFLINE: the kernel isn't in the cache;
 * KHUB_E_CANCELED (`fn`); else khub_judge's errors, of which KHUB_E_UNTRUSTED is that of the policy's file.
 */
KHUB_API int khub_verify(size_t *wrong, const char *name, const khub_verify_options *options,
                         khub_verified_fn fn, void *user, khub_error *err);

#ifdef __cplusplus
}
#endif

#endif
