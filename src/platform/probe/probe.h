/* khub-probe: opens one driver and says what it finds. Nothing here outlives the process. */
#ifndef PLATFORM_PROBE_PROBE_H
#define PLATFORM_PROBE_PROBE_H

#include "platform/probe/protocol.h"

#include <khub/export.h>

typedef struct probe_device {
    char name[256], arch[128], uuid[48]; /* empty: unknown */
    uint64_t memory_bytes;
    int integrated;
} probe_device;

/* What is found, filled in step by step. */
typedef struct probe_answer {
    const char *presence; /* "found", "absent", "broken" */
    char version[32], reason[512];
    int no_device; /* 1: the driver works and sees nothing */
    int device_count;
    probe_device devices[PROBE_MAX_DEVICES];
} probe_answer;

/* Says on the pipe what is about to happen, so that a crash or a hang has a name. */
void probe_doing(const char *step);

/* The presence and its reason. */
void probe_say(probe_answer *answer, const char *presence, const char *format, ...) KHUB_PRINTF(3, 4);

/* The next device to fill in; NULL when there are too many. */
probe_device *probe_next(probe_answer *answer);

/* The function `name` of an open library into *function (a pointer to a function pointer); 0, or -1 after
 * saying that it is missing. */
int probe_symbol(void *function, void *library, const char *name, probe_answer *answer);

/* The system's part (posix/system.c). */
int probe_is_heard(void);                             /* 1 when PROBE_FD is open */
void probe_send(const char *data, size_t bytes);      /* to PROBE_FD, whether anybody reads it or not */
void *probe_open(const char *path, const char **why); /* NULL: *why has the loader's words */
void *probe_find(void *library, const char *name);    /* a symbol; NULL: there is none */
/* However a driver behaves, it ends with us, after so many seconds at most, leaves no core file and holds on
 * to nothing of the caller's. */
void probe_confine(unsigned seconds);
_Noreturn void probe_leave(void); /* without exit handlers: a driver's may hang */

/* One per backend; `library` is open. */
void probe_cuda(probe_answer *answer, void *library);
void probe_rocm(probe_answer *answer, void *library);
void probe_metal(probe_answer *answer, void *library);
void probe_xpu(probe_answer *answer, void *library);
void probe_cann(probe_answer *answer, void *library);

#endif
