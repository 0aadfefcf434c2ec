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

static int too_long(const cli_lines *lines, khub_error *err)
{
    err->code = KHUB_E_FORMAT;
    snprintf(err->message, sizeof(err->message), "%s: line %zu is longer than %d MiB", lines->name,
             lines->number, CLI_LINES_LONGEST >> 20);
    return -1;
}

static int grow(cli_lines *lines)
{
    size_t wanted = lines->capacity ? 2 * lines->capacity : 256;
    char *grown = realloc(lines->line, wanted);
    if (!grown) return -1;
    lines->line = grown;
    lines->capacity = wanted;
    return 0;
}

int cli_lines_next(cli_lines *lines, const char **text, size_t *length, khub_error *err)
{
    size_t n = 0;
    int c;
    lines->number++;
    errno = 0;
    while ((c = getc_unlocked(lines->file)) != EOF && c != '\n') {
        if (n == CLI_LINES_LONGEST) return too_long(lines, err);
        if (n == lines->capacity && grow(lines) != 0) break;
        lines->line[n++] = (char)c;
    }
    if (ferror(lines->file) || (c != EOF && c != '\n')) {
        fail(lines, "read it", err);
        return -1;
    }
    if (c == EOF && n == 0) return 0;
    if (c == '\n' && n > 0 && lines->line[n - 1] == '\r') n--;
    *text = lines->line ? lines->line : "";
    *length = n;
    return 1;
}

void cli_lines_close(cli_lines *lines)
{
    if (lines->file && lines->file != stdin) fclose(lines->file);
    free(lines->line);
    memset(lines, 0, sizeof(*lines));
}
