/* Bare git repositories, by libgit2. */
#ifndef SERVE_GIT_H
#define SERVE_GIT_H

#include <khub/error.h>

/* Before any repository is looked at, and after the last. */
int serve_git_start(khub_error *err);
void serve_git_stop(void);

#endif
