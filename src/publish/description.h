/* The metadata.json of a build that is being packed. */
#ifndef PUBLISH_DESCRIPTION_H
#define PUBLISH_DESCRIPTION_H

#include "variant/name.h"

#include <khub/pack.h>

#include <jansson.h>

/* What is known of the build when it is described. */
typedef struct khub__described {
    const char *directory; /* that is packed; for messages */
    const khub_pack_options *options;
    const json_t *base;             /* the directory's own metadata.json; NULL: it has none */
    const khub__variant_name *name; /* of the build */
    const char *variant;            /* the same as text */
} khub__described;

/* The text that a field has, by the options or else by the directory's metadata.json; NULL: nobody says.
 * Borrowed. */
const char *khub__described_text(const khub__described *build, const char *key);

/* What metadata.json calls the build's backend: "cuda"; NULL: neither the build's name nor anybody else says
 * it. Borrowed. */
const char *khub__described_backend(const khub__described *build);

/* metadata.json with this id and without a digest: the known fields in their order, then the directory's
 * others. Checked as every metadata.json is when it is read. The reference is the caller's. KHUB_E_INVAL
 * (what nobody says, or who contradicts whom), KHUB_E_FORMAT, KHUB_E_NOMEM. */
int khub__describe(json_t **out, const khub__described *build, const char *id, khub_error *err);

#endif
