#include "svg.h"

#include <errno.h>

static const char style[] =
    "<style>\n"
    "text{font:13px system-ui,-apple-system,\"Segoe UI\",\"DejaVu "
    "Sans\",sans-serif;fill:#1f2328;stroke:#ffffff;"
    "stroke-width:3px;paint-order:stroke}\n"
    ".title{font-size:19px;font-weight:600}.small{font-size:12px;fill:#59636e}.right{text-anchor:end}\n"
    ".middle{text-anchor:middle}\n"
    ".page{fill:#ffffff}.grid{stroke:#d8dee4}.kernel{fill:#0969da}.standard{fill:#b6bec7}\n"
    ".limit{stroke:#bc4c00;stroke-width:2}.spread{stroke:#1f2328}\n"
    "@media (prefers-color-scheme:dark){\n"
    "text{fill:#f0f6fc;stroke:#0d1117}.small{fill:#a5aeb8}.page{fill:#0d1117}.grid{stroke:#30363d}.kernel{"
    "fill:#4493f8}\n"
    ".standard{fill:#5c6570}.limit{stroke:#f0883e}.spread{stroke:#f0f6fc}}\n"
    "</style>\n";

void cli_svg_text(FILE *to, const char *text)
{
    while (*text) {
        size_t plain = strcspn(text, "&<>\"\n\t");
        cli_text(to, text, plain);
        text += plain;
        if (!*text) break;
        fputs(*text == '&'   ? "&amp;"
              : *text == '<' ? "&lt;"
              : *text == '>' ? "&gt;"
              : *text == '"' ? "&quot;"
                             : " ",
              to);
        text++;
    }
}

int cli_svg_length(const char *text)
{
    int count = 0;
    for (; *text; text++)
        count += (*text & 0xC0) != 0x80; /* not what continues a letter */
    return count;
}

void cli_svg_begin(FILE *to, int width, int height, const char *title, int x)
{
    fprintf(to,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\" "
            "role=\"img\">\n<title>",
            width, height, width, height);
    cli_svg_text(to, title);
    fprintf(to, "</title>\n%s<rect class=\"page\" width=\"%d\" height=\"%d\" rx=\"6\"/>\n", style, width,
            height);
    fprintf(to, "<text class=\"title\" x=\"%d\" y=\"36\">", x);
    cli_svg_text(to, title);
    fputs("</text>\n", to);
}

void cli_svg_end(FILE *to)
{
    fputs("</svg>\n", to);
}

int cli_svg_write(const char *path, void (*draw)(FILE *to, const void *user), const void *user)
{
    FILE *to = fopen(path, "w");
    int failed = !to;
    if (to) {
        draw(to, user);
        failed = ferror(to);
        failed |= fclose(to) != 0;
    }
    if (failed) cli_print(stderr, "khub: %s: can't write the chart: %s\n", path, strerror(errno));
    return failed ? EXIT_FAILED : EXIT_DONE;
}
