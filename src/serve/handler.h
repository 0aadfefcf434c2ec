/* From a request to its answer. */
#ifndef SERVE_HANDLER_H
#define SERVE_HANDLER_H

#include "serve/answer.h"
#include "serve/options.h"

/* Bytes of memory that a connection has: what a request's line and headers may take is less. */
enum { SERVE_CONNECTION_MEMORY = 32768 };

/* Callbacks for MHD_start_daemon; `cls` of each is the options, whose token is in place by then. */
void *serve_on_uri(void *cls, const char *uri, struct MHD_Connection *connection);
enum MHD_Result serve_on_request(void *cls, struct MHD_Connection *connection, const char *url,
                                 const char *method, const char *version, const char *data, size_t *size,
                                 void **request);
void serve_on_completed(void *cls, struct MHD_Connection *connection, void **request,
                        enum MHD_RequestTerminationCode why);
void serve_on_connection(void *cls, struct MHD_Connection *connection, void **socket,
                         enum MHD_ConnectionNotificationCode what);

#endif
