#ifndef BASE_LOG_H
#define BASE_LOG_H

#include <khub/log.h>

/* Hands one record to the host's callback, if there is one. `format` makes the text (cut at 1,000 bytes). */
void khub__log(khub_log_level level, const char *stage, const char *object, const char *format, ...)
    KHUB_PRINTF(4, 5);

#endif
