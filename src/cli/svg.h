/* Charts for a page, light or dark: SVG without scripts and fonts of its own. */
#ifndef CLI_SVG_H
#define CLI_SVG_H

#include "cli.h"

/* Pixels that a letter of a name is wide, or a little less. */
enum { CLI_SVG_LETTER = 7 };

/* The chart's head, an empty page, and `title` on it at the left margin `x`. Classes of text: title, small,
 * right, middle; of areas: kernel (strong), standard (faint); of lines: grid, limit, spread. */
void cli_svg_begin(FILE *to, int width, int height, const char *title, int x);
void cli_svg_end(FILE *to);

/* Text that may be a stranger's, between or inside tags. */
void cli_svg_text(FILE *to, const char *text);

/* Letters of a UTF-8 text. */
int cli_svg_length(const char *text);

/* Writes the file at `path` by draw(file, user). EXIT_DONE, or EXIT_FAILED after saying why it can't. */
int cli_svg_write(const char *path, void (*draw)(FILE *to, const void *user), const void *user);

#endif
