/* Loads a kernel again and again, each time in a process of its own, while somebody swaps its library:
 *
 *     hub_loads NAME COUNT rename|write LIBRARY GOOD EVIL
 *
 * "rename" puts copies of GOOD and EVIL in the place of LIBRARY in turn, "write" writes their bytes into it.
 * The environment says the rest. Prints how often it was loaded and refused, and what else came of it. */
#include <khub/khub.h>

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct swapper {
    const char *library, *mode, *files[2];
    char *bytes[2];
    size_t sizes[2];
    atomic_int stop;
} swapper;

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

static void put(const char *path, const char *bytes, size_t size)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0 || pwrite(fd, bytes, size, 0) != (ssize_t)size || close(fd) != 0) fail(path);
}

static void swap(const swapper *s, int which)
{
    char beside[4096];
    if (!strcmp(s->mode, "write")) {
        put(s->library, s->bytes[which], s->sizes[which]); /* waits while somebody holds it */
        return;
    }
    snprintf(beside, sizeof(beside), "%s.new", s->library);
    put(beside, s->bytes[which], s->sizes[which]);
    if (rename(beside, s->library) != 0) fail("rename");
}

static void *swap_all_the_time(void *user)
{
    swapper *s = user;
    unsigned random = 1;
    for (int which = 1; !atomic_load(&s->stop); which = !which) {
        swap(s, which);
        random = random * 1103515245 + 12345;
        usleep((random >> 16) % 1500);
    }
    swap(s, 0);
    return NULL;
}

static void read_file(swapper *s, int which)
{
    FILE *f = fopen(s->files[which], "rb");
    s->bytes[which] = malloc(1 << 20);
    s->sizes[which] = f && s->bytes[which] ? fread(s->bytes[which], 1, 1 << 20, f) : 0;
    if (!s->sizes[which]) fail(s->files[which]);
    fclose(f);
}

static khub_platform *platform(void)
{
    struct utsname machine;
    char json[200];
    khub_platform *made = NULL;
    uname(&machine);
    snprintf(json, sizeof(json), "{\"os\":\"linux\",\"arch\":\"%s\",\"backend\":\"cpu\",\"tvm_ffi\":\"0.1\"}",
             machine.machine);
    khub_platform_parse(&made, json, strlen(json), "platform", NULL);
    return made;
}

/* In a child: 0 loaded, 1 refused, 2 something else. */
static int load(const char *name, const khub_get_options *options)
{
    khub_error err = {0};
    khub_kernel *kernel;
    int rc = khub_get(&kernel, name, options, &err);
    if (rc != KHUB_OK && rc != KHUB_E_UNTRUSTED) fprintf(stderr, "%s\n", err.message);
    return rc == KHUB_OK ? 0 : rc == KHUB_E_UNTRUSTED ? 1 : 2;
}

int main(int argc, char **argv)
{
    if (argc != 7) return 2;
    static swapper s;
    s = (swapper){.mode = argv[3], .library = argv[4], .files = {argv[5], argv[6]}};
    read_file(&s, 0);
    read_file(&s, 1);
    khub_get_options options;
    KHUB_INIT(&options);
    options.platform = platform();
    int ends[3] = {0}, status;
    pthread_t thread;
    if (pthread_create(&thread, NULL, swap_all_the_time, &s) != 0) return 1;
    for (int i = atoi(argv[2]); i > 0; i--) {
        pid_t child = fork();
        if (child == 0) _exit(load(argv[1], &options));
        if (child < 0 || waitpid(child, &status, 0) != child) fail("child");
        ends[WIFEXITED(status) && WEXITSTATUS(status) < 2 ? WEXITSTATUS(status) : 2]++;
    }
    atomic_store(&s.stop, 1);
    pthread_join(thread, NULL);
    printf("{\"loaded\": %d, \"refused\": %d, \"other\": %d}\n", ends[0], ends[1], ends[2]);
    khub_platform_free(options.platform ? (khub_platform *)(uintptr_t)options.platform : NULL);
    free(s.bytes[0]);
    free(s.bytes[1]);
    return 0;
}
