/* What a command looks at and waits for: runs it and its children under ptrace, and writes a line for each
 * system call that has a path, opens a way to other machines, or sleeps.
 *
 *     hub_looks FILE COMMAND ARG...
 *
 * FILE gets "openat /etc/ld.so.cache", "socket" and the like. Ends as the command does. */
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* Calls by number, and which of their arguments is a path; -1: none. */
static const struct call {
    const char *name;
    unsigned long number;
    int path;
} calls[] = {
    {"openat", SYS_openat, 1},
    {"newfstatat", SYS_newfstatat, 1},
    {"statx", SYS_statx, 1},
    {"readlinkat", SYS_readlinkat, 1},
    {"faccessat", SYS_faccessat, 1},
    {"statfs", SYS_statfs, 0},
    {"socket", SYS_socket, -1},
    {"nanosleep", SYS_nanosleep, -1},
    {"clock_nanosleep", SYS_clock_nanosleep, -1},
#ifdef SYS_open
    {"open", SYS_open, 0},
    {"stat", SYS_stat, 0},
    {"lstat", SYS_lstat, 0},
    {"access", SYS_access, 0},
    {"readlink", SYS_readlink, 0},
#endif
};

static void fail(const char *what)
{
    perror(what);
    exit(125);
}

/* "" for what can't be read. */
static void read_text(char text[4096], pid_t pid, uint64_t address)
{
    size_t at = 0;
    for (; at + sizeof(long) < 4096 && !memchr(text, 0, at); at += sizeof(long)) {
        errno = 0;
        long word = ptrace(PTRACE_PEEKDATA, pid, (void *)(uintptr_t)(address + at), NULL);
        if (errno) break;
        memcpy(text + at, &word, sizeof(word));
    }
    text[at] = 0;
}

static void note(FILE *to, pid_t pid)
{
    struct __ptrace_syscall_info info;
    char text[4096];
    if (ptrace(PTRACE_GET_SYSCALL_INFO, pid, (void *)sizeof(info), &info) <= 0) fail("asking for a call");
    if (info.op != PTRACE_SYSCALL_INFO_ENTRY) return;
    for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++) {
        if (calls[i].number != info.entry.nr) continue;
        if (calls[i].path < 0) {
            fprintf(to, "%s\n", calls[i].name);
            continue;
        }
        read_text(text, pid, info.entry.args[calls[i].path]);
        if (*text) fprintf(to, "%s %s\n", calls[i].name, text); /* "": of an open file */
    }
}

/* The signal to hand on: none of those that only tell of the tracing. */
static int signal_of(int status)
{
    int number = WSTOPSIG(status);
    return number == SIGTRAP || number == SIGSTOP || number == (SIGTRAP | 0x80) ? 0 : number;
}

static int watch(FILE *to, pid_t command)
{
    int status, end = 0;
    for (pid_t pid; (pid = waitpid(-1, &status, __WALL)) > 0;) {
        if (pid == command && !WIFSTOPPED(status)) end = status;
        if (!WIFSTOPPED(status)) continue;
        if (WSTOPSIG(status) == (SIGTRAP | 0x80)) note(to, pid);
        ptrace(PTRACE_SYSCALL, pid, NULL, (void *)(intptr_t)signal_of(status));
    }
    return end;
}

int main(int argc, char **argv)
{
    const long options = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK |
                         PTRACE_O_TRACECLONE | PTRACE_O_EXITKILL;
    int status;
    FILE *to = argc > 2 ? fopen(argv[1], "we") : NULL;
    if (!to) fail("hub_looks FILE COMMAND ARG...");
    pid_t command = fork();
    if (command == 0) {
        ptrace(PTRACE_TRACEME, 0, NULL, NULL);
        raise(SIGSTOP);
        execvp(argv[2], argv + 2);
        fail(argv[2]);
    }
    if (command < 0 || waitpid(command, &status, 0) != command) fail("starting the command");
    if (ptrace(PTRACE_SETOPTIONS, command, NULL, (void *)options) != 0) fail("tracing");
    ptrace(PTRACE_SYSCALL, command, NULL, NULL);
    int end = watch(to, command);
    if (fclose(to) != 0) fail("writing");
    return WIFEXITED(end) ? WEXITSTATUS(end) : 125;
}
