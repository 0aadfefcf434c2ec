/* The answer to [/kernels]/ID/resolve/REV/PATH: the file itself. */
#ifndef SERVE_FILE_H
#define SERVE_FILE_H

#include "serve/answer.h"
#include "serve/repository.h"

/* Headers of a request that an answer with a file heeds; NULL: not sent. */
typedef struct serve_conditions {
    const char *range, *if_range, *if_none_match;
} serve_conditions;

serve_answer serve_file(const serve_address *address, const serve_found *found,
                        const serve_conditions *conditions);

#endif
