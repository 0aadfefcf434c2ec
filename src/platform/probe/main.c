/* khub-probe BACKEND LIBRARY SECONDS: see protocol.h. */
#include "platform/probe/probe.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#if defined(__linux__)
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#endif

static char output[PROBE_MAX_BYTES];
static size_t length;

static void flush(void)
{
    for (size_t done = 0; done < length;) {
        ssize_t n = write(PROBE_FD, output + done, length - done);
        if (n <= 0) break; /* nobody listens any more */
        done += (size_t)n;
    }
    length = 0;
}

static void put(const char *format, ...) KHUB_PRINTF(1, 2);
static void put(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vsnprintf(output + length, sizeof(output) - length, format, args);
    va_end(args);
    if (n > 0 && (size_t)n < sizeof(output) - length) length += (size_t)n;
}

/* A driver's words as a JSON string: what isn't printable ASCII becomes "?". An empty one is null. */
static void put_string(const char *key, const char *text, const char *after)
{
    put("\"%s\": ", key);
    if (!text[0]) {
        put("null%s", after);
        return;
    }
    put("\"");
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            put("\\%c", *text);
        else
            put("%c", *text >= ' ' && *text <= '~' ? *text : '?');
    }
    put("\"%s", after);
}

static void put_answer(const probe_answer *answer)
{
    put(PROBE_ANSWER "{");
    put_string("presence", answer->presence, ", ");
    put_string("version", answer->version, ", ");
    put_string("reason", answer->reason, ", ");
    put("\"no_device\": %s, \"devices\": [", answer->no_device ? "true" : "false");
    for (int i = 0; i < answer->device_count; i++) {
        put("%s{", i ? ", " : "");
        put_string("name", answer->devices[i].name, ", ");
        put_string("arch", answer->devices[i].arch, ", ");
        put("\"memory_bytes\": %llu}", (unsigned long long)answer->devices[i].memory_bytes);
    }
    put("]}\n");
    flush();
}

void probe_doing(const char *step)
{
    put(PROBE_DOING "%s\n", step);
    flush();
}

void probe_say(probe_answer *answer, const char *presence, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(answer->reason, sizeof(answer->reason), format, args);
    va_end(args);
    answer->presence = presence;
}

probe_device *probe_next(probe_answer *answer)
{
    return answer->device_count < PROBE_MAX_DEVICES ? &answer->devices[answer->device_count++] : NULL;
}

int probe_symbol(void *function, void *library, const char *name, probe_answer *answer)
{
    void *symbol = dlsym(library, name);
    memcpy(function, &symbol, sizeof(symbol)); /* POSIX: a data pointer can hold a function's */
    if (symbol) return 0;
    probe_say(answer, "broken", "has no function %s", name);
    return -1;
}

/* However a driver behaves, it ends with us, leaves no core file and holds on to nothing of the caller's. */
static void confine(unsigned seconds)
{
    struct rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none);
    fcntl(PROBE_FD, F_SETFD, FD_CLOEXEC);
#if defined(__linux__)
    prctl(PR_SET_PDEATHSIG, SIGKILL);
#if defined(SYS_close_range)
    syscall(SYS_close_range, PROBE_FD + 1, ~0u, 0);
#endif
#endif
    alarm(seconds);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*ask)(probe_answer *, void *);
    } backends[] = {{"cuda", probe_cuda}, {"rocm", probe_rocm}, {"xpu", probe_xpu}};
    static probe_answer answer = {.presence = "broken"};
    if (argc != 4 || fcntl(PROBE_FD, F_GETFD) < 0) {
        fputs("khub-probe is run by libkhub to ask accelerator drivers; it does nothing by hand\n", stderr);
        return 2;
    }
    confine((unsigned)strtoul(argv[3], NULL, 10));
    probe_doing("opening it");
    void *library = dlopen(argv[2], RTLD_NOW | RTLD_LOCAL);
    if (!library) probe_say(&answer, "broken", "the loader refuses it: %s", dlerror());
    for (size_t i = 0; library && i < sizeof(backends) / sizeof(*backends); i++)
        if (!strcmp(argv[1], backends[i].name)) backends[i].ask(&answer, library);
    put_answer(&answer);
    _exit(0); /* a driver's exit handlers may hang */
}
