/* Status codes, and the words that go with them. */
#ifndef KHUB_ERROR_H
#define KHUB_ERROR_H

#include <khub/export.h>

#ifdef __cplusplus
extern "C" {
#endif

/* 0 or one of these; numbers are never reused. The comment says what a caller can do about it. */
typedef enum khub_status {
    KHUB_OK = 0,
    KHUB_E_INVAL = -1,        /* the call was wrong: an argument, an option, a misuse */
    KHUB_E_NOMEM = -2,        /* out of memory; everything is as before the call */
    KHUB_E_IO = -3,           /* the system refused to read or write a file */
    KHUB_E_NOTFOUND = -4,     /* what was named isn't there: a file, repository, function, tensor */
    KHUB_E_FORMAT = -5,       /* a file's content isn't what its format asks for */
    KHUB_E_NOBUILD = -6,      /* no build of the kernel fits this machine */
    KHUB_E_NEEDS_PYTHON = -7, /* the builds that fit are Python only */
    KHUB_E_LOAD = -8,         /* the loader refused a library */
    KHUB_E_KERNEL = -9,       /* a function reported an error */
    KHUB_E_UNTRUSTED = -10,   /* not trusted, or not what it claims to be */
    KHUB_E_OFFLINE = -11,     /* not in the cache, and the network is off */
    KHUB_E_NETWORK = -12,     /* the network failed */
    KHUB_E_NOSPACE = -13,     /* the disk is full */
    KHUB_E_UNSUPPORTED = -14, /* well-formed, but beyond what this version can do */
    KHUB_E_CANCELED = -15,    /* the caller said so; nothing is lost */
    KHUB_E_DENIED = -16       /* the Hub refuses: private, gated, disabled, or a rejected token */
} khub_status;

/* Caller-owned, zeroed before the first use; the last argument of every function that can fail, and may
 * be NULL. The first message wins: a function called with a message in place leaves it. */
typedef struct khub_error {
    int code;           /* a khub_status; 0: nothing happened yet */
    char message[1020]; /* UTF-8, ends with NUL; longer text is cut with "..." */
} khub_error;

/* "KHUB_E_NOMEM"; "KHUB_E_?" for a number that isn't in the list. Static, any thread. */
KHUB_API const char *khub_status_name(int status);

/* Empties *err for another use. NULL is a no-op. */
KHUB_API void khub_error_clear(khub_error *err);

#ifdef __cplusplus
}
#endif

#endif
