#include "lines.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int complain(const cli_lines *lines, const char *what)
{
    fprintf(stderr, "khub: %s: can't %s: %s\n", lines->name, what, strerror(errno));
    return -1;
}

int cli_lines_open(cli_lines *lines, const char *path)
{
    memset(lines, 0, sizeof(*lines));
    int standard = !strcmp(path, "-");
    lines->name = standard ? "standard input" : path;
    lines->file = standard ? stdin : fopen(path, "r");
    return lines->file ? 0 : complain(lines, "open it");
}

int cli_lines_next(cli_lines *lines, const char **text, size_t *length)
{
    errno = 0;
    ssize_t n = getline(&lines->line, &lines->capacity, lines->file);
    if (n < 0) return errno || ferror(lines->file) ? complain(lines, "read it") : 0;
    if (n > 0 && lines->line[n - 1] == '\n') n -= n > 1 && lines->line[n - 2] == '\r' ? 2 : 1;
    lines->number++;
    *text = lines->line;
    *length = (size_t)n;
    return 1;
}

void cli_lines_close(cli_lines *lines)
{
    if (lines->file && lines->file != stdin) fclose(lines->file);
    free(lines->line);
    memset(lines, 0, sizeof(*lines));
}
