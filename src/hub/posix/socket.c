#include "hub/flight.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>

/* libcurl's own sockets stay open in the children of a program that starts some. */
curl_socket_t khub__flight_socket(void *user, curlsocktype purpose, struct curl_sockaddr *to)
{
    khub__flight *flight = user;
    (void)purpose;
#ifdef SOCK_CLOEXEC
    int fd = socket(to->family, to->socktype | SOCK_CLOEXEC, to->protocol);
#else
    int fd = socket(to->family, to->socktype, to->protocol);
    if (fd >= 0) fcntl(fd, F_SETFD, FD_CLOEXEC);
#endif
    if (fd >= 0) return fd;
    flight->no_more_files = errno == EMFILE || errno == ENFILE;
    return CURL_SOCKET_BAD;
}
