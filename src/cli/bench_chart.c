/* khub bench --svg: two bars for each case, and marks for what the machine can do. Lengths are in pixels. */
#include "bench.h"

#include "model.h"
#include "svg.h"

#include <math.h>

enum {
    MARGIN = 20,
    NAMES_LEAST = 230, /* before the bars; wider where names are longer, up to */
    NAMES_MOST = 480,
    PLOT = 340,
    NUMBERS = 216, /* the column behind the bars */
    TOP = 98,
    GROUP = 44, /* a case: 15 + 11 of bars */
    KERNEL_BAR = 15,
    STANDARD_BAR = 11,
    BOTTOM = 66
};

/* What the bars show: GB/s, or GFLOP/s where calls compute more than they move. */
typedef struct chart {
    FILE *to;
    const khub_bench *bench;
    int flops;
    int left;     /* where the bars begin */
    double most;  /* right end of the axis, in 1e9 a second */
    double step;  /* from line to line */
    size_t count; /* cases that were measured */
    int standard; /* 1: the standard function was */
    int limits;   /* 1: the axis reaches to what the machine can do in some case */
} chart;

/* Above this many operations a byte no machine of today waits for its memory. */
#define COMPUTES 8

static int computes(const khub_bench *bench)
{
    const khub_bench_case *c;
    for (size_t i = 0; (c = cli_model.khub_bench_at(bench, i)) != NULL; i++)
        if (c->flops > COMPUTES * c->bytes) return 1;
    return 0;
}

static double amount(const chart *ch, const khub_bench_case *c)
{
    return (ch->flops ? c->flops : c->bytes) / 1e9;
}

static double rate(const chart *ch, const khub_bench_case *c, const khub_timing *t)
{
    return cli_bench_rate(amount(ch, c), t);
}

/* What the machine can do in this case, in the chart's unit. */
static double limit(const chart *ch, const khub_bench_case *c)
{
    return (ch->flops ? cli_model.khub_bench_machine_of(ch->bench)->fma_flops : c->copy) / 1e9;
}

/* The limit is shown where that doesn't make the bars much shorter. */
static void scale(chart *ch)
{
    const khub_bench_case *c;
    double bars = 0, limits = 0, least = INFINITY;
    int longest = NAMES_LEAST;
    for (size_t i = 0; (c = cli_model.khub_bench_at(ch->bench, i)) != NULL; i++) {
        if (c->reason) continue;
        ch->count++;
        ch->standard |= c->standard.samples > 0;
        bars = fmax(bars, fmax(rate(ch, c, &c->kernel), rate(ch, c, &c->standard)));
        limits = fmax(limits, limit(ch, c));
        if (limit(ch, c) > 0) least = fmin(least, limit(ch, c));
        if (longest < CLI_SVG_LETTER * cli_svg_length(c->shape))
            longest = CLI_SVG_LETTER * cli_svg_length(c->shape);
    }
    ch->left = MARGIN + (longest < NAMES_MOST ? longest : NAMES_MOST) + 10;
    double most = fmax(bars, fmin(limits, 1.6 * bars));
    if (!(most > 0)) most = 1;
    double power = pow(10, floor(log10(most / 5))), fifth = most / 5 / power; /* from 1 to 10 */
    ch->step = power * (fifth > 5 ? 10 : fifth > 2 ? 5 : fifth > 1 ? 2 : 1);
    ch->most = most * 1.02;
    ch->limits = least <= ch->most;
}

static double at(const chart *ch, double value)
{
    return ch->left + PLOT * fmin(value / ch->most, 1);
}

static int width(const chart *ch)
{
    return ch->left + PLOT + NUMBERS + MARGIN;
}

static int height(const chart *ch)
{
    return TOP + (int)ch->count * GROUP + BOTTOM;
}

static const char *unit(const chart *ch)
{
    return ch->flops ? "GFLOP/s" : "GB/s";
}

static void draw_head(const chart *ch)
{
    const khub_bench_machine *m = cli_model.khub_bench_machine_of(ch->bench);
    cli_svg_begin(ch->to, width(ch), height(ch), m->kernel, MARGIN);
    fprintf(ch->to, "<text class=\"small\" x=\"%d\" y=\"58\">", MARGIN);
    cli_svg_text(ch->to, m->device ? m->device : m->cpu ? m->cpu : "unknown processor");
    if (!m->device) fprintf(ch->to, " · %u thread%s", m->threads, m->threads == 1 ? "" : "s");
    if (m->kernel_isa) {
        fputs(" · ", ch->to);
        cli_svg_text(ch->to, m->kernel_isa);
        fputs(" path", ch->to);
    }
    fprintf(ch->to, " · copies %.3g GB/s from memory · multiplies and adds %.3g GFLOP/s (%s)</text>\n",
            m->copy_memory / 1e9, m->fma_flops / 1e9, m->fma_isa);
}

/* A box or a line and what it stands for; *x moves behind it. */
static void draw_key_of(const chart *ch, int *x, const char *class, const char *words)
{
    enum { Y = 82 };
    if (!strcmp(class, "limit"))
        fprintf(ch->to, "<path class=\"limit\" d=\"M%d %dv12\"/>", *x + 7, Y - 11);
    else
        fprintf(ch->to, "<rect class=\"%s\" x=\"%d\" y=\"%d\" width=\"14\" height=\"11\"/>", class, *x,
                Y - 10);
    fprintf(ch->to, "<text class=\"small\" x=\"%d\" y=\"%d\">%s</text>\n", *x + 20, Y, words);
    *x += 36 + CLI_SVG_LETTER * (int)strlen(words);
}

