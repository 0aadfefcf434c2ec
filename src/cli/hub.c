#include "hub.h"

#include "progress.h"

#include <signal.h>

enum { ALIVE_MS = 500 }; /* a fetch calls every 50 ms */

static volatile sig_atomic_t interrupted;
static _Atomic int64_t last_progress_ms;

/* Only a fetch can be ended in order; a kernel that hangs while it is loaded can't. In a signal handler. */
static int interrupt(void)
{
    if (!last_progress_ms || cli_now_ms() - last_progress_ms > ALIVE_MS) return 0;
    return interrupted = 1;
}

static int on_progress(void *user, const khub_progress *progress)
{
    (void)user;
    last_progress_ms = cli_now_ms();
    cli_progress_draw(progress);
    return interrupted;
}

void cli_hub_init(cli_hub *hub)
{
    KHUB_INIT(&hub->options);
    memset(&hub->trust, 0, sizeof(hub->trust));
}

void cli_hub_begin(cli_hub *hub)
{
    hub->options.trust = hub->trust.items;
    hub->options.progress = on_progress;
    cli_on_interrupt(interrupt);
}

void cli_hub_end(void)
{
    cli_progress_clear();
    if (interrupted) fputs("khub: stopped; what was fetched so far is kept\n", stderr);
    cli_on_interrupt(NULL);
    if (interrupted) raise(SIGINT);
}

int cli_get(khub_kernel **out, const char *name, khub_get_options *get, cli_hub *hub, khub_error *err)
{
    cli_hub_begin(hub);
    get->hub = &hub->options;
    int rc = khub_get(out, name, get, err);
    cli_hub_end();
    return rc;
}

int cli_download(khub_snapshot **out, const char *name, khub_download_options *download, cli_hub *hub,
                 khub_error *err)
{
    cli_hub_begin(hub);
    download->hub = &hub->options;
    int rc = khub_download(out, name, download, err);
    cli_hub_end();
    return rc;
}

int cli_choose(khub_choice **out, const char *name, const khub_platform *platform, cli_hub *hub,
               khub_error *err)
{
    cli_hub_begin(hub);
    int rc = khub_choose_in(out, name, platform, &hub->options, err);
    cli_hub_end();
    return rc;
}
