/* An open file that stays what it is while it is hashed and loaded. One source per operating system. */
#ifndef TRUST_HELD_H
#define TRUST_HELD_H

#include "base/file.h"

/* What tells that a file is the one that was looked at, and that nobody wrote to it since: writing changes
 * the time of change, which no program can set back as it can the time of modification. */
typedef struct khub__identity {
    uint64_t device, inode, size;
    int64_t changed_ns; /* since 1970 */
} khub__identity;

int khub__same_identity(const khub__identity *a, const khub__identity *b);

typedef struct khub__held {
    int fd;              /* -1: none. Closed in programs that this one starts */
    khub__identity file; /* of the file at the path, also when `fd` is of a copy */
    uint64_t size;       /* of what `fd` reads */
    int leased; /* 1: nobody can write to it; who tries waits, or ends the lease (khub__held_still) */
    int copied; /* 1: a copy in memory that nobody can change any more */
    int others; /* 1: another user than this one and root may write to it */
} khub__held;

/* Opens a regular file, links followed. Whether a lease is to be had depends: not while somebody writes, nor
 * on another's file, nor on every file system. KHUB_E_NOTFOUND, KHUB_E_FORMAT (no regular file), KHUB_E_IO;
 * then there is nothing to drop. */
int khub__hold(khub__held *out, const char *path, khub_error *err);
/* Opens one to be read at once, without a lease; a link at the end of the path isn't followed
 * (KHUB_E_FORMAT).
 */
int khub__hold_loosely(khub__held *out, const char *path, khub_error *err);

/* Puts a copy in memory in its place, of what the file is just now; hash it after that. KHUB_E_NOSPACE,
 * KHUB_E_IO; then it is as it was. */
int khub__held_copy(khub__held *held, const char *path, khub_error *err);

/* Reads up to `bytes` at `offset`; 0: the end, -1 with errno. */
int64_t khub__held_read(const khub__held *held, void *data, size_t bytes, uint64_t offset);

/* To read it from its start; not to be closed. One at a time. */
khub__stream khub__held_stream(const khub__held *held, const char *path);

/* Reads all of it, at most `most` bytes, and a NUL behind them. *out is the caller's (khub__bytes_free),
 * after a failure too: KHUB_E_FORMAT (longer, or it ends before its size), KHUB_E_IO, KHUB_E_NOMEM. */
int khub__held_bytes(khub__bytes *out, const khub__held *held, const char *path, size_t most,
                     khub_error *err);

/* 1: it can't have changed since it was opened or copied. */
int khub__held_still(const khub__held *held);

/* 1: whatever is written to the file from now on shows in its identity, and nothing was since it was opened:
 * it was under a lease throughout, so that nobody has it open or mapped for writing, and whoever isn't its
 * owner must be let in first, which changes it. Not so for a file that was written to a moment ago: times are
 * no finer than the clock's ticks. */
int khub__held_settled(const khub__held *held);

void khub__held_drop(khub__held *held); /* closes; one that is zeroed or dropped is a no-op */

/* What is at `path`, links followed, without opening it: a regular file, or a directory. *others (may be
 * NULL) as above. 0, or -1: it isn't there, or isn't that. */
int khub__identify(khub__identity *out, int *others, const char *path, int is_directory);

/* 1: whatever is written to it from now on shows in this identity, which was taken after `since_ns`: it was
 * changed last so long before that no clock is that coarse or that wrong. */
int khub__identity_settled(const khub__identity *identity, int64_t since_ns);

int64_t khub__file_clock_ns(void); /* now, by the clock that files get their times from */

#endif
