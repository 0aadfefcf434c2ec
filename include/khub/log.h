/* What the library has to say while it works. It prints nothing itself. */
#ifndef KHUB_LOG_H
#define KHUB_LOG_H

#include <khub/export.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum khub_log_level {
    KHUB_LOG_WARNING, /* something to act on, the work goes on */
    KHUB_LOG_NOTICE,  /* worth knowing once */
    KHUB_LOG_DEBUG    /* each step */
} khub_log_level;

typedef struct khub_log_record {
    khub_log_level level;
    const char *stage;  /* "platform", "variant", "load", "call", "layer", ...: the part at work */
    const char *object; /* what it works on: a path, a function, a slot; never NULL */
    const char *text;   /* one line, without a newline */
} khub_log_record;

/* Called from whatever thread is at work; everything in *record is borrowed for the call. A "load" record
 * at KHUB_LOG_DEBUG comes before a library's constructors run and a "call" record before khub calls into a
 * kernel on its own account, each followed by a "loaded" or "called" record of the same thread, so that a
 * supervisor knows what was at work when a process ended. */
typedef void (*khub_log_fn)(void *user, const khub_log_record *record);

/* Sets the process's callback; NULL: silence (the default). Call it before other threads use khub. */
KHUB_API void khub_set_log(khub_log_fn callback, void *user);

#ifdef __cplusplus
}
#endif

#endif
