/* The open connections, so that one that never gets its request said can be ended: libmicrohttpd's own limit
 * is on silence, which a byte every now and then breaks. */
#ifndef SERVE_CONNECTIONS_H
#define SERVE_CONNECTIONS_H

typedef struct serve_connection serve_connection;

/* NULL: no memory; then the connection has no such limit. Any thread. */
serve_connection *serve_connection_opened(int fd);
void serve_connection_closed(serve_connection *connection); /* before fd is closed; NULL is a no-op */

/* A request is there and being answered, or it is answered. NULL is a no-op. */
void serve_connection_busy(serve_connection *connection, int busy);

/* Ends those that have waited for a whole request longer than `seconds`. */
void serve_connections_sweep(unsigned seconds);

#endif
