/* A file of texts, one a line. */
#ifndef LINES_H
#define LINES_H

#include <khub/error.h>

#include <stdio.h>

/* A longer line is no text but some other kind of file (/dev/zero is one endless line). */
enum { CLI_LINES_LONGEST = 64 << 20 };

typedef struct cli_lines {
    FILE *file;
    const char *name; /* for messages */
    char *line;
    size_t capacity;
    size_t number; /* of the line read last, or looked for, from 1 */
} cli_lines;

/* Opens `path`; "-" is the standard input. KHUB_OK, KHUB_E_IO. */
int cli_lines_open(cli_lines *lines, const char *path, khub_error *err);

/* The next line: ends with LF or CRLF, neither is part of it; the last one may lack its end. An empty line is
 * an empty text. *text is borrowed until the next call. 1; 0: there are no more; -1: *err says why not. */
int cli_lines_next(cli_lines *lines, const char **text, size_t *length, khub_error *err);

void cli_lines_close(cli_lines *lines);

#endif
