#include "serve/log.h"

#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { PATH_SHOWN = 1500, AGENT_SHOWN = 200 };

/* Copies at most `max` bytes; what is below `lowest`, or could end the line or its quotes, becomes "?". */
static size_t put(char *to, const char *text, size_t max, char lowest)
{
    size_t n = 0;
    for (; text && text[n] && n < max; n++)
        to[n] = text[n] < lowest || text[n] > '~' || text[n] == '"' ? '?' : text[n];
    to[n] = 0;
    return n;
}

static void put_address(char *to, size_t size, const struct sockaddr *client)
{
    socklen_t length =
        client && client->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
    if (!client || getnameinfo(client, length, to, (socklen_t)size, NULL, 0, NI_NUMERICHOST) != 0)
        snprintf(to, size, "-");
}

void serve_log(const serve_log_line *line)
{
    char when[32], client[64], path[PATH_SHOWN + 1], agent[AGENT_SHOWN + 1], text[2048];
    time_t now = time(NULL);
    struct tm parts;
    strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &parts));
    put_address(client, sizeof(client), line->client);
    put(path, line->path, PATH_SHOWN, '!');
    put(agent, line->agent, AGENT_SHOWN, ' ');
    int n = snprintf(text, sizeof(text), "%s %s %s %s %u %llu %.1fms \"%s\"%s\n", when, client, line->method,
                     path, line->status, (unsigned long long)line->bytes, line->ms, agent,
                     line->whole ? "" : " (went before the end)");
    ssize_t wrote = write(STDERR_FILENO, text, (size_t)n); /* one call: lines of threads don't mix */
    (void)wrote;
}
