#include "lines.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int fail(const cli_lines *lines, const char *what, khub_error *err)
{
    err->code = KHUB_E_IO;
    snprintf(err->message, sizeof(err->message), "%s: can't %s: %s", lines->name, what, strerror(errno));
    return err->code;
}

int cli_lines_open(cli_lines *lines, const char *path, khub_error *err)
{
    memset(lines, 0, sizeof(*lines));
    int standard = !strcmp(path, "-");
    lines->name = standard ? "standard input" : path;
    lines->file = standard ? stdin : fopen(path, "r");
    return lines->file ? KHUB_OK : fail(lines, "open it", err);
}

int cli_lines_next(cli_lines *lines, const char **text, size_t *length, khub_error *err)
{
    errno = 0;
    ssize_t n = getline(&lines->line, &lines->capacity, lines->file);
    if (n < 0 && !errno && !ferror(lines->file)) return 0;
    if (n < 0) {
        fail(lines, "read it", err);
        return -1;
    }
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
