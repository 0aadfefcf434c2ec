#include "hub/window.h"

#include "base/error.h"
#include "base/memory.h"

#include <pthread.h>

enum { PIECE_BYTES = 256 << 10 }; /* that the sink gets at once: what a cancel waits for */

struct khub__window {
    const khub__fetch *file;
    uint64_t from, size;
    void (*wake)(void *user);
    void *user;
    char *buffer; /* KHUB__WINDOW_CHUNKS places for chunks; chunk i is in place i % KHUB__WINDOW_CHUNKS */
    pthread_t thread;
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t change;
    uint64_t done;                      /* bytes of the file that the sink has */
    size_t filled[KHUB__WINDOW_CHUNKS]; /* bytes from the start of each place that are there */
    int stop, is_writing;
    khub__window_state state;
    int status;
    khub_error why;
};

static size_t place_of(const khub__window *w, uint64_t at)
{
    return (size_t)((at - w->from) / KHUB__CHUNK_BYTES % KHUB__WINDOW_CHUNKS);
}

static size_t offset_of(const khub__window *w, uint64_t at)
{
    return (size_t)((at - w->from) % KHUB__CHUNK_BYTES);
}

/* The bytes that can go to the sink now: a piece, or what is left of the chunk or of the file; less than that
 * is waited for. Called with the lock. */
static size_t ready(const khub__window *w, const char **data)
{
    size_t place = place_of(w, w->done), offset = offset_of(w, w->done), want = KHUB__CHUNK_BYTES - offset;
    if (w->size - w->done < want) want = (size_t)(w->size - w->done);
    if (want > PIECE_BYTES) want = PIECE_BYTES;
    *data = w->buffer + place * KHUB__CHUNK_BYTES + offset;
    return w->filled[place] >= offset + want ? want : 0;
}

/* Calls the sink without the lock. */
static void write_piece(khub__window *w, const char *data, size_t bytes)
{
    khub_error why = {0};
    w->is_writing = 1;
    pthread_mutex_unlock(&w->lock);
    int rc = bytes ? w->file->sink->write(w->file->self, data, bytes, &why)
                   : w->file->sink->finish(w->file->self, &why);
    pthread_mutex_lock(&w->lock);
    w->is_writing = 0;
    if (bytes == 0 && rc == KHUB__SINK_AGAIN) {
        w->state = KHUB__WINDOW_AGAIN;
    } else if (rc != KHUB_OK) {
        w->state = KHUB__WINDOW_FAILED;
        w->status = rc;
        w->why = why;
    } else if (bytes == 0) {
        w->state = KHUB__WINDOW_FINISHED;
    }
}

/* Moves on behind what was written. 1: a place has become free. */
static int advance(khub__window *w, size_t bytes)
{
    size_t place = place_of(w, w->done);
    w->done += bytes;
    if (offset_of(w, w->done) != 0) return 0;
    w->filled[place] = 0;
    return 1;
}

static void *work(void *user)
{
    khub__window *w = user;
    pthread_mutex_lock(&w->lock);
    while (!w->stop && w->state == KHUB__WINDOW_OPEN) {
        const char *data = NULL;
        size_t bytes = ready(w, &data);
        if (bytes == 0 && w->done < w->size) {
            pthread_cond_wait(&w->change, &w->lock);
            continue;
        }
        int at_end = bytes == 0;
        write_piece(w, data, bytes);
        int news = w->state != KHUB__WINDOW_OPEN || (!at_end && advance(w, bytes));
        pthread_cond_broadcast(&w->change);
        if (!news) continue;
        pthread_mutex_unlock(&w->lock);
        w->wake(w->user);
        pthread_mutex_lock(&w->lock);
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

int khub__window_open(khub__window **out, const khub__fetch *file, uint64_t from, uint64_t size,
                      void (*wake)(void *user), void *user, khub_error *err)
{
    *out = NULL;
    khub__window *w = khub__calloc(1, sizeof(*w));
    if (w) w->buffer = khub__malloc((size_t)KHUB__CHUNK_BYTES * KHUB__WINDOW_CHUNKS);
    if (!w || !w->buffer) {
        khub__free(w);
        return khub__fail_memory(err, "fetching a file");
    }
    w->file = file;
    w->from = w->done = from;
    w->size = size;
    w->wake = wake;
    w->user = user;
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->change, NULL);
    if (pthread_create(&w->thread, NULL, work, w) == 0) {
        *out = w;
        return KHUB_OK;
    }
    pthread_cond_destroy(&w->change);
    pthread_mutex_destroy(&w->lock);
    khub__free(w->buffer);
    khub__free(w);
    return khub__fail(err, KHUB_E_NOMEM, "fetching a file: no thread can be started");
}

size_t khub__window_room(khub__window *w, uint64_t at)
{
    pthread_mutex_lock(&w->lock);
    /* a place is free again only when its whole chunk is with the sink */
    uint64_t end = w->done - offset_of(w, w->done) + (uint64_t)KHUB__CHUNK_BYTES * KHUB__WINDOW_CHUNKS;
    pthread_mutex_unlock(&w->lock);
    return at < end ? (size_t)(end - at) : 0;
}

void khub__window_put(khub__window *w, uint64_t at, const void *data, size_t bytes)
{
    while (bytes > 0) {
        size_t place = place_of(w, at), offset = offset_of(w, at), n = KHUB__CHUNK_BYTES - offset;
        if (n > bytes) n = bytes;
        memcpy(w->buffer + place * KHUB__CHUNK_BYTES + offset, data, n); /* nobody reads there yet */
        pthread_mutex_lock(&w->lock);
        w->filled[place] = offset + n;
        const char *unused;
        if (place == place_of(w, w->done) && ready(w, &unused)) pthread_cond_signal(&w->change);
        pthread_mutex_unlock(&w->lock);
        at += n;
        data = (const char *)data + n;
        bytes -= n;
    }
}

khub__window_state khub__window_look(khub__window *w, int *status, khub_error *err)
{
    pthread_mutex_lock(&w->lock);
    khub__window_state state = w->state;
    *status = w->status;
    if (state == KHUB__WINDOW_FAILED) khub__fail(err, w->status, "%s", w->why.message);
    pthread_mutex_unlock(&w->lock);
    return state;
}

int khub__window_restart(khub__window *w, khub_error *err)
{
    pthread_mutex_lock(&w->lock);
    memset(w->filled, 0, sizeof(w->filled)); /* the thread finds nothing more to do */
    while (w->is_writing)
        pthread_cond_wait(&w->change, &w->lock);
    memset(w->filled, 0, sizeof(w->filled));
    w->from = w->done = 0;
    int rc = w->state == KHUB__WINDOW_OPEN ? w->file->sink->restart(w->file->self, err) : KHUB_OK;
    pthread_mutex_unlock(&w->lock);
    return rc;
}

void khub__window_close(khub__window *w, int *ended)
{
    if (!w) return;
    pthread_mutex_lock(&w->lock);
    w->stop = 1;
    pthread_cond_broadcast(&w->change);
    pthread_mutex_unlock(&w->lock);
    pthread_join(w->thread, NULL);
    *ended = w->done == w->size && w->state != KHUB__WINDOW_OPEN && w->state != KHUB__WINDOW_AGAIN;
    pthread_cond_destroy(&w->change);
    pthread_mutex_destroy(&w->lock);
    khub__free(w->buffer);
    khub__free(w);
}
