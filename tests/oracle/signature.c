/* Reads "ROOT BUNDLE DATA ISSUER REPOSITORY WORKFLOW SUBJECT" from each line of stdin, words between tabs,
 * and judges DATA's signature in BUNDLE; "-" for an identity's field that may be anything, an ISSUER "-" for
 * khub's own identities, a ROOT "-" for the installed one. Prints a line for each: the reason, then
 * "INTEGRATED TIMESTAMP LOG_INDEX REPOSITORY COMMIT" when the signature holds, else the words. For tests that
 * compare with sigstore's Python package. */
#include <khub/signature.h>

#include <stdio.h>
#include <stdlib.h>

enum { WORDS = 7, LINE_MAX_BYTES = 8192 };

static char *read_all(const char *path, size_t *length)
{
    static char bytes[1 << 20];
    FILE *f = fopen(path, "rb");
    *length = f ? fread(bytes, 1, sizeof(bytes), f) : 0;
    if (f) fclose(f);
    return f ? bytes : NULL;
}

/* The words of a line, "-" as NULL. */
static int split(char *line, const char *words[WORDS])
{
    int n = 0;
    line[strcspn(line, "\n")] = 0;
    for (char *word = line; word && n < WORDS; n++) {
        char *tab = strchr(word, '\t');
        if (tab) *tab = 0;
        words[n] = strcmp(word, "-") != 0 ? word : NULL;
        word = tab ? tab + 1 : NULL;
    }
    return n == WORDS;
}

static void print(const khub_signature *s)
{
    printf("%s\t", khub_signature_reason_name(s->reason));
    if (s->reason == KHUB_SIGNATURE_HOLDS)
        printf("%lld %lld %lld %s %s\n", (long long)s->integrated_s, (long long)s->timestamp_s,
               (long long)s->log_index, s->repository ? s->repository : "-", s->commit ? s->commit : "-");
    else
        printf("%s\n", s->words);
}

static int judge(const khub_trusted_root *root, const char *const words[WORDS], khub_error *err)
{
    size_t length;
    const char *data = read_all(words[2], &length);
    khub_identity identity = {words[3], words[4], words[5], words[6]};
    khub_signature_options options;
    khub_signature s;
    KHUB_INIT(&options);
    options.root = root;
    options.identities = words[3] ? &identity : NULL;
    options.identity_count = 1;
    if (!data) return 1;
    int rc = khub_signature_verify_file(&s, data, length, words[1], &options, NULL, err);
    if (rc == KHUB_OK || rc == KHUB_E_UNTRUSTED)
        print(&s);
    else
        printf("%s\t%s\n", khub_status_name(rc), err->message);
    if ((rc == KHUB_OK) != (s.reason == KHUB_SIGNATURE_HOLDS && s.memory)) return 1;
    khub_signature_free(&s);
    return 0;
}

int main(void)
{
    static char line[LINE_MAX_BYTES], opened[LINE_MAX_BYTES];
    khub_trusted_root *root = NULL;
    int failed = 0;
    while (!failed && fgets(line, sizeof(line), stdin)) {
        const char *words[WORDS];
        khub_error err = {0};
        if (!split(line, words)) return 2;
        if (!root || strcmp(opened, words[0] ? words[0] : "") != 0) {
            khub_trusted_root_free(root);
            int rc = khub_trusted_root_open(&root, words[0], &err);
            snprintf(opened, sizeof(opened), "%s", words[0] ? words[0] : "");
            if (rc != KHUB_OK) {
                printf("root\t%s\n", err.message);
                continue;
            }
        }
        failed = judge(root, words, &err);
    }
    khub_trusted_root_free(root);
    return failed;
}
