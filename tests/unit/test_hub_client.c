/* The client as a whole when memory fails, against a server of this process. */
#include "failing_memory.h"
#include "unit.h"

#include "base/memory.h"
#include "hub/client.h"
#include "hub/retry.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/socket.h>

#define COMMIT "0123456789abcdef0123456789abcdef01234567"
#define BLOB   "ce013625030ba8dba906f756967f9e9ca394464a" /* printf 'hello\n' | git hash-object --stdin */

/* What is answered to an address that holds `part`; none of khub's memory is used here. */
static const struct {
    const char *part, *head, *body;
} answers[] = {
    {"/refs", "", "{\"branches\":[{\"name\":\"v1\",\"targetCommit\":\"" COMMIT "\"}]}"},
    {"/revision/", "", "{\"sha\":\"" COMMIT "\"}"},
    {"/tree/", "Link: <https://hub.example/page2?cursor=2>; rel=\"next\"\r\n",
     "[{\"type\":\"file\",\"path\":\"b\",\"size\":6,\"oid\":\"" BLOB "\"}]"},
    {"/page2", "", "[{\"type\":\"file\",\"path\":\"a\",\"size\":6,\"oid\":\"" BLOB "\"}]"},
    {"/overview", "", "{\"trustedKernelPublisher\":true}"},
    {"/resolve/", "Location: /there\r\nETag: \"" BLOB "\"\r\n", ""},
    {"/there", "", "hello\n"},
};

static void answer(int fd, const char *request)
{
    char text[1000];
    for (size_t i = 0; i < sizeof(answers) / sizeof(*answers); i++) {
        if (!memmem(request, strcspn(request, "\r"), answers[i].part, strlen(answers[i].part))) continue;
        int n = snprintf(text, sizeof(text), "HTTP/1.1 %s\r\nContent-Length: %zu\r\n%s\r\n%s",
                         strncmp(answers[i].head, "Loc", 3) ? "200 OK" : "302 Found", strlen(answers[i].body),
                         answers[i].head, answers[i].body);
        if (write(fd, text, (size_t)n) != n) return;
        return;
    }
}

static void *talk(void *user)
{
    int fd = (int)(intptr_t)user;
    char request[8192];
    for (;;) {
        size_t length = 0;
        while (!memmem(request, length, "\r\n\r\n", 4)) {
            ssize_t n =
                length < sizeof(request) - 1 ? read(fd, request + length, sizeof(request) - 1 - length) : 0;
            if (n <= 0) {
                close(fd);
                return NULL;
            }
            length += (size_t)n;
        }
        request[length] = 0;
        answer(fd, request);
    }
}

static void *listen_for(void *user)
{
    int listener = (int)(intptr_t)user, fd;
    pthread_t thread;
    while ((fd = accept(listener, NULL, NULL)) >= 0)
        if (pthread_create(&thread, NULL, talk, (void *)(intptr_t)fd) == 0) pthread_detach(thread);
    return NULL;
}

/* Starts the server and points the environment at it. */
static void serve(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof(address);
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    pthread_t thread;
    char url[64];
    ck_assert_int_eq(bind(listener, (struct sockaddr *)&address, length), 0);
    ck_assert_int_eq(listen(listener, 16), 0);
    getsockname(listener, (struct sockaddr *)&address, &length);
    snprintf(url, sizeof(url), "http://127.0.0.1:%d", ntohs(address.sin_port));
    setenv("HF_ENDPOINT", url, 1);
    setenv("HF_TOKEN", "hf_secret", 1);
    setenv("HOME", "/nonexistent", 1);
    ck_assert_int_eq(pthread_create(&thread, NULL, listen_for, (void *)(intptr_t)listener), 0);
}

typedef struct sink {
    char bytes[16];
    size_t length;
    int finished, open;
} sink;

static int begin(void *self, const char *etag, uint64_t size, uint64_t *have, khub_error *err)
{
    sink *s = self;
    (void)err;
    ck_assert_str_eq(etag, BLOB);
    ck_assert_uint_eq(size, 6);
    *have = 0;
    s->length = 0;
    s->open = 1;
    return KHUB_OK;
}

