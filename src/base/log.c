#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>

static khub_log_fn log_callback;
static void *log_user;

void khub_set_log(khub_log_fn callback, void *user)
{
    log_callback = callback;
    log_user = user;
}

void khub__log(khub_log_level level, const char *stage, const char *object, const char *format, ...)
{
    if (!log_callback) return;
    char text[1001];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    khub_log_record record = {level, stage, object ? object : "", text};
    log_callback(log_user, &record);
}
