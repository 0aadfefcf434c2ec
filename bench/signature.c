/* What judging a signature takes: at most 1.5 ms is asked for. The bundles are those of tests/signature; the
 * old log's cost one signature on P-384 (the certificate's), a signer on P-384 and the new log's timestamp a
 * second one, which OpenSSL before 3.2 is slow at: two processors verify them side by side. */
#include "timing.h"

#include <khub/khub.h>

#define SIGNED "{\"name\": \"relu\"}\n"

typedef struct job {
    char bundle[1 << 16];
    size_t bytes;
    khub_signature_options options;
} job;

static void judge(void *user)
{
    const job *j = user;
    khub_signature s;
    khub_error err = {0};
    if (khub_signature_verify(&s, SIGNED, sizeof(SIGNED) - 1, j->bundle, j->bytes, &j->options, NULL, &err) !=
        KHUB_OK) {
        fprintf(stderr, "signature: %s\n", err.message);
        exit(1);
    }
    khub_signature_free(&s);
}

static void open_root(void *user)
{
    khub_trusted_root *root;
    if (khub_trusted_root_open(&root, user, NULL) != KHUB_OK) exit(1);
    khub_trusted_root_free(root);
}

static void read_bundle(job *j, const char *path)
{
    FILE *f = fopen(path, "rb");
    j->bytes = f ? fread(j->bundle, 1, sizeof(j->bundle), f) : 0;
    if (f) fclose(f);
}

static void print(const char *what, timing t)
{
    printf("%-52s %8.3f %8.3f\n", what, 1e3 * t.best, 1e3 * t.median);
}

int main(void)
{
    static job j;
    static char root[] = "tests/signature/root.json";
    static const char *const kinds[][2] = {
        {"tests/signature/0.1.json", "old log, signer on P-384"},
        {"tests/signature/0.3.json", "old log and a timestamp, signer on P-256"},
        {"tests/signature/new.json", "new log and a timestamp, signer on P-256"}};
    khub_error err = {0};
    khub_trusted_root *opened;
    KHUB_INIT(&j.options);
    if (khub_trusted_root_open(&opened, root, &err) != KHUB_OK) {
        fprintf(stderr, "signature: %s (to be run in the repository)\n", err.message);
        return 1;
    }
    j.options.root = opened;
    printf("milliseconds%40s %8s %8s\n", "", "best", "median");
    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
        read_bundle(&j, kinds[i][0]);
        print(kinds[i][1], measure(judge, &j, 1));
    }
    print("opening a trusted root", measure(open_root, root, 1));
    khub_trusted_root_free(opened);
    return 0;
}
