/* What the addresses of the API answer, once what they ask for is found. */
#ifndef SERVE_API_H
#define SERVE_API_H

#include "serve/answer.h"
#include "serve/repository.h"

serve_answer serve_api_info(const serve_address *address, const serve_found *found);
serve_answer serve_api_refs(const serve_address *address, const serve_found *found);

/* A page of 1,000 entries; `base` is this server's own address, which the next page's is made of. */
serve_answer serve_api_tree(const serve_address *address, const serve_found *found, const char *base);

/* The entries of those paths that are there: `paths` are `count` texts, one behind the other, a NUL after
 * each. At most SERVE_PATHS_MAX, as many as the Hub takes. */
enum { SERVE_PATHS_MAX = 1000 };
serve_answer serve_api_paths(const serve_address *address, const serve_found *found, const char *paths,
                             size_t count);

serve_answer serve_api_overview(const char *organization, int trusted);

#endif
