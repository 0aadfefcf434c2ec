#include "platform/ask.h"

#include "platform/probe/protocol.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

enum { MAX_ASKS = 8, REAP_TRIES = 1000, REAP_PAUSE_US = 200 };

static uint64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* Standard streams go to /dev/null, since drivers print; the pipe becomes descriptor 3. */
static int redirect(posix_spawn_file_actions_t *actions, int pipe_end)
{
    int rc = posix_spawn_file_actions_addopen(actions, 0, "/dev/null", O_RDONLY, 0);
    if (!rc) rc = posix_spawn_file_actions_addopen(actions, 1, "/dev/null", O_WRONLY, 0);
    if (!rc) rc = posix_spawn_file_actions_addopen(actions, 2, "/dev/null", O_WRONLY, 0);
    return rc ? rc : posix_spawn_file_actions_adddup2(actions, pipe_end, PROBE_FD);
}

/* The host's signal mask and ignored signals are its own affair. */
static int clean_signals(posix_spawnattr_t *attributes)
{
    sigset_t none, usual;
    sigemptyset(&none);
    sigemptyset(&usual);
    sigaddset(&usual, SIGPIPE);
    sigaddset(&usual, SIGCHLD);
    sigaddset(&usual, SIGALRM);
    int rc = posix_spawnattr_setsigmask(attributes, &none);
    if (!rc) rc = posix_spawnattr_setsigdefault(attributes, &usual);
    return rc ? rc : posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
}

static int spawn(khub__ask *ask, const char *program, int pipe_end, uint32_t timeout_ms)
{
    char seconds[16];
    snprintf(seconds, sizeof(seconds), "%u", timeout_ms / 1000 + 2);
    char *argv[] = {(char *)(uintptr_t)program, (char *)(uintptr_t)ask->backend,
                    (char *)(uintptr_t)ask->library, seconds, NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    pid_t pid = -1;
    int rc = posix_spawn_file_actions_init(&actions);
    if (rc) return rc;
    rc = posix_spawnattr_init(&attributes);
    if (!rc) {
        rc = redirect(&actions, pipe_end);
        if (!rc) rc = clean_signals(&attributes);
        if (!rc) rc = posix_spawn(&pid, program, &actions, &attributes, argv, environ);
        posix_spawnattr_destroy(&attributes);
    }
    posix_spawn_file_actions_destroy(&actions);
    ask->pid = pid;
    return rc;
}

/* Of ends that no process gets that another thread starts meanwhile, where the system can do that. */
static int make_pipe(int ends[2])
{
#if defined(__linux__)
    return pipe2(ends, O_CLOEXEC);
#else
    if (pipe(ends) != 0) return -1;
    fcntl(ends[0], F_SETFD, FD_CLOEXEC);
    fcntl(ends[1], F_SETFD, FD_CLOEXEC);
    return 0;
#endif
}

static void start(khub__ask *ask, const char *program, uint32_t timeout_ms)
{
    int ends[2];
    ask->end = KHUB__ASK_NOT_STARTED;
    ask->pipe = -1;
    if (make_pipe(ends) != 0) {
        ask->detail = errno;
        return;
    }
    /* above the descriptors that the child rearranges */
    int high = fcntl(ends[1], F_DUPFD_CLOEXEC, 10);
    ask->detail = high < 0 ? errno : spawn(ask, program, high, timeout_ms);
    if (high >= 0) close(high);
    close(ends[1]);
    if (ask->detail) {
        close(ends[0]);
        return;
    }
    ask->pipe = ends[0];
    ask->end = KHUB__ASK_EXITED; /* until it answers */
    ask->detail = -1;
}

/* Looks at the whole lines so far. 1: there is an answer. */
static int understand(khub__ask *ask)
{
    char *line = ask->output.data;
    for (char *end; line && (end = strchr(line, '\n')) != NULL; line = end + 1) {
        if (!strncmp(line, PROBE_ANSWER, strlen(PROBE_ANSWER))) {
            *end = 0;
            ask->answer = line + strlen(PROBE_ANSWER);
            ask->end = KHUB__ASK_ANSWERED;
            return 1;
        }
        if (strncmp(line, PROBE_DOING, strlen(PROBE_DOING)) != 0) continue;
        line += strlen(PROBE_DOING);
        snprintf(ask->doing, sizeof(ask->doing), "%.*s", (int)(end - line < 63 ? end - line : 63), line);
    }
    return 0;
}

/* Reads what is there. 1: there will be no more that matters. */
static int listen_to(khub__ask *ask)
{
    char chunk[4096];
    ssize_t n = read(ask->pipe, chunk, sizeof(chunk));
    if (n < 0) return errno != EINTR && errno != EAGAIN;
    if (n == 0) return 1;
    khub__text_add_bytes(&ask->output, chunk, (size_t)n);
    if (ask->output.failed || ask->output.length > PROBE_MAX_BYTES) {
        ask->end = KHUB__ASK_BABBLED;
        return 1;
    }
    return understand(ask);
}

/* Collects the process, or leaves one to init that even SIGKILL can't end (a driver asleep in the kernel). */
static void reap(khub__ask *ask)
{
    static const struct timespec pause = {0, REAP_PAUSE_US * 1000};
    int status;
    if (ask->end != KHUB__ASK_EXITED) kill((pid_t)ask->pid, SIGKILL);
    for (int i = 0; i < REAP_TRIES; i++) {
        pid_t got = waitpid((pid_t)ask->pid, &status, WNOHANG);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return; /* the host ignores SIGCHLD or collected it: nothing more to know */
        if (got > 0) break;
        if (i == REAP_TRIES / 2) kill((pid_t)ask->pid, SIGKILL); /* closed its pipe and lives on */
        if (i == REAP_TRIES - 1) return;
        nanosleep(&pause, NULL);
    }
    if (ask->end != KHUB__ASK_EXITED) return;
    if (WIFSIGNALED(status)) ask->end = KHUB__ASK_SIGNALLED;
    ask->detail = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
}

static void finish(khub__ask *ask)
{
    close(ask->pipe);
    ask->pipe = -1;
    reap(ask);
}

/* Waits for the next words of any. 0: the time is over. */
static int wait_for_words(khub__ask *asks, size_t count, uint64_t deadline)
{
    struct pollfd fds[MAX_ASKS];
    size_t open = 0;
    for (size_t i = 0; i < count; i++) {
        fds[i] = (struct pollfd){asks[i].pipe, POLLIN, 0}; /* poll skips negative descriptors */
        open += asks[i].pipe >= 0;
    }
    uint64_t now = now_ms();
    if (!open || now >= deadline) return 0;
    if (poll(fds, count, (int)(deadline - now)) < 0) return errno == EINTR;
    for (size_t i = 0; i < count; i++)
        if (fds[i].revents && listen_to(&asks[i])) finish(&asks[i]);
    return 1;
}

void khub__ask_all(khub__ask *asks, size_t count, const char *program, uint32_t timeout_ms)
{
    if (count > MAX_ASKS) count = MAX_ASKS;
    if (timeout_ms > 600000) timeout_ms = 600000;
    for (size_t i = 0; i < count; i++)
        start(&asks[i], program, timeout_ms);
    uint64_t deadline = now_ms() + timeout_ms;
    while (wait_for_words(asks, count, deadline)) {}
    for (size_t i = 0; i < count; i++) {
        if (asks[i].pipe < 0) continue;
        asks[i].end = KHUB__ASK_TIMED_OUT;
        finish(&asks[i]);
    }
}
