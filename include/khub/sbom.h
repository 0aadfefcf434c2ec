/* What a build consists of, for those who keep account of what they run: a software bill of materials. */
#ifndef KHUB_SBOM_H
#define KHUB_SBOM_H

#include <khub/trust.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct khub_sbom_options {
    size_t struct_size;        /* set by KHUB_INIT */
    const char *repository;    /* "ORG/NAME" of the Hub; NULL: a directory of this machine */
    const char *commit;        /* of the repository, hex digits; NULL: none */
    const khub_policy *policy; /* whose signatures are accepted; borrowed during the call; NULL: the user's,
                                * as khub_policy_read(NULL) has it, if the build has a signature at all */
} khub_sbom_options;

/* Describes the build in the directory `build` (REPOSITORY/build/VARIANT) in CycloneDX 1.6, as JSON: the
 * kernel, where it comes from, each file with its SHA-256, the kernels that it needs, whether its digest and
 * its signature hold, and, proven by the signature, its signer and the commit of its source. Every file is
 * read; nothing is loaded, and nothing is refused: what doesn't hold is said. The same build is described by
 * the same bytes. *json is the caller's (khub_free); NULL after a failure. `options` may be NULL. Any thread.
 * KHUB_E_FORMAT (metadata.json; a file that can't be hashed), KHUB_E_NOTFOUND, KHUB_E_IO, KHUB_E_UNSUPPORTED
 * (no libcrypto), KHUB_E_NOMEM; when there is a signature also khub_policy_read's and
 * khub_trusted_root_open's. */
KHUB_API int khub_sbom(char **json, const char *build, const khub_sbom_options *options, khub_error *err);

#ifdef __cplusplus
}
#endif

#endif
