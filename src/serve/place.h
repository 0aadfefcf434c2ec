/* Where in DIR a repository lies. */
#ifndef SERVE_PLACE_H
#define SERVE_PLACE_H

#include "serve/layout.h"

enum { SERVE_PLACE_MAX = 512 };

/* The layout that is there, and where, below DIR: ORG/NAME.git, ORG/NAME (a model's under models/), or
 * KINDS--ORG--NAME. NULL: none. Reads the disk. */
const serve_layout *serve_place(char where[SERVE_PLACE_MAX], serve_kind kind, const char *id);

/* 1 when DIR has repositories of that owner. Reads the disk. */
int serve_has_owner(const char *owner);

#endif
