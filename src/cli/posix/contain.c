/* A contained command runs in a child process. Kernels are strangers' code: one that crashes or calls exit()
 * while it is loaded or called ends the child, and the parent says what was at work. */
#include "cli.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

/* What the child leaves for the parent to read, in memory that both have. */
static volatile struct {
    int returned;      /* the command came back; what follows is the end of the process */
    int status;        /* what it returned */
    char stage[16];    /* "load" or "call"; empty: none of them is going on */
    char object[4000]; /* the library, the function */
} * page;

static volatile sig_atomic_t child;

void cli_at_work(const char *stage, const char *object)
{
    if (!page) return;
    page->stage[0] = 0; /* never a new stage with an old object */
    if (!object) return;
    snprintf((char *)(uintptr_t)page->object, sizeof(page->object), "%s", object);
    snprintf((char *)(uintptr_t)page->stage, sizeof(page->stage), "%s", stage);
}

/* The records of <khub/log.h> that tell what is at work. */
static void observe(const khub_log_record *record)
{
    if (record->level != KHUB_LOG_DEBUG) return;
    if (!strcmp(record->stage, "load") || !strcmp(record->stage, "call"))
        cli_at_work(record->stage, record->object);
    if (!strcmp(record->stage, "loaded") || !strcmp(record->stage, "called")) cli_at_work(NULL, NULL);
}

/* Ctrl-C reaches both processes by itself; a signal sent to the parent alone is handed on. */
static void hand_on(int number)
{
    if (child > 0) kill((pid_t)child, number);
}

static const int handed_on[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
enum { HANDED_ON = sizeof(handed_on) / sizeof(*handed_on) };

/* What the caller ignores (nohup, a shell's background job) stays ignored. */
static void handle(void (*handler)(int))
{
    struct sigaction action = {.sa_handler = handler}, before;
    for (size_t i = 0; i < HANDED_ON; i++)
        if (sigaction(handed_on[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN)
            sigaction(handed_on[i], &action, NULL);
}

/* Blocks them; *before is what was blocked before. */
static void hold_signals(sigset_t *before)
{
    sigset_t held;
    sigemptyset(&held);
    for (size_t i = 0; i < HANDED_ON; i++)
        sigaddset(&held, handed_on[i]);
    sigprocmask(SIG_BLOCK, &held, before);
}

static void add(char **at, const char *text)
{
    char *end = (char *)(uintptr_t)page->object + sizeof(page->object) - 1;
    while (*text && *at < end)
        *(*at)++ = *text++;
}

/* The slot of a model that this thread is in, if it is in one. In a signal handler, too. */
static void tell_slot(void)
{
    const char *kernel;
    const khub_slot *slot = khub_slot_running(&kernel);
    if (!slot || page->returned) return;
    char *at = (char *)(uintptr_t)page->object;
    page->stage[0] = 0;
    add(&at, khub_slot_path(slot));
    add(&at, " (");
    add(&at, kernel ? kernel : "the standard function");
    add(&at, ")");
    *at = 0;
    at = (char *)(uintptr_t)page->stage;
    memcpy(at, "call", sizeof("call"));
}

static const int crashes[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGABRT};
enum { CRASHES = sizeof(crashes) / sizeof(*crashes) };
static struct sigaction before_crash[CRASHES];

/* Then the process ends as it would have: what crashed does so again, a signal that was sent is sent again.
 */
static void on_crash(int number, siginfo_t *info, void *context)
{
    (void)context;
    tell_slot();
    for (size_t i = 0; i < CRASHES; i++)
        if (crashes[i] == number) sigaction(number, &before_crash[i], NULL);
    if (info->si_code <= 0) raise(number);
}

/* A model's slots aren't logged: they are called too often. */
static void tell_slots(void)
{
    struct sigaction action = {.sa_sigaction = on_crash, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    for (size_t i = 0; i < CRASHES; i++)
        sigaction(crashes[i], &action, &before_crash[i]);
    atexit(tell_slot);
}

/* In the child: the command, and the end of the process. */
static void run(const cli_command *command, int argc, char **argv, pid_t parent)
{
#ifdef __linux__
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* nobody is left to read the answer */
    if (getppid() != parent) _exit(EXIT_FAILED);
#endif
    (void)parent;
    cli_observe(observe);
    tell_slots();
    int status = cli_finish(command->run(argc, argv));
    cli_kernels_begin(); /* what they left for the end of the process */
    page->status = status;
    page->returned = 1;
    cli_leave(status);
    exit(status);
}

/* A child that was told to end: the parent's own end must look the same to the shell. */
static void end_alike(int number)
{
    for (size_t i = 0; i < HANDED_ON; i++)
        if (handed_on[i] == number) {
            handle(SIG_DFL);
            raise(number);
        }
}

static void say(const char *how)
{
    const char *stage = (const char *)(uintptr_t)page->stage, *object = (const char *)(uintptr_t)page->object;
    if (!strcmp(stage, "load"))
        cli_print(stderr, "khub: %s: loading it ended the process: %s\n", object, how);
    else if (!strcmp(stage, "call"))
        cli_print(stderr, "khub: %s: calling it ended the process: %s\n", object, how);
    else if (page->returned)
        fprintf(stderr, "khub: the result is complete, but the process then ended badly: %s\n", how);
    else
        fprintf(stderr, "khub: the process that did the work ended: %s\n", how);
}

/* "SIGSEGV"; a number for a signal that kernels don't end by. */
static const char *signal_name(int number, char buffer[24])
{
    static const struct {
        int number;
        const char *name;
    } known[] = {{SIGSEGV, "SIGSEGV"}, {SIGABRT, "SIGABRT"}, {SIGBUS, "SIGBUS"}, {SIGILL, "SIGILL"},
                 {SIGFPE, "SIGFPE"},   {SIGTRAP, "SIGTRAP"}, {SIGSYS, "SIGSYS"}, {SIGKILL, "SIGKILL"},
                 {SIGINT, "SIGINT"},   {SIGTERM, "SIGTERM"}};
    for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
        if (known[i].number == number) return known[i].name;
    snprintf(buffer, 24, "signal %d", number);
    return buffer;
}

/* The exit status for a child that ended with wait status `ended`. */
static int judge(int ended)
{
    char how[100];
    if (WIFEXITED(ended) && page->returned && WEXITSTATUS(ended) == page->status) return page->status;
    if (WIFSIGNALED(ended)) {
        char number[24];
        const char *words = strsignal(WTERMSIG(ended));
        snprintf(how, sizeof(how), "%s (%s)", signal_name(WTERMSIG(ended), number),
                 words ? words : "unknown");
        end_alike(WTERMSIG(ended));
    } else {
        snprintf(how, sizeof(how), "it called exit(%d)", WEXITSTATUS(ended));
    }
    say(how);
    return EXIT_FAILED;
}

int cli_contain(const cli_command *command, int argc, char **argv)
{
    page = mmap(NULL, sizeof(*page), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) {
        page = NULL;
        return command->run(argc, argv); /* as well as it goes */
    }
    fflush(NULL);
    pid_t parent = getpid();
    sigset_t before;
    hold_signals(&before); /* one that comes now waits until it can be handed on */
    pid_t pid = fork();
    child = pid;
    if (pid > 0) handle(hand_on);
    sigprocmask(SIG_SETMASK, &before, NULL);
    if (pid < 0) return command->run(argc, argv);
    if (pid == 0) run(command, argc, argv, parent);
    int ended = 0;
    while (waitpid(pid, &ended, 0) < 0 && errno == EINTR)
        continue;
    child = 0;
    _exit(judge(ended)); /* nothing was done here that an end would put in order */
}
