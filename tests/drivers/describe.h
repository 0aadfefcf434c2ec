/* A fake driver is what the file `driver` beside it says, line by line:
 *
 *     CALL hang | abort | crash | exit N | quit | print | daemon | babble | liar | sleep MS | return N
 *     KEY VALUE               version 12080
 *     device FIELD|FIELD|...  once for each
 *
 * Without such a file it has the devices of its source (USUAL), and the name of the directory that it was
 * opened from says more (`named`), so that a test only has to copy it. */
#ifndef DESCRIBE_H
#define DESCRIBE_H

#include <dlfcn.h>
#include <limits.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* "/some/where/two" of "/some/where/two/libcuda.so.1", links followed. */
static const char *directory(void)
{
    static char path[PATH_MAX];
    Dl_info info;
    if (!dladdr((void *)(uintptr_t)directory, &info) || !realpath(info.dli_fname, path)) return "";
    char *slash = strrchr(path, '/');
    if (slash) *slash = 0;
    return path;
}

/* What the name of a directory stands for; `first` is the call that everything begins with. */
static const char *meaning(const char *name)
{
    static const struct {
        const char *name, *text;
    } named[] = {{"hang", "first hang\n"},
                 {"abort", "first abort\n"},
                 {"crash", "first crash\n"},
                 {"exit", "first exit 7\n"},
                 {"quit", "first quit\n"},
                 {"print", "first print\n"},
                 {"daemon", "first daemon\n"},
                 {"babble", "first babble\n"},
                 {"liar", "first liar\n"},
                 {"stub", "cuInit return 34\n"},
                 {"zero", "count 0\n"},
                 {"mismatch", "cuInit return 803\n"},
                 {"none", "count 0\nfirst return 100\n"},
                 {"uninitialized", "zeInit return 0x78000001\n"},
                 {"integrated", "device Fake Graphics|12.60.7|1\n"},
                 {"again", "aclInit return 100002\n"},
                 {"broken", "aclInit return 507008\n"},
                 {"unset", "aclsysGetCANNVersion return 100003\n"},
                 {"words", "version next\n"},
                 {"amd", "device AMD Radeon Pro|0|0\n"}};
    for (size_t i = 0; i < sizeof(named) / sizeof(*named); i++)
        if (!strcmp(named[i].name, name)) return named[i].text;
    return "";
}

/* The whole description; what stands earlier counts. */
static const char *description(void)
{
    static char text[1 << 16];
    static int known;
    if (known++) return text;
    char path[PATH_MAX + 8];
    snprintf(path, sizeof(path), "%s/driver", directory());
    FILE *file = fopen(path, "r");
    if (file) {
        text[fread(text, 1, sizeof(text) - 1, file)] = 0;
        fclose(file);
    } else {
        const char *slash = strrchr(directory(), '/'), *more = meaning(slash ? slash + 1 : "");
        snprintf(text, sizeof(text), "%s%s", more, strstr(more, "device ") ? "" : USUAL);
    }
    return text;
}

/* What follows "KEY " in the line number `index` of those that begin with it; NULL: there is none. Static
 * until the next call. */
static const char *line(const char *key, int index)
{
    static char found[1024];
    size_t length = strlen(key);
    for (const char *at = description(); *at; at += strcspn(at, "\n"), at += *at == '\n') {
        if (strncmp(at, key, length) != 0 || at[length] != ' ' || index-- > 0) continue;
        at += length + 1;
        snprintf(found, sizeof(found), "%.*s", (int)strcspn(at, "\n"), at);
        return found;
    }
    return NULL;
}

static int number(const char *key, int otherwise)
{
    const char *text = line(key, 0);
    return text ? (int)strtoll(text, NULL, 0) : otherwise;
}

static int devices(void)
{
    int count = 0;
    while (line("device", count))
        count++;
    return number("count", count);
}

/* Field `field` of a device; "": it has none. Static until the next call. */
static const char *device_field(int device, int field)
{
    static char text[1024];
    const char *at = line("device", device);
    while (at && field-- > 0)
        at = strchr(at, '|') ? strchr(at, '|') + 1 : NULL;
    snprintf(text, sizeof(text), "%.*s", at ? (int)strcspn(at, "|") : 0, at ? at : "");
    return text;
}

/* The name of a device into a caller's `size` bytes; one that is called "endless" fills them all. */
static void put_name(char *to, size_t size, int device)
{
    const char *name = device_field(device, 0);
    if (!strcmp(name, "endless"))
        memset(to, 'x', size);
    else
        snprintf(to, size, "%s", name);
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

static void babble(void)
{
    for (int i = 0; i < 100000; i++)
        if (write(3, "nobody asked for this\n", 22) < 0) _exit(1);
}

static void lie(void)
{
    static const char words[] = "answer {\"presence\": \"found\", \"devices\": [7]}\n";
    if (write(3, words, sizeof(words) - 1) < 0) _exit(1);
    for (;;)
        pause();
}

static void hang(void)
{
    signal(SIGALRM, SIG_IGN);
    for (;;)
        pause();
}

static void print(void)
{
    printf("driver on stdout\n");
    fprintf(stderr, "driver on stderr\n");
    fflush(stdout);
}

/* Does what is described for the call, and returns what it is to return: mostly 0. */
static int act(const char *call, int is_first)
{
    const char *what = line(call, 0);
    if (is_first) trace(call, (long)getpid());
    if (!what && is_first) what = line("first", 0);
    if (!what) return 0;
    if (!strncmp(what, "return ", 7)) return (int)strtoll(what + 7, NULL, 0);
    if (!strncmp(what, "exit ", 5)) exit(atoi(what + 5));
    if (!strncmp(what, "sleep ", 6)) usleep((useconds_t)atoi(what + 6) * 1000);
    if (!strcmp(what, "abort")) abort();
    if (!strcmp(what, "crash")) raise(SIGSEGV);
    if (!strcmp(what, "quit")) _exit(0);
    if (!strcmp(what, "hang")) hang();
    if (!strcmp(what, "print")) print();
    if (!strcmp(what, "daemon")) leave_daemon();
    if (!strcmp(what, "babble")) babble();
    if (!strcmp(what, "liar")) lie();
    return 0;
}

#endif
