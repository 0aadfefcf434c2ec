/* The answer to [/kernels]/ID/resolve/REV/PATH: the file itself. */
#ifndef SERVE_FILE_H
#define SERVE_FILE_H

#include "serve/answer.h"
#include "serve/repository.h"

/* Headers of a request that an answer with a file heeds; NULL: not sent. */
typedef struct serve_conditions {
    const char *range, *if_range, *if_none_match;
} serve_conditions;

/* The answer may borrow from `found`. Its status is 0 when it takes unpacking, and the caller doesn't wait.
 */
serve_answer serve_file(const serve_address *address, const serve_found *found,
                        const serve_conditions *conditions, int may_wait);

/* Frees what serve_file keeps with an entry. */
void serve_file_forget(const serve_entry *entry);

#endif
