/* The bytes of one large file on their way from several requests to its sink: they come in any order within a
 * window that moves along the file, and go to the sink in order, in a thread of its own, so that hashing
 * happens while the network delivers. */
#ifndef HUB_WINDOW_H
#define HUB_WINDOW_H

#include "hub/client.h"

enum { KHUB__CHUNK_BYTES = 4 << 20, KHUB__WINDOW_CHUNKS = 4 };

typedef struct khub__window khub__window;

/* Starts the thread. The file's bytes from `from` on will come; chunks are counted from there. `wake` is
 * called from the thread when there is new room, or an end. KHUB_E_NOMEM. */
int khub__window_open(khub__window **out, const khub__fetch *file, uint64_t from, uint64_t size,
                      void (*wake)(void *user), void *user, khub_error *err);

/* How many bytes from `at` on there is room for now. */
size_t khub__window_room(khub__window *window, uint64_t at);

/* Copies bytes into their place; there must be room, and those of one chunk come in order. */
void khub__window_put(khub__window *window, uint64_t at, const void *data, size_t bytes);

typedef enum khub__window_state {
    KHUB__WINDOW_OPEN,
    KHUB__WINDOW_FINISHED, /* the sink's finish said so */
    KHUB__WINDOW_AGAIN,    /* it said KHUB__SINK_AGAIN */
    KHUB__WINDOW_FAILED    /* a call of the sink's failed */
} khub__window_state;

/* After a failure *status is its status, and *err (words of the sink's) is filled in. */
khub__window_state khub__window_look(khub__window *window, int *status, khub_error *err);

/* All that came is worth nothing: the sink starts anew, at byte 0. */
int khub__window_restart(khub__window *window, khub_error *err);

/* Stops the thread, after at most one piece. *ended: the sink's finish was called, and that was the
 * end, well or not. NULL is a no-op. */
void khub__window_close(khub__window *window, int *ended);

#endif
