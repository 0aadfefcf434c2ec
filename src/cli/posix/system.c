/* What the commands ask the system themselves. */
#include "cli.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

int cli_is_terminal(FILE *file)
{
    return isatty(fileno(file));
}

const char *cli_not_a_directory(const char *path)
{
    struct stat st;
    if (stat(path, &st) != 0) return strerror(errno);
    return S_ISDIR(st.st_mode) ? NULL : "is no directory";
}
