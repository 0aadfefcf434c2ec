/* khub matrix --svg: machines down, builds across. Lengths are in pixels. */
#include "matrix.h"

#include "svg.h"

enum {
    MARGIN = 20,
    LINE = 22,   /* a machine */
    COLUMN = 26, /* a build */
    HEAD = 84,   /* title, key */
    DOT = 7      /* radius */
};

typedef struct chart {
    FILE *to;
    const cli_matrix *matrix;
    int left, top; /* where the dots begin */
} chart;

/* Builds stand across as the first machine has them; all machines have the same, each in its own order. */
static const khub_decision *column(const chart *ch, size_t i)
{
    return ch->matrix->count ? khub_choice_at(ch->matrix->rows[0].choice, i) : NULL;
}

static const khub_decision *decision_on(const khub_choice *choice, const char *name)
{
    const khub_decision *d;
    for (size_t i = 0; (d = khub_choice_at(choice, i)); i++)
        if (!strcmp(d->name, name)) return d;
    return NULL;
}

static int columns(const chart *ch)
{
    int count = 0;
    while (column(ch, (size_t)count))
        count++;
    return count;
}

static void measure(chart *ch)
{
    int machines = 0, builds = 0;
    const khub_decision *d;
    for (size_t i = 0; i < ch->matrix->count; i++)
        if (cli_svg_length(ch->matrix->rows[i].name) > machines)
            machines = cli_svg_length(ch->matrix->rows[i].name);
    for (size_t i = 0; (d = column(ch, i)); i++)
        if (cli_svg_length(d->name) > builds) builds = cli_svg_length(d->name);
    ch->left = MARGIN + machines * CLI_SVG_LETTER + 16;
    ch->top = HEAD + builds * CLI_SVG_LETTER + 16;
}

static void draw_dot(const chart *ch, int x, int y, const char *class)
{
    fprintf(ch->to, "<circle class=\"%s\" cx=\"%d\" cy=\"%d\" r=\"%d\"/>\n", class, x, y, DOT);
}

static void draw_key(const chart *ch)
{
    draw_dot(ch, MARGIN + DOT, HEAD - 24, "kernel");
    fprintf(ch->to, "<text class=\"small\" x=\"%d\" y=\"%d\">the build it gets</text>\n", MARGIN + 22,
            HEAD - 20);
    draw_dot(ch, MARGIN + 150, HEAD - 24, "standard");
    fprintf(ch->to, "<text class=\"small\" x=\"%d\" y=\"%d\">fits too</text>\n", MARGIN + 165, HEAD - 20);
}

static void draw_builds(const chart *ch)
{
    const khub_decision *d;
    for (size_t i = 0; (d = column(ch, i)); i++) {
        int x = ch->left + (int)i * COLUMN + COLUMN / 2;
        fprintf(ch->to, "<text class=\"small\" transform=\"translate(%d %d) rotate(-90)\">", x + 4,
                ch->top - 12);
        cli_svg_text(ch->to, d->name);
        fputs("</text>\n", ch->to);
    }
}

static void draw_machine(const chart *ch, const cli_matrix_row *row, int y)
{
    const khub_decision *d, *build, *chosen = khub_choice_chosen(row->choice);
    fprintf(ch->to, "<path class=\"grid\" d=\"M%d %dh%d\"/>", ch->left, y, columns(ch) * COLUMN);
    fprintf(ch->to, "<text class=\"%s\" x=\"%d\" y=\"%d\">", chosen ? "right" : "small right", ch->left - 10,
            y + 4);
    cli_svg_text(ch->to, row->name);
    fputs("</text>\n", ch->to);
    for (size_t i = 0; (build = column(ch, i)); i++) {
        d = decision_on(row->choice, build->name);
        if (d && d->kind == KHUB_ACCEPTED)
            draw_dot(ch, ch->left + (int)i * COLUMN + COLUMN / 2, y, d == chosen ? "kernel" : "standard");
    }
}

void cli_matrix_chart(FILE *to, const void *user)
{
    chart ch = {.to = to, .matrix = user};
    measure(&ch);
    int width = ch.left + columns(&ch) * COLUMN + MARGIN,
        height = ch.top + (int)ch.matrix->count * LINE + MARGIN;
    cli_svg_begin(to, width < 400 ? 400 : width, height, ch.matrix->repository, MARGIN);
    draw_key(&ch);
    draw_builds(&ch);
    for (size_t i = 0; i < ch.matrix->count; i++)
        draw_machine(&ch, &ch.matrix->rows[i], ch.top + (int)i * LINE + LINE / 2);
    cli_svg_end(to);
}
