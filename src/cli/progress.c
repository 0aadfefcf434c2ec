#include "progress.h"

enum { WIDTH = 24, FIRST_MS = 250, EVERY_MS = 100 };

static int64_t started_ms, drawn_ms;
static uint64_t started_bytes;
static int is_drawn;

static int is_wanted(void)
{
    static int wanted = -1;
    if (wanted < 0)
        wanted = cli_is_terminal(stderr) && !cli_quiet() && !cli_env_is_true("HF_HUB_DISABLE_PROGRESS_BARS");
    return wanted;
}

/* "12.3 MB" */
static void print_bytes(double bytes, const char *behind)
{
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB"};
    size_t unit = 0;
    for (; bytes >= 1000 && unit + 1 < sizeof(units) / sizeof(*units); unit++)
        bytes /= 1000;
    fprintf(stderr, "%.*f %s%s", unit && bytes < 100 ? 1 : 0, bytes, units[unit], behind);
}

static void draw(const khub_progress *p, int64_t elapsed_ms)
{
    double part = p->bytes_total ? (double)p->bytes_done / (double)p->bytes_total : 0;
    double rate = elapsed_ms > 0 ? (double)(p->bytes_done - started_bytes) * 1000 / (double)elapsed_ms : 0;
    int filled = part >= 1 ? WIDTH : (int)(part * WIDTH);
    fputs("\r\033[K", stderr);
    cli_name(stderr, p->what);
    fprintf(stderr, " [%.*s%*s] ", filled, "########################", WIDTH - filled, "");
    print_bytes((double)p->bytes_done, " of ");
    print_bytes((double)p->bytes_total, ", ");
    print_bytes(rate, "/s");
    if (rate > 0 && p->bytes_total > p->bytes_done)
        fprintf(stderr, ", %.0f s left", (double)(p->bytes_total - p->bytes_done) / rate);
    if (p->files_total > 1) fprintf(stderr, ", %u of %u files", p->files_done, p->files_total);
    fflush(stderr);
}

void cli_progress_draw(const khub_progress *progress)
{
    int64_t now = cli_now_ms();
    if (!started_ms) {
        started_ms = now;
        started_bytes = progress->bytes_done;
    }
    if (!is_wanted() || now - started_ms < FIRST_MS || now - drawn_ms < EVERY_MS) return;
    drawn_ms = now;
    is_drawn = 1;
    draw(progress, now - started_ms);
}

void cli_progress_clear(void)
{
    if (is_drawn) fputs("\r\033[K", stderr);
    is_drawn = 0;
    started_ms = 0;
}
