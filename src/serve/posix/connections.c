#include "serve/connections.h"

#include "base/memory.h"

#include <pthread.h>
#include <stdint.h>
#include <stddef.h>
#include <sys/socket.h>
#include <time.h>

struct serve_connection {
    serve_connection *next, *previous;
    int fd, busy;
    int64_t waits_since_s;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of all of it */
static serve_connection *first;

static int64_t now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return now.tv_sec;
}

serve_connection *serve_connection_opened(int fd)
{
    serve_connection *made = khub__calloc(1, sizeof(*made));
    if (!made) return NULL;
    made->fd = fd;
    made->waits_since_s = now_s();
    pthread_mutex_lock(&lock);
    made->next = first;
    if (first) first->previous = made;
    first = made;
    pthread_mutex_unlock(&lock);
    return made;
}

void serve_connection_closed(serve_connection *connection)
{
    if (!connection) return;
    pthread_mutex_lock(&lock);
    if (connection->next) connection->next->previous = connection->previous;
    if (connection->previous)
        connection->previous->next = connection->next;
    else
        first = connection->next;
    pthread_mutex_unlock(&lock);
    khub__free(connection);
}

void serve_connection_busy(serve_connection *connection, int busy)
{
    if (!connection) return;
    pthread_mutex_lock(&lock);
    connection->busy = busy;
    connection->waits_since_s = now_s();
    pthread_mutex_unlock(&lock);
}

void serve_connections_sweep(unsigned seconds)
{
    int64_t now = now_s();
    pthread_mutex_lock(&lock);
    for (serve_connection *each = first; each; each = each->next)
        if (!each->busy && now - each->waits_since_s > seconds) shutdown(each->fd, SHUT_RDWR);
    pthread_mutex_unlock(&lock);
}
