#include "publish/trial.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/signals.h"
#include "base/text.h"
#include "kernel/library.h"
#include "kernel/runtime.h"

#include <khub/kernel.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

enum { PATIENCE_S = 60 };

int khub__trial_can(const khub__object *object)
{
    struct utsname system;
    if (uname(&system) != 0) return 0;
    khub__object_format format = !strcmp(system.sysname, "Darwin") ? KHUB__MACHO : KHUB__ELF;
    const char *arch = !strcmp(system.machine, "arm64") ? "aarch64" : system.machine;
    return object->format == format && !strcmp(arch, object->arch);
}

/* ---- the child: it writes 'L' and the functions, or 'R', a status and the reason; a NUL ends both ---- */

static void send(int to, const char *text, size_t length)
{
    while (length > 0) {
        ssize_t n = write(to, text, length);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) _exit(1);
        text += n;
        length -= (size_t)n;
    }
}

static void send_reason(int to, const khub_error *why)
{
    char start[24];
    send(to, start, (size_t)snprintf(start, sizeof(start), "R%d ", (int)why->code));
    send(to, why->message, strlen(why->message) + 1);
}

static void send_name(int to, const char *name)
{
    send(to, name, strlen(name));
    send(to, "\n", 1);
}

static void load_library(int to, const char *path)
{
    const khub__library *library;
    khub_error why = {0};
    khub__runtime_open(NULL); /* without it, the loader says what is missing */
    if (khub__library_open(&library, path, NULL, NULL, &why) != KHUB_OK) {
        send_reason(to, &why);
        return;
    }
    send(to, "L", 1);
    for (size_t i = 0; i < library->function_count; i++)
        send_name(to, library->functions[i].name);
    send(to, "", 1);
}

static void load_kernel(int to, const khub__trial_of *what)
{
    khub_kernel *kernel;
    khub_get_options get;
    khub_hub_options hub = {0};
    khub_error why = {0};
    KHUB_INIT(&get);
    get.variant = what->variant;
    get.hub = &hub;
    int rc = khub__options(&hub, sizeof(hub), what->hub, "khub_hub_options", &why);
    hub.struct_size = sizeof(hub);
    hub.offline = 1;
    hub.progress = NULL; /* the parent's */
    if (rc == KHUB_OK) rc = khub_get(&kernel, what->name, &get, &why);
    if (rc != KHUB_OK) {
        send_reason(to, &why);
        return;
    }
    send(to, "L", 1);
    const khub_function_info *info;
    for (size_t i = 0; (info = khub_kernel_function_info(kernel, i)) != NULL; i++)
        send_name(to, info->name);
    send(to, "", 1);
}

/* What the library prints to stdout isn't ours, and it has nobody to ask. */
static void be_quiet(void)
{
    int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (nothing < 0) return;
    dup2(nothing, STDIN_FILENO);
    dup2(nothing, STDOUT_FILENO);
}

static void be_child(int to, const khub__trial_of *what, pid_t parent)
{
#ifdef __linux__
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* a library that hangs is ended by the parent's patience, or its end */
    if (getppid() != parent) _exit(1);
#endif
    (void)parent;
    struct rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none);
    be_quiet();
    if (what->name)
        load_kernel(to, what);
    else
        load_library(to, what->path);
    _exit(0); /* the functions that this process has for its own end are not the child's */
}

/* ---- the parent ---- */

static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* What the child writes, until it ends or patience does. 0: patience did. */
static int listen_to(khub__text *heard, int from)
{
    char piece[4096];
    int64_t until = now_ms() + (int64_t)PATIENCE_S * 1000;
    for (;;) {
        struct pollfd wait = {.fd = from, .events = POLLIN};
        int64_t left = until - now_ms();
        if (left <= 0) return 0;
        int ready = poll(&wait, 1, (int)left);
        if (ready < 0 && errno != EINTR) return 1;
        if (ready <= 0) continue;
        ssize_t n = read(from, piece, sizeof(piece));
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return 1;
        khub__text_add_bytes(heard, piece, (size_t)n);
    }
}

/* `heard` is complete when it ends with its NUL. */
static int judge(khub__trial *out, const khub__text *heard, int status, khub_error *err)
{
    char buffer[24];
    const char *text = NULL;
    int complete = heard->length >= 2 && !heard->data[heard->length - 1];
    if (WIFSIGNALED(status)) {
        out->end = KHUB__TRIAL_KILLED;
        out->number = WTERMSIG(status);
        text = khub__signal_name(out->number);
        if (!text) {
            snprintf(buffer, sizeof(buffer), "signal %d", out->number);
            text = buffer;
        }
    } else if (complete) {
        out->end = heard->data[0] == 'L' ? KHUB__TRIAL_LOADED : KHUB__TRIAL_REFUSED;
        out->number = out->end == KHUB__TRIAL_REFUSED ? (int)strtol(heard->data + 1, NULL, 10) : 0;
        text = heard->data + 1 + (out->end == KHUB__TRIAL_REFUSED ? strcspn(heard->data + 1, " ") + 1 : 0);
    } else {
        out->end = KHUB__TRIAL_EXITED;
        out->number = WEXITSTATUS(status);
    }
    if (text && !(out->text = khub__strdup(text))) return khub__fail_memory(err, "loading a library");
    return KHUB_OK;
}

static int watch(khub__trial *out, pid_t child, int from, khub_error *err)
{
    khub__text heard = {0};
    int status = 0, ended = listen_to(&heard, from);
    if (!ended) kill(child, SIGKILL);
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        continue;
    int rc = KHUB_OK;
    if (!ended)
        *out = (khub__trial){.end = KHUB__TRIAL_HUNG, .number = PATIENCE_S};
    else
        rc = heard.failed ? khub__fail_memory(err, "loading a library") : judge(out, &heard, status, err);
    khub__text_free(&heard);
    return rc;
}

int khub__trial_load(khub__trial *out, const khub__trial_of *what, khub_error *err)
{
    int ends[2];
    memset(out, 0, sizeof(*out));
    if (pipe(ends) != 0) return khub__fail_errno(err, what->path, "load it in another process");
    fcntl(ends[0], F_SETFD, FD_CLOEXEC);
    fcntl(ends[1], F_SETFD, FD_CLOEXEC);
    pid_t parent = getpid(), child = fork();
    if (child == 0) {
        close(ends[0]);
        be_child(ends[1], what, parent);
    }
    close(ends[1]);
    int rc = child < 0 ? khub__fail_errno(err, what->path, "load it in another process")
                       : watch(out, child, ends[0], err);
    close(ends[0]);
    return rc;
}
