/* What the commands ask the system themselves. */
#include "cli.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* A file that is opened must not take the number of a standard stream that is closed. /dev/null the wrong way
 * round lets each use of the stream fail as before. */
static void keep_streams(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0) (void)!open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

/* A closed stdout and a file past the limit are errors to report, not deaths; a caller that ignores SIGCHLD
 * must not take the end of a child away from us. */
static void set_signals(void)
{
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
    signal(SIGCHLD, SIG_DFL);
}

void cli_prepare(void)
{
    keep_streams();
    set_signals();
}

/* libgomp's threads otherwise look for work for milliseconds, on processors that ours work on then. */
void cli_share_processors(void)
{
    if (!getenv("GOMP_SPINCOUNT")) setenv("OMP_WAIT_POLICY", "passive", 0);
}

void cli_leave(int status)
{
    if (!KHUB_SANITIZED) _exit(status);
}

/* Where stdout leads while kernels run, and what it was before. */
static struct {
    int depth, stdout_was;
} kernels = {0, -1};

void cli_kernels_begin(void)
{
    if (kernels.depth++) return;
    cli_flush();
    kernels.stdout_was = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    if (kernels.stdout_was >= 0) dup2(STDERR_FILENO, STDOUT_FILENO);
}

void cli_kernels_end(void)
{
    if (--kernels.depth || kernels.stdout_was < 0) return;
    int failed = ferror(stdout);
    fflush(stdout);
    if (!failed) clearerr(stdout); /* that was theirs */
    dup2(kernels.stdout_was, STDOUT_FILENO);
    close(kernels.stdout_was);
    kernels.stdout_was = -1;
}

int64_t cli_now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static int (*on_interrupt)(void);
static struct sigaction before_interrupt;
static volatile sig_atomic_t presses;

/* Ctrl-C at a terminal reaches a contained command twice: from the terminal, and handed on by the parent, who
 * can't know. */
static void interrupt(int number, siginfo_t *info, void *context)
{
    (void)context;
    int handed_on = info->si_code == SI_USER && info->si_pid == getppid();
    if (on_interrupt() && (handed_on || ++presses == 1)) return;
    signal(number, SIG_DFL);
    raise(number);
}

void cli_on_interrupt(int (*handler)(void))
{
    struct sigaction action = {.sa_sigaction = interrupt, .sa_flags = SA_SIGINFO | SA_RESTART};
    if (!handler) {
        sigaction(SIGINT, &before_interrupt, NULL);
        return;
    }
    on_interrupt = handler;
    sigaction(SIGINT, &action, &before_interrupt);
    if (!(before_interrupt.sa_flags & SA_SIGINFO) && before_interrupt.sa_handler == SIG_IGN)
        sigaction(SIGINT, &before_interrupt, NULL); /* the caller's wish (nohup, a shell's background job) */
}

int cli_reader_left(void)
{
    struct pollfd out = {.fd = STDOUT_FILENO, .events = POLLOUT};
    return poll(&out, 1, 0) == 1 && (out.revents & POLLERR) != 0;
}

int cli_is_terminal(FILE *file)
{
    return isatty(fileno(file));
}

const char *cli_not_a_directory(const char *path)
{
    struct stat st;
    if (stat(path, &st) != 0) return strerror(errno);
    return S_ISDIR(st.st_mode) ? NULL : "is no directory";
}

char *cli_absolute(const char *path)
{
    char here[4096];
    if (*path == '/') return strdup(path);
    if (!getcwd(here, sizeof(here))) return NULL;
    size_t size = strlen(here) + strlen(path) + 2;
    char *whole = malloc(size);
    if (whole) snprintf(whole, size, "%s/%s", here, path);
    return whole;
}

void cli_one_at_a_time(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *dir = slash ? strndup(path, slash == path ? 1 : (size_t)(slash - path)) : strdup(".");
    int fd = dir ? open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1; /* closed, and let go, by the end */
    if (fd >= 0) flock(fd, LOCK_EX);
    free(dir);
}
