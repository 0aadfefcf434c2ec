/* Programs that belong to this command. */
#include "cli.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

/* PREFIX/libexec/khub/NAME: PREFIX is KHUB_PREFIX, or where this command lies. */
static void find(char *out, size_t size, const char *name)
{
    char self[PATH_MAX] = "";
    const char *prefix = getenv("KHUB_PREFIX");
    if (!prefix || !*prefix) {
        ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
        self[n < 0 ? 0 : n] = 0;
        for (int i = 0; i < 2; i++) { /* /bin/khub */
            char *slash = strrchr(self, '/');
            if (slash) *slash = 0;
        }
        prefix = self;
    }
    snprintf(out, size, "%s/libexec/khub/%s", prefix, name);
}

int cli_become(const char *name, char **argv)
{
    char program[PATH_MAX + 64];
    find(program, sizeof(program), name);
    execv(program, argv);
    fprintf(stderr, "khub: %s: can't be run: %s\n", program, strerror(errno));
    return EXIT_FAILED;
}
