/* The Hub's JSON answers. Each reader takes any bytes; `address` stands in its messages. */
#ifndef HUB_LISTING_H
#define HUB_LISTING_H

#include "hub/client.h"

/* {"branches":[{"name","targetCommit"}],"tags":[...]}. KHUB_E_FORMAT, KHUB_E_NOMEM; then *out is empty. */
int khub__listing_refs(khub__refs *out, const char *text, size_t length, const char *address,
                       khub_error *err);

/* One page of a tree, an array; its files are added to `tree`, which the caller frees after a failure too. */
int khub__listing_page(khub__tree *tree, const char *text, size_t length, const char *address,
                       khub_error *err);

/* {"sha":COMMIT} */
int khub__listing_commit(char commit[KHUB__COMMIT_MAX + 1], const char *text, size_t length,
                         const char *address, khub_error *err);

/* {"trustedKernelPublisher":BOOL}; absent is 0. */
int khub__listing_publisher(int *trusted, const char *text, size_t length, const char *address,
                            khub_error *err);

#endif
