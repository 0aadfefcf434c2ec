#include "base/contained.h"

#include "base/error.h"
#include "base/signals.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

void *khub__shared_new(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

void khub__shared_free(void *memory, size_t bytes)
{
    if (memory) munmap(memory, bytes);
}

static int contained;

int khub__is_contained(void)
{
    return contained;
}

#ifdef __linux__
/* Where a kernel takes all memory there is, this process is the one to end. */
static void offer_to_the_oom_killer(void)
{
    int file = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (file < 0) return;
    ssize_t written = write(file, "1000", 4);
    (void)written; /* where it may not be said, it isn't */
    close(file);
}
#endif

/* *done, which the parent sees, becomes this process's number when the work has come to its end: an exit
 * status is anybody's, and a process that the work started is another. */
static _Noreturn void run(volatile pid_t *done, void (*work)(void *user), void *user, pid_t parent)
{
#ifdef __linux__
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* nobody is left to read the findings */
    if (getppid() != parent) _exit(1);
    offer_to_the_oom_killer();
#endif
    (void)parent;
    setpgid(0, 0);                      /* so that what a kernel starts can be ended with it */
    dup2(STDERR_FILENO, STDOUT_FILENO); /* stdout is the caller's, and a kernel may print */
    contained = 1;
    khub__signals_end_it();
    work(user);
    fflush(NULL);
    *done = getpid();
    _exit(0);
}

static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Whether the child has ended; it stays to be waited for. */
static int has_ended(pid_t child)
{
    siginfo_t info = {0};
    int rc = waitid(P_PID, (id_t)child, &info, WEXITED | WNOHANG | WNOWAIT);
    return rc == 0 ? info.si_pid == child : errno == ECHILD; /* somebody else has waited for it */
}

/* Waits until the child ends. 1; 0 when it hangs. Its end of the pipe is closed by its end, which wakes us at
 * once; but a kernel may close it before, or hand it on to a process that stays. */
static int wait_for_end(pid_t child, int pipe_end, const volatile uint64_t *beat, uint32_t limit_ms)
{
    struct pollfd closed = {.fd = pipe_end, .events = POLLIN};
    uint64_t last = *beat;
    int64_t since = now_ms();
    int step = limit_ms < 400 ? (int)limit_ms / 4 + 1 : 100;
    while (!has_ended(child)) {
        if (poll(&closed, 1, step) > 0) { /* nothing is ever written */
            closed.fd = -1;
            step = 1;
        }
        if (*beat != last || !(last & 1)) {
            last = *beat;
            since = now_ms();
        } else if (now_ms() - since >= limit_ms) {
            return 0;
        }
    }
    return 1;
}

static pid_t start(int pipe_ends[2], volatile pid_t *done, void (*work)(void *user), void *user)
{
    pid_t parent = getpid();
    if (pipe(pipe_ends) != 0) return -1;
    fflush(NULL); /* what is in a buffer would be written by both */
    pid_t child = fork();
    if (child == 0) {
        close(pipe_ends[0]);
        run(done, work, user, parent);
    }
    close(pipe_ends[1]);
    if (child < 0) close(pipe_ends[0]);
    return child;
}

/* The child is waited for here. KHUB_E_IO: there is none. */
static int contain(khub__end *end, volatile pid_t *done, void (*work)(void *user), void *user,
                   const volatile uint64_t *beat, uint32_t limit_ms, khub_error *err)
{
    int pipe_ends[2], status = 0;
    pid_t child = start(pipe_ends, done, work, user);
    if (child < 0) return khub__fail(err, KHUB_E_IO, "a child process can't be started: %s", strerror(errno));
    int alive = !wait_for_end(child, pipe_ends[0], beat, limit_ms);
    close(pipe_ends[0]);
    kill(-child, SIGKILL); /* what it started, too: until it is waited for, the group is its own */
    if (alive) kill(child, SIGKILL);
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        continue;
    *end = (khub__end){KHUB__RETURNED, 0};
    if (alive)
        end->how = KHUB__HUNG;
    else if (WIFSIGNALED(status))
        *end = (khub__end){KHUB__SIGNALED, WTERMSIG(status)};
    else if (*done != child || WEXITSTATUS(status) != 0)
        *end = (khub__end){KHUB__LEFT, WEXITSTATUS(status)};
    return KHUB_OK;
}

int khub__contain(khub__end *end, void (*work)(void *user), void *user, const volatile uint64_t *beat,
                  uint32_t limit_ms, khub_error *err)
{
    pid_t *done = khub__shared_new(sizeof(*done));
    if (!done) return khub__fail_memory(err, "starting a child process");
    void (*before)(int) = signal(SIGCHLD, SIG_DFL); /* where it is ignored, a child's status is lost */
    int rc = contain(end, done, work, user, beat, limit_ms, err);
    signal(SIGCHLD, before);
    khub__shared_free(done, sizeof(*done));
    return rc;
}

const char *khub__end_words(const khub__end *end, char words[100])
{
    int ended = end->how == KHUB__SIGNALED;
    const char *system = ended ? strsignal(end->number) : NULL,
               *name = ended ? khub__signal_name(end->number) : NULL;
    if (ended)
        snprintf(words, 100, "%s (%s)", name ? name : "a signal", system ? system : "unknown");
    else if (end->how == KHUB__LEFT)
        snprintf(words, 100, "it called exit(%d)", end->number);
    else
        snprintf(words, 100, "%s", end->how == KHUB__HUNG ? "it doesn't come back" : "it returned");
    return words;
}
