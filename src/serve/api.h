/* What the addresses of the API answer, once what they ask for is found. */
#ifndef SERVE_API_H
#define SERVE_API_H

#include "serve/answer.h"
#include "serve/repository.h"

serve_answer serve_api_info(const serve_address *address, const serve_found *found);
serve_answer serve_api_refs(const serve_address *address, const serve_found *found);

/* A page of 1,000 entries; `base` is this server's own address, which the next page's is made of. */
serve_answer serve_api_tree(const serve_address *address, const serve_found *found, const char *base);

serve_answer serve_api_overview(const char *organization, int trusted);

#endif
