/* A folder as the content of a repository at one commit. */
#ifndef SERVE_FOLDER_H
#define SERVE_FOLDER_H

#include "serve/listing.h"

/* Lists the files of the folder `where` below DIR and names them by their content; its commit is the name of
 * the whole. Left out: .git, what can't be read, links that lead out of DIR, what is neither file nor folder,
 * and names that no address can have. KHUB_E_NOTFOUND: there is no such folder, or it keeps changing. */
int serve_folder_list(serve_listing **out, const char *where, khub_error *err);

#endif
