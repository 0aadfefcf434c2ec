/* How a fake driver behaves: by the name of the directory that it was opened from. */
#ifndef BEHAVE_H
#define BEHAVE_H

#include <dlfcn.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* "two" for /some/where/two/libcuda.so.1. */
static const char *behaviour(void)
{
    static char name[256];
    Dl_info info;
    if (!dladdr((void *)(uintptr_t)behaviour, &info)) return "";
    snprintf(name, sizeof(name), "%s", info.dli_fname);
    char *slash = strrchr(name, '/');
    if (slash) *slash = 0;
    slash = strrchr(name, '/');
    return slash ? slash + 1 : name;
}

static int behaves(const char *name)
{
    return strcmp(behaviour(), name) == 0;
}

/* Leaves a process's id in the file that FAKE_DRIVER_LOG names: drivers belong in a helper process. */
static void trace(const char *what, long pid)
{
    const char *path = getenv("FAKE_DRIVER_LOG");
    FILE *log = path ? fopen(path, "a") : NULL;
    if (!log) return;
    fprintf(log, "%s %ld\n", what, pid);
    fclose(log);
}

static void leave_trace(const char *what)
{
    trace(what, (long)getpid());
}

/* A helper of the driver's own that outlives it and would hold its pipe open. */
static void leave_daemon(void)
{
    pid_t daemon = fork();
    if (daemon == 0) {
        sleep(60);
        _exit(0);
    }
    trace("daemon", (long)daemon);
}

/* The ways of a driver that does harm; called where it is initialised. */
static void misbehave(void)
{
    if (behaves("hang")) {
        signal(SIGALRM, SIG_IGN);
        for (;;)
            pause();
    }
    if (behaves("abort")) abort();
    if (behaves("crash")) raise(SIGSEGV);
    if (behaves("exit")) exit(7);
    if (behaves("quit")) _exit(0);
    if (behaves("print")) {
        printf("driver on stdout\n");
        fprintf(stderr, "driver on stderr\n");
        fflush(stdout);
    }
    if (behaves("daemon")) leave_daemon();
    if (behaves("babble"))
        for (int i = 0; i < 100000; i++)
            if (write(3, "nobody asked for this\n", 22) < 0) _exit(1);
    if (behaves("liar")) {
        static const char lie[] = "answer {\"presence\": \"found\", \"devices\": [7]}\n";
        if (write(3, lie, sizeof(lie) - 1) < 0) _exit(1);
        for (;;)
            pause();
    }
}

#endif
