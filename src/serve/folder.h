/* A folder as the content of a repository at one commit. */
#ifndef SERVE_FOLDER_H
#define SERVE_FOLDER_H

#include "serve/listing.h"

/* What a file's names are without reading it. 0, or -1: unknown. */
typedef int (*serve_names_fn)(serve_names *out, const char *where, uint64_t size);

/* Lists the files of the folder `where` below DIR. They are named by their content unless `names` (may be
 * NULL) knows better; so is the whole, unless it has a `commit` (else NULL). Left out: .git, what can't be
 * read, links that lead out of DIR, what is neither file nor folder, and names that no address can have.
 * KHUB_E_NOTFOUND: there is no such folder, or it keeps changing. */
int serve_folder_list(serve_listing **out, const char *where, const char *commit, serve_names_fn names,
                      khub_error *err);

#endif
