#include "serve/server.h"

#include "base/error.h"
#include "base/file.h"
#include "serve/connections.h"
#include "serve/digest.h"
#include "serve/git.h"
#include "serve/handler.h"
#include "serve/known.h"
#include "serve/metrics.h"
#include "serve/names.h"
#include "serve/repository.h"
#include "serve/warm.h"
#include "serve/work.h"

#include <errno.h>
#include <netdb.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { SMALL_FILE_MAX = 1 << 20, SPARE_FILES = 128 };

/* ---- what it listens on ---- */

static int listen_on(const struct addrinfo *address, unsigned backlog)
{
    int fd = socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) return -1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int));
    if (bind(fd, address->ai_addr, address->ai_addrlen) == 0 && listen(fd, (int)backlog) == 0) return fd;
    int reason = errno;
    close(fd);
    errno = reason;
    return -1;
}

static int open_socket(int *out, const serve_options *options, khub_error *err)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE}, *found;
    int rc = getaddrinfo(options->host, options->port, &hints, &found);
    if (rc != 0)
        return khub__fail(err, KHUB_E_INVAL, "%s:%s: %s", options->host, options->port, gai_strerror(rc));
    *out = listen_on(found, 1024);
    int reason = errno;
    freeaddrinfo(found);
    if (*out < 0)
        return khub__fail(err, KHUB_E_IO, "%s:%s: can't listen there: %s", options->host, options->port,
                          strerror(reason));
    return KHUB_OK;
}

static void say_address(int fd, const serve_options *options)
{
    struct sockaddr_storage address;
    socklen_t length = sizeof(address);
    char host[64] = "?", port[16] = "?";
    if (getsockname(fd, (struct sockaddr *)&address, &length) == 0)
        getnameinfo((struct sockaddr *)&address, length, host, sizeof(host), port, sizeof(port),
                    NI_NUMERICHOST | NI_NUMERICSERV);
    const char *open = strchr(host, ':') ? "[" : "", *shut = *open ? "]" : "";
    printf("http%s://%s%s%s:%s\n", options->cert ? "s" : "", open, host, shut, port);
    fflush(stdout);
}

/* ---- its secrets ---- */

static int read_token(char token[4096], serve_options *options, khub_error *err)
{
    khub__bytes bytes;
    if (!options->token_file) return KHUB_OK;
    int rc = khub__file_read(&bytes, options->token_file, 4095, err);
    if (rc != KHUB_OK) return rc;
    size_t length = bytes.length;
    while (length && strchr(" \t\r\n", bytes.data[length - 1]))
        length--;
    memcpy(token, bytes.data, length);
    token[length] = 0;
    khub__bytes_free(&bytes);
    options->token = token;
    return KHUB_OK;
}

static int check_token(const serve_options *options, khub_error *err)
{
    if (!options->token) return KHUB_OK;
    for (const char *c = options->token; *c; c++)
        if (*c < 0x21 || *c > 0x7E)
            return khub__fail(err, KHUB_E_INVAL, "the token has characters that no header has");
    return *options->token ? KHUB_OK : khub__fail(err, KHUB_E_INVAL, "the token is empty");
}

/* ---- its course ---- */

/* Every connection, and the file that it sends, is a descriptor: there are no more of them than the system
 * allows, so that a file is never missing because there are too many. */
static void fit_limit(serve_options *options)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
    rlim_t want = 2 * (rlim_t)options->connections + SPARE_FILES;
    if (limit.rlim_cur < want) {
        limit.rlim_cur = limit.rlim_max < want ? limit.rlim_max : want;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
    if (limit.rlim_cur >= want) return;
    options->connections =
        limit.rlim_cur > 2 * SPARE_FILES ? (unsigned)(limit.rlim_cur - SPARE_FILES) / 2 : SPARE_FILES / 2;
    fprintf(stderr, "khub: serve: %u connections at once: the system allows %llu open files\n",
            options->connections, (unsigned long long)limit.rlim_cur);
}

static unsigned network_threads(void)
{
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    return processors < 2 ? 2 : processors > 16 ? 16 : (unsigned)processors;
}

/* The pair is wrong, or there are no threads: libmicrohttpd doesn't say which. */
static int fail_start(const serve_options *options, const khub__bytes *cert, const khub__bytes *key,
                      khub_error *err)
{
    if (!options->cert) return khub__fail(err, KHUB_E_IO, "can't start the server");
    if (!cert->data || !strstr((const char *)cert->data, "-----BEGIN CERTIFICATE"))
        return khub__fail(err, KHUB_E_IO, "%s: isn't a certificate in PEM", options->cert);
    if (!key->data || !strstr((const char *)key->data, "PRIVATE KEY-----"))
        return khub__fail(err, KHUB_E_IO, "%s: isn't a private key in PEM", options->key);
    return khub__fail(err, KHUB_E_IO, "can't start the server: does the key %s belong to the certificate %s?",
                      options->key, options->cert);
}