static int take_bytes(void *self, const void *data, size_t bytes, khub_error *err)
{
    sink *s = self;
    (void)err;
    ck_assert_uint_le(bytes, sizeof(s->bytes) - s->length);
    memcpy(s->bytes + s->length, data, bytes);
    s->length += bytes;
    return KHUB_OK;
}

static int restart(void *self, khub_error *err)
{
    (void)err;
    ((sink *)self)->length = 0;
    return KHUB_OK;
}

static int finish(void *self, khub_error *err)
{
    sink *s = self;
    (void)err;
    ck_assert(s->open && s->length == 6 && !memcmp(s->bytes, "hello\n", 6));
    s->open = 0;
    s->finished = 1;
    return KHUB_OK;
}

static void abandon(void *self, int keep)
{
    (void)keep;
    ck_assert(((sink *)self)->open);
    ((sink *)self)->open = 0;
}

static const khub__sink calls = {begin, take_bytes, restart, finish, abandon};

static int fetch_some(khub__client *client, const khub__repo *repo, khub_error *err)
{
    sink sinks[3] = {0};
    const khub__fetch files[] = {{"a", 6, BLOB, &calls, &sinks[0]},
                                 {"b", UINT64_MAX, NULL, &calls, &sinks[1]},
                                 {"c", 6, NULL, &calls, &sinks[2]}};
    int rc = khub__client_fetch(client, repo, COMMIT, files, 3, "some", err);
    for (size_t i = 0; i < 3; i++)
        ck_assert(!sinks[i].open && (rc != KHUB_OK || sinks[i].finished));
    return rc;
}

static int ask_all(khub__client *client, khub_error *err)
{
    khub__repo repo = {KHUB__REPO_KERNEL, "o/n"};
    khub__refs refs = {0};
    khub__tree tree = {0};
    char commit[KHUB__COMMIT_MAX + 1];
    int trusted = 0;
    int rc = khub__client_refs(&refs, client, &repo, err);
    if (rc == KHUB_OK) rc = khub__client_commit(commit, client, &repo, "v1", err);
    if (rc == KHUB_OK) rc = khub__client_publisher(&trusted, client, "o", err);
    if (rc == KHUB_OK) rc = khub__client_tree(&tree, NULL, client, &repo, COMMIT, err);
    if (rc == KHUB_OK) ck_assert_uint_eq(tree.count, 2);
    if (rc == KHUB_OK) ck_assert_int_eq(trusted, 1);
    if (rc == KHUB_OK) rc = fetch_some(client, &repo, err);
    khub__refs_free(&refs);
    khub__tree_free(&tree);
    return rc;
}

static int whole(void *user, khub_error *err)
{
    (void)user;
    khub__hub_settings settings;
    khub__client *client;
    int rc = khub__hub_settings_read(&settings, NULL, err);
    if (rc != KHUB_OK) return rc;
    rc = khub__client_open(&client, &settings, NULL, NULL, err);
    if (rc == KHUB_OK) rc = ask_all(client, err);
    khub__client_close(client);
    return rc;
}

/* In one process: connections and handles that an earlier run left are used again. */
START_TEST(failing_memory)
{
    serve();
    fm_fail_each_own(whole, NULL);
}
END_TEST

/* The child opens connections of its own, whoever opened the client; the parent's go on. */
START_TEST(forked)
{
    khub_error err = {0};
    serve();
    khub__hub_settings settings;
    khub__client *client;
    ck_khub_ok(khub__hub_settings_read(&settings, NULL, &err), &err);
    ck_khub_ok(khub__client_open(&client, &settings, NULL, NULL, &err), &err);
    ck_khub_ok(ask_all(client, &err), &err);
    pid_t child = fork();
    if (child == 0) _exit(ask_all(client, &err) == KHUB_OK && whole(NULL, &err) == KHUB_OK ? 0 : 1);
    int status = 1;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    ck_khub_ok(ask_all(client, &err), &err);
    khub__client_close(client);
}
END_TEST

UNIT("hub_client", failing_memory, forked)