static void draw_key(const chart *ch)
{
    int x = ch->left;
    draw_key_of(ch, &x, "kernel", "kernel");
    if (ch->standard) draw_key_of(ch, &x, "standard", "standard implementation");
    if (ch->limits)
        draw_key_of(ch, &x, "limit", ch->flops ? "peak of multiply-adds, float32" : "copying as many bytes");
}

/* Lines from top to bottom: the axis, and where the limit is the same for all. */
static void draw_axis(const chart *ch)
{
    int bottom = TOP + (int)ch->count * GROUP;
    double peak = cli_model.khub_bench_machine_of(ch->bench)->fma_flops / 1e9;
    for (int i = 0; i * ch->step <= ch->most; i++) {
        double x = at(ch, i * ch->step);
        fprintf(ch->to, "<path class=\"grid\" d=\"M%.1f %dV%d\"/>", x, TOP - 4, bottom + 4);
        fprintf(ch->to, "<text class=\"small middle\" x=\"%.1f\" y=\"%d\">%g</text>\n", x, bottom + 20,
                i * ch->step);
    }
    if (ch->flops && peak > 0 && peak <= ch->most)
        fprintf(ch->to, "<path class=\"limit\" d=\"M%.1f %dV%d\"/>\n", at(ch, peak), TOP - 4, bottom + 4);
    fprintf(ch->to,
            "<text class=\"small middle\" x=\"%d\" y=\"%d\">%s by the median time (line: the middle half of "
            "the samples); more is better</text>\n",
            ch->left + PLOT / 2, bottom + 40, unit(ch));
}

/* The name of the case, before the bars; what doesn't fit there is cut. */
static void draw_name(const chart *ch, const khub_bench_case *c, int y)
{
    char dtype[32], shape[NAMES_MOST / CLI_SVG_LETTER + 1];
    fprintf(ch->to, "<text class=\"right\" x=\"%d\" y=\"%d\">", ch->left - 10, y + 12);
    cli_svg_text(ch->to, c->layer ? c->layer : c->function);
    if (c->dtype.lanes) fprintf(ch->to, " · %s", khub_dtype_name(c->dtype, dtype));
    fprintf(ch->to, "</text><text class=\"small right\" x=\"%d\" y=\"%d\">", ch->left - 10, y + 28);
    snprintf(shape, sizeof(shape), "%s", c->shape);
    cli_svg_text(ch->to, shape);
    if (strlen(c->shape) >= sizeof(shape)) fputs("…", ch->to);
    fputs("</text>\n", ch->to);
}

static void draw_bar(const chart *ch, const khub_bench_case *c, const khub_timing *t, const char *class,
                     int y, int thick)
{
    double end = at(ch, rate(ch, c, t));
    fprintf(ch->to, "<rect class=\"%s\" x=\"%d\" y=\"%d\" width=\"%.1f\" height=\"%d\"/>", class, ch->left, y,
            end - ch->left, thick);
    if (t->q1 > 0) /* the middle half of the samples */
        fprintf(ch->to, "<path class=\"spread\" d=\"M%.1f %.1fH%.1f\"/>", at(ch, amount(ch, c) / t->q3),
                y + thick / 2.0, at(ch, amount(ch, c) / t->q1));
    fputc('\n', ch->to);
}

/* "72.6 GFLOP/s, 76 % of peak", and below it "1.02 ms, 1.25 times as fast". */
static void draw_numbers(const chart *ch, const khub_bench_case *c, int y)
{
    char value[16], time[16];
    double share = ch->flops ? c->peak_share : c->share;
    fprintf(ch->to, "<text x=\"%d\" y=\"%d\">%s %s", ch->left + PLOT + 16, y + 12,
            cli_bench_number(value, rate(ch, c, &c->kernel)), unit(ch));
    if (share > 0) fprintf(ch->to, ", %.*f %% of %s", share < 0.01, 100 * share, ch->flops ? "peak" : "copy");
    cli_bench_time(time, c->kernel.median);
    fprintf(ch->to, "</text><text class=\"small\" x=\"%d\" y=\"%d\">%s", ch->left + PLOT + 16, y + 28,
            time + strspn(time, " "));
    if (c->ratio > 0) fprintf(ch->to, ", %.2f times as fast", c->ratio);
    fputs("</text>\n", ch->to);
}

static void draw_case(const chart *ch, const khub_bench_case *c, int y)
{
    double most = limit(ch, c);
    draw_name(ch, c, y);
    draw_bar(ch, c, &c->kernel, "kernel", y, KERNEL_BAR);
    if (c->standard.samples) draw_bar(ch, c, &c->standard, "standard", y + KERNEL_BAR + 2, STANDARD_BAR);
    if (!ch->flops && most > 0 && most <= ch->most)
        fprintf(ch->to, "<path class=\"limit\" d=\"M%.1f %dv%d\"/>\n", at(ch, most), y - 3, KERNEL_BAR + 6);
    draw_numbers(ch, c, y);
}

void cli_bench_chart(FILE *to, const void *user)
{
    const khub_bench *bench = user;
    const khub_bench_case *c;
    chart ch = {.to = to, .bench = bench, .flops = computes(bench)};
    scale(&ch);
    draw_head(&ch);
    draw_key(&ch);
    draw_axis(&ch);
    for (size_t i = 0, row = 0; (c = cli_model.khub_bench_at(bench, i)) != NULL; i++)
        if (!c->reason) draw_case(&ch, c, TOP + 6 + (int)row++ * GROUP);
    cli_svg_end(to);
}
