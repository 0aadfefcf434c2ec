/* Files of this machine. One source per operating system. */
#ifndef BASE_FILE_H
#define BASE_FILE_H

#include <khub/error.h>

#include <stdio.h>

/* A file's content in memory. */
typedef struct khub__bytes {
    char *data; /* NUL-terminated beyond `length` when read, not when mapped */
    size_t length;
    int mapped;
} khub__bytes;

/* Reads a regular file of at most `max` bytes whole. KHUB_E_NOTFOUND, KHUB_E_IO, KHUB_E_FORMAT (longer, or
 * not a regular file), KHUB_E_NOMEM. */
int khub__file_read(khub__bytes *out, const char *path, size_t max, khub_error *err);

/* Maps a regular file read-only. An empty file has length 0. */
int khub__file_map(khub__bytes *out, const char *path, khub_error *err);

/* The same of `bytes` bytes of an open one, which stays open. `path` stands for it in messages. */
int khub__file_map_open(khub__bytes *out, int fd, size_t bytes, const char *path, khub_error *err);

/* Frees or unmaps, and zeroes. */
void khub__bytes_free(khub__bytes *bytes);

/* A regular file that is read from its start in pieces. */
typedef struct khub__stream {
    int fd;
    size_t size;      /* when it was opened */
    const char *path; /* the caller's */
} khub__stream;

/* Failures as khub__file_read's; then there is nothing to close. */
int khub__stream_open(khub__stream *out, const char *path, khub_error *err);
/* Exactly the next `bytes`. KHUB_E_IO, KHUB_E_FORMAT when the file ends before. */
int khub__stream_read(khub__stream *stream, void *data, size_t bytes, khub_error *err);
void khub__stream_close(khub__stream *stream);

enum khub__file_kind {
    KHUB__FILE_NONE,
    KHUB__FILE_REGULAR,
    KHUB__FILE_DIRECTORY,
    KHUB__FILE_OTHER, /* a device, a pipe, a socket */
    KHUB__FILE_BROKEN /* a link that leads nowhere, or what can't be looked at; opening it says which */
};

/* What is at `path`, links followed. A file that may be absent is absent only when it is KHUB__FILE_NONE: one
 * whose link is broken was meant to be there. */
enum khub__file_kind khub__file_kind(const char *path);

/* Where the link at `path` leads, as it says itself; "": it is none, or what it says is longer. */
void khub__file_link(char *out, size_t size, const char *path);

/* `path` from the root on and without links. The C library's memory (free); NULL: it isn't there. */
char *khub__file_real(const char *path);

/* 1 when this process may read `path` and write to it. */
int khub__file_may_use(const char *path);

/* The names in a directory, "." and ".." left out, sorted by bytes. *names is one allocation: an array of
 * pointers with the text behind it; freed with khub_free. */
int khub__dir_list(char ***names, size_t *count, const char *path, khub_error *err);

/* The same, of the directories alone (links to directories too). Asks only for entries whose kind the listing
 * itself doesn't tell. */
int khub__dir_list_dirs(char ***names, size_t *count, const char *path, khub_error *err);

/* Opens a temporary file beside `path`, to be written and then put in place or thrown away. Where the file
 * system can, it has no name until it is complete, so that nothing is left of it when the process is killed.
 * A device or pipe at `path` is written to as it is. */
typedef struct khub__draft khub__draft;
int khub__draft_open(khub__draft **out, const char *path, khub_error *err);
int khub__draft_write(khub__draft *draft, const void *data, size_t bytes, khub_error *err);
/* Nobody but this user (and root) may write to it, whatever the user's umask says. */
int khub__draft_for_us(khub__draft *draft, khub_error *err);
/* Nothing but putting it in place is left to do: the disk has it. */
int khub__draft_sync(khub__draft *draft, khub_error *err);
/* Puts it in place; the draft is gone either way, and after a failure nothing is left behind. */
int khub__draft_commit(khub__draft *draft, khub_error *err);
void khub__draft_discard(khub__draft *draft); /* NULL is a no-op */

/* The directory that khub is installed in (above lib/), found from where this code was loaded; KHUB_PREFIX
 * in the environment replaces it. Static once found; NULL: no memory. */
const char *khub__install_prefix(void);

/* The directory of libkhub: where this code was loaded from, or where khub's libraries are when it is inside
 * one of khub's programs; that of KHUB_PREFIX when that is set. Static once found; NULL: no memory. */
const char *khub__library_dir(void);

#endif
