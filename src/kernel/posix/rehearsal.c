#include "kernel/rehearsal.h"

#include "base/contained.h"
#include "base/error.h"
#include "kernel/library.h"

#include <khub/log.h>

#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

enum { PATIENCE_S = 60, WORDS = 500 };

typedef struct rehearsal {
    uint64_t beat; /* odd for good: the patience is for all of it */
    const char *path, *operators;
    const khub__proven *proven;
    int said;        /* the file that takes what the child prints; -1: stderr */
    int takes_files; /* 1: it closes files that aren't its own */
} rehearsal;

/* Whether they are open: the three that each process begins with and r->said, a bit each. */
static unsigned open_files(const rehearsal *r)
{
    const int files[] = {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO, r->said};
    unsigned open = 0;
    for (unsigned i = 0; i < sizeof(files) / sizeof(*files); i++)
        if (fcntl(files[i], F_GETFD) >= 0) open |= 1U << i;
    return open;
}

/* In the child. What comes back in order the parent finds by itself. */
static void load(void *user)
{
    rehearsal *r = user;
    const khub__library *library;
    struct rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none);
    khub_set_log(NULL, NULL); /* the parent tells it */
    for (int fd = STDOUT_FILENO; r->said >= 0 && fd <= STDERR_FILENO; fd++)
        dup2(r->said, fd);
    unsigned before = open_files(r);
    khub__library_open(&library, r->path, r->operators, r->proven, NULL);
    r->takes_files = before & ~open_files(r) ? 1 : 0;
}

/* The beginning of what it printed, as one line: "terminate called after throwing …"; "": nothing. */
static void read_said(char words[WORDS], int said)
{
    ssize_t n = said >= 0 ? pread(said, words, WORDS - 1, 0) : 0;
    size_t length = 0;
    for (ssize_t i = 0; i < n; i++) {
        int blank = (unsigned char)words[i] <= ' ';
        if (!blank || (length && words[length - 1] != ' ')) words[length++] = blank ? ' ' : words[i];
    }
    if (length && words[length - 1] == ' ') length--;
    words[length] = 0;
}

static int judge(const rehearsal *r, const khub__end *end, khub_error *err)
{
    char how[100], words[WORDS];
    if (end->how == KHUB__RETURNED)
        return r->takes_files
                   ? khub__fail(err, KHUB_E_LOAD,
                                "%s: loading it closes files of the process that aren't its own", r->path)
                   : KHUB_OK;
    read_said(words, r->said);
    if (end->how == KHUB__HUNG)
        snprintf(how, sizeof(how), "doesn't come to an end in %d s", PATIENCE_S);
    else
        snprintf(how, sizeof(how), "ends the process: %.70s", khub__end_words(end, (char[100]){0}));
    return khub__fail(err, KHUB_E_LOAD, "%s: loading it %s%s%s", r->path, how, *words ? "; it said: " : "",
                      words);
}

int khub__rehearse(const char *path, const char *operators, const khub__proven *proven, khub_error *err)
{
    khub__end end;
    rehearsal *r = khub__shared_new(sizeof(*r));
    if (!r) return khub__fail_memory(err, "loading a library");
    FILE *said = tmpfile();
    *r = (rehearsal){1, path, operators, proven, said ? fileno(said) : -1, 0};
    int rc = khub__contain(&end, load, r, &r->beat, PATIENCE_S * 1000, err);
    if (rc == KHUB_OK) rc = judge(r, &end, err);
    if (said) fclose(said);
    khub__shared_free(r, sizeof(*r));
    return rc;
}