/* poll, not epoll: after exactly 128 events at once libmicrohttpd 0.9.75 asks epoll for more before it looks
 * at these, and sleeps until one of its connections is too old. */
static struct MHD_Daemon *start(int fd, serve_options *options, const khub__bytes *cert,
                                const khub__bytes *key)
{
    unsigned flags = MHD_USE_POLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ITC |
                     (options->cert ? MHD_USE_TLS : 0);
    struct MHD_OptionItem tls[] = {{MHD_OPTION_HTTPS_MEM_CERT, 0, cert->data},
                                   {MHD_OPTION_HTTPS_MEM_KEY, 0, key->data},
                                   {MHD_OPTION_END, 0, NULL}};
    return MHD_start_daemon(
        flags, 0, NULL, NULL, serve_on_request, options, MHD_OPTION_LISTEN_SOCKET, fd,
        MHD_OPTION_THREAD_POOL_SIZE, network_threads(), MHD_OPTION_CONNECTION_LIMIT, options->connections,
        MHD_OPTION_PER_IP_CONNECTION_LIMIT, options->per_address, MHD_OPTION_CONNECTION_TIMEOUT,
        options->timeout_s, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)SERVE_CONNECTION_MEMORY,
        MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_URI_LOG_CALLBACK, serve_on_uri, options,
        MHD_OPTION_NOTIFY_COMPLETED, serve_on_completed, options, MHD_OPTION_NOTIFY_CONNECTION,
        serve_on_connection, options, MHD_OPTION_ARRAY, options->cert ? tls : &tls[2], MHD_OPTION_END);
}

/* New connections are refused, downloads go on for a while; a second signal ends that. */
static void stop(struct MHD_Daemon *daemon, int fd, const serve_options *options, const sigset_t *signals)
{
    MHD_quiesce_daemon(daemon);
    shutdown(fd, SHUT_RDWR); /* a thread may be about to look at it once more: it is closed at the end */
    for (unsigned tenths = 0; serve_active() > 0 && tenths < options->grace_s * 10; tenths++)
        if (sigtimedwait(signals, NULL, &(struct timespec){.tv_nsec = 100000000}) > 0) break;
    serve_warm_stop();
    serve_names_cancel();
    serve_work_stop();
    MHD_stop_daemon(daemon);
    close(fd);
}

static void *warm(void *unused)
{
    serve_warm();
    return unused;
}

static int serve(int fd, serve_options *options, const khub__bytes *cert, const khub__bytes *key,
                 khub_error *err)
{
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &signals, NULL); /* for all threads: they are waited for here */
    int rc = serve_work_start();
    if (rc != 0) return khub__fail(err, KHUB_E_IO, "can't start a thread: %s", strerror(rc));
    struct MHD_Daemon *daemon = start(fd, options, cert, key);
    if (!daemon) {
        serve_work_stop();
        return fail_start(options, cert, key, err);
    }
    say_address(fd, options);
    pthread_t warming;
    int warms = pthread_create(&warming, NULL, warm, NULL) == 0;
    while (sigtimedwait(&signals, NULL, &(struct timespec){.tv_sec = 1}) < 0)
        serve_connections_sweep(options->timeout_s);
    stop(daemon, fd, options, &signals);
    if (warms) pthread_join(warming, NULL);
    return KHUB_OK;
}

/* libcrypto and libgit2 read their own configuration when they start: before the process can read nothing but
 * DIR. */
static int confine(khub_error *err)
{
    char hex[KHUB__HASH_HEX_MAX + 1];
    int rc = serve_digest(hex, KHUB__HASH_SHA256, "", 0, err);
    if (rc == KHUB_OK) rc = serve_git_start(err);
    if (rc == KHUB_OK) serve_root_confine();
    return rc;
}

int serve_run(serve_options *options, khub_error *err)
{
    char token[4096];
    khub__bytes cert = {0}, key = {0};
    int fd = -1, rc = read_token(token, options, err);
    if (rc == KHUB_OK) rc = check_token(options, err);
    if (rc == KHUB_OK && options->cert) rc = khub__file_read(&cert, options->cert, SMALL_FILE_MAX, err);
    if (rc == KHUB_OK && options->key) rc = khub__file_read(&key, options->key, SMALL_FILE_MAX, err);
    if (rc == KHUB_OK) rc = serve_root_open(options->dir, err);
    if (rc == KHUB_OK) rc = open_socket(&fd, options, err);
    if (rc == KHUB_OK) rc = confine(err);
    fit_limit(options);
    if (rc == KHUB_OK)
        rc = serve(fd, options, &cert, &key, err);
    else if (fd >= 0)
        close(fd);
    khub__bytes_free(&cert);
    khub__bytes_free(&key);
    serve_repositories_free();
    serve_known_free();
    serve_git_stop();
    return rc;
}
