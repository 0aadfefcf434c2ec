/* The addresses of the Hub's API. Each is the caller's (khub_free); NULL: no memory. */
#ifndef HUB_ADDRESS_H
#define HUB_ADDRESS_H

#include "hub/repo.h"

/* ENDPOINT/api/KIND/ID/refs */
char *khub__address_refs(const char *endpoint, const khub__repo *repo);
/* ENDPOINT/api/KIND/ID/revision/REV */
char *khub__address_revision(const char *endpoint, const khub__repo *repo, const char *revision);
/* ENDPOINT/api/KIND/ID/tree/COMMIT?recursive=true */
char *khub__address_tree(const char *endpoint, const khub__repo *repo, const char *commit);
/* ENDPOINT/api/organizations/ORG/overview */
char *khub__address_overview(const char *endpoint, const char *org);
/* ENDPOINT[/kernels]/ID/resolve/COMMIT/PATH */
char *khub__address_file(const char *endpoint, const khub__repo *repo, const char *commit, const char *path);

/* Where a page's rel="next" is asked for: there, or at the endpoint when it names another origin.
 * KHUB_E_NOMEM, KHUB_E_NETWORK. */
int khub__address_page(char **out, const char *endpoint, const char *page, const char *next, khub_error *err);

/* The ORG/NAME in an address ENDPOINT/api/KIND/ORG/NAME/WORD[?…] that an answer came from; 0: it isn't one.
 * `word` may hold "/". */
int khub__address_repo(khub__repo *out, const char *endpoint, khub__repo_kind kind, const char *word,
                       const char *url);

#endif
