/* khub-probe BACKEND LIBRARY SECONDS: see protocol.h. */
#include "platform/probe/probe.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static char output[PROBE_MAX_BYTES];
static size_t length;

static void flush(void)
{
    probe_send(output, length);
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
        put_string("uuid", answer->devices[i].uuid, ", ");
        put("\"integrated\": %s, \"memory_bytes\": %llu}", answer->devices[i].integrated ? "true" : "false",
            (unsigned long long)answer->devices[i].memory_bytes);
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
    void *symbol = probe_find(library, name);
    memcpy(function, &symbol, sizeof(symbol)); /* POSIX: a data pointer can hold a function's */
    if (symbol) return 0;
    probe_say(answer, "broken", "has no function %s", name);
    return -1;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*ask)(probe_answer *, void *);
    } backends[] = {{"cuda", probe_cuda},
                    {"rocm", probe_rocm},
                    {"metal", probe_metal},
                    {"xpu", probe_xpu},
                    {"cann", probe_cann}};
    static probe_answer answer = {.presence = "broken"};
    if (argc != 4 || !probe_is_heard()) {
        fputs("khub-probe is run by libkhub to ask accelerator drivers; it does nothing by hand\n", stderr);
        return 2;
    }
    const char *why = NULL;
    probe_confine((unsigned)strtoul(argv[3], NULL, 10));
    probe_doing("opening it");
    void *library = probe_open(argv[2], &why);
    if (!library) probe_say(&answer, "broken", "the loader refuses it: %s", why);
    for (size_t i = 0; library && i < sizeof(backends) / sizeof(*backends); i++)
        if (!strcmp(argv[1], backends[i].name)) backends[i].ask(&answer, library);
    put_answer(&answer);
    probe_leave();
}
