#include "hub.h"

#include "progress.h"

#include <signal.h>

enum { ALIVE_MS = 500 }; /* a fetch calls every 50 ms */

static volatile sig_atomic_t interrupted;
static _Atomic int64_t last_progress_ms;
static khub_policy *policy; /* that the command line changes; for the life of the process. NULL: the user's */

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
    hub->level = hub->trusted_root = NULL;
}

static int change_policy(khub_policy *to, const cli_hub *hub, khub_error *err)
{
    khub_trust_level level;
    int rc = hub->level ? khub_trust_level_parse(&level, hub->level, err) : KHUB_OK;
    if (rc == KHUB_OK && hub->level) rc = khub_policy_set_level(to, level, err);
    return rc == KHUB_OK && hub->trusted_root ? khub_policy_set_trusted_root(to, hub->trusted_root, err) : rc;
}

/* Whom nobody can be isn't vouched for in vain. */
static int check_trust(const cli_hub *hub, khub_error *err)
{
    khub_policy *any;
    int rc = hub->trust.count ? khub_policy_new(&any, err) : KHUB_OK;
    if (rc != KHUB_OK || !hub->trust.count) return rc;
    for (size_t i = 0; i < hub->trust.count && rc == KHUB_OK; i++)
        rc = khub_policy_add_publisher(any, hub->trust.items[i], err);
    khub_policy_free(any);
    return rc;
}

/* The user's policy with what the command line says; there is one command line. */
static int read_policy(const cli_hub *hub, khub_error *err)
{
    khub_policy *read;
    if (policy || (!hub->level && !hub->trusted_root)) return KHUB_OK;
    int rc = khub_policy_read(&read, NULL, err);
    if (rc == KHUB_OK) rc = change_policy(read, hub, err);
    if (rc == KHUB_OK)
        policy = read;
    else
        khub_policy_free(read);
    return rc;
}

int cli_hub_begin(cli_hub *hub, khub_error *err)
{
    int rc = check_trust(hub, err);
    if (rc == KHUB_OK) rc = read_policy(hub, err);
    if (rc != KHUB_OK) return rc;
    hub->options.policy = policy;
    hub->options.trust = hub->trust.items;
    hub->options.progress = on_progress;
    cli_on_interrupt(interrupt);
    cli_kernels_begin();
    return KHUB_OK;
}

void cli_hub_end(void)
{
    cli_kernels_end();
    cli_progress_clear();
    if (interrupted) fputs("khub: stopped; what was fetched so far is kept\n", stderr);
    cli_on_interrupt(NULL);
    if (interrupted) raise(SIGINT);
}

int cli_get(khub_kernel **out, const char *name, khub_get_options *get, cli_hub *hub, khub_error *err)
{
    *out = NULL;
    int rc = cli_hub_begin(hub, err);
    if (rc != KHUB_OK) return rc;
    get->hub = &hub->options;
    rc = khub_get(out, name, get, err);
    cli_hub_end();
    return rc;
}

int cli_download(khub_snapshot **out, const char *name, khub_download_options *download, cli_hub *hub,
                 khub_error *err)
{
    *out = NULL;
    int rc = cli_hub_begin(hub, err);
    if (rc != KHUB_OK) return rc;
    download->hub = &hub->options;
    rc = khub_download(out, name, download, err);
    cli_hub_end();
    return rc;
}

int cli_choose(khub_choice **out, const char *name, const khub_platform *platform, cli_hub *hub,
               khub_error *err)
{
    *out = NULL;
    int rc = cli_hub_begin(hub, err);
    if (rc != KHUB_OK) return rc;
    rc = khub_choose_in(out, name, platform, &hub->options, err);
    cli_hub_end();
    return rc;
}
