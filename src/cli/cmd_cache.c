/* khub cache ls | rm | prune | verify: the cache on disk that all Hugging Face tools share. */
#include "cli.h"

#include <inttypes.h>
#include <stdlib.h>
#include <time.h>

typedef struct cache_options {
    int json, dry_run, model;
    const char *kind, *dir;
} cache_options;

/* Names in a cache are anyone's, so that none is printed as it is. */
static void print_padded(const char *text, int width)
{
    int n = (int)strlen(text);
    cli_name(stdout, text);
    printf("%*s", n < width ? width - n : 0, "");
}

/* "12.3 MB", in powers of 1,000. */
static const char *size_text(char out[32], uint64_t bytes)
{
    static const char *const units[] = {"B", "KB", "MB", "GB", "TB", "PB", "EB"};
    double value = (double)bytes;
    size_t unit = 0;
    while (value >= 999.95 && unit + 1 < sizeof(units) / sizeof(*units))
        value /= 1000, unit++;
    snprintf(out, 32, unit ? "%.1f %s" : "%.0f %s", value, units[unit]);
    return out;
}

/* "3 days ago" */
static const char *age_text(char out[32], int64_t when)
{
    static const struct {
        int64_t seconds;
        const char *name;
    } units[] = {
        {365 * 86400, "year"}, {30 * 86400, "month"}, {86400, "day"}, {3600, "hour"}, {60, "minute"}};
    int64_t age = (int64_t)time(NULL) - when;
    if (!when || age < 0) return "unknown";
    for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++) {
        int64_t n = age / units[i].seconds;
        if (n < 1) continue;
        snprintf(out, 32, "%" PRId64 " %s%s ago", n, units[i].name, n == 1 ? "" : "s");
        return out;
    }
    return "now";
}

static void print_json_text(const char *key, const char *text)
{
    printf("\"%s\": ", key);
    cli_json_text(stdout, text);
}

static void print_names_json(const khub_cached_revision *revision)
{
    print_json_text("kind", revision->kind);
    fputs(", ", stdout);
    print_json_text("repository", revision->repository);
    fputs(", ", stdout);
    print_json_text("commit", revision->commit);
}

static void print_revision_json(const khub_cached_revision *revision)
{
    fputs("{", stdout);
    print_names_json(revision);
    fputs(", \"refs\": [", stdout);
    for (size_t i = 0; revision->refs[i]; i++) {
        if (i) fputs(", ", stdout);
        cli_json_text(stdout, revision->refs[i]);
    }
    fputs("], ", stdout);
    print_json_text("path", revision->path);
    printf(", \"files\": %zu, \"bytes\": %" PRIu64 ", \"own_bytes\": %" PRIu64 ", \"last_used\": %" PRId64
           ", \"last_modified\": %" PRId64 "}",
           revision->file_count, revision->bytes, revision->own_bytes, revision->last_used,
           revision->last_modified);
}

/* 1 when a revision is of the repository (NULL: any) and the kind (NULL: any). */
static int matches(const khub_cached_revision *revision, const char *repository, const char *kind)
{
    return (!repository || !strcmp(revision->repository, repository)) &&
           (!kind || !strcmp(revision->kind, kind));
}

static size_t count_matches(const khub_cache *cache, const char *repository, const char *kind)
{
    const khub_cached_revision *revision;
    size_t count = 0;
    for (size_t i = 0; (revision = khub_cache_at(cache, i)); i++)
        count += (size_t)matches(revision, repository, kind);
    return count;
}

static void list_json(const khub_cache *cache, const char *repository, const char *kind)
{
    const khub_cached_revision *revision;
    const char *warning;
    int some = 0;
    fputs("{", stdout);
    print_json_text("cache", khub_cache_path(cache));
    printf(", \"bytes\": %" PRIu64 ", \"revisions\": [", khub_cache_bytes(cache));
    for (size_t i = 0; (revision = khub_cache_at(cache, i)); i++) {
        if (!matches(revision, repository, kind)) continue;
        if (some++) fputs(",\n ", stdout);
        print_revision_json(revision);
    }
    fputs("], \"warnings\": [", stdout);
    for (size_t i = 0; (warning = khub_cache_warning(cache, i)); i++) {
        if (i) fputs(",\n ", stdout);
        cli_json_text(stdout, warning);
    }
    fputs("]}\n", stdout);
}

static void say_warnings(const khub_cache *cache)
{
    const char *warning;
    size_t n = 0;
    for (; (warning = khub_cache_warning(cache, n)); n++)
        if (cli_verbose()) cli_line(stderr, "khub: warning: %s\n", warning);
    if (n && !cli_verbose())
        cli_note("%zu thing%s in the cache can't be understood; -v lists %s", n, n == 1 ? "" : "s",
                 n == 1 ? "it" : "them");
}

static void print_row(const khub_cached_revision *revision, int width)
{
    char size[32], age[32];
    printf("%-7s  ", revision->kind);
    print_padded(revision->repository, width);
    cli_line(stdout, "  %-12.12s  %9s  %6zu  %-14s ", revision->commit, size_text(size, revision->bytes),
             revision->file_count, age_text(age, revision->last_used));
    for (size_t i = 0; revision->refs[i]; i++) {
        fputc(' ', stdout);
        cli_name(stdout, revision->refs[i]);
    }
    fputc('\n', stdout);
}

static void list_table(const khub_cache *cache, const char *repository, const char *kind)
{
    const khub_cached_revision *revision;
    char size[32];
    int width = (int)strlen("repository"), rows = 0;
    for (size_t i = 0; (revision = khub_cache_at(cache, i)); i++) {
        if (!matches(revision, repository, kind)) continue;
        if ((int)strlen(revision->repository) > width) width = (int)strlen(revision->repository);
        rows++;
    }
    if (rows)
        printf("%-7s  %-*s  %-12s  %9s  %6s  %-14s  refs\n", "kind", width, "repository", "commit", "size",
               "files", "last used");
    for (size_t i = 0; (revision = khub_cache_at(cache, i)); i++)
        if (matches(revision, repository, kind)) print_row(revision, width);
    cli_note("%s: %s", khub_cache_path(cache), size_text(size, khub_cache_bytes(cache)));
    say_warnings(cache);
}

static int run_list(const khub_cache *cache, const cache_options *options, int count, char **names,
                    khub_error *err)
{
    (void)err;
    const char *name = count ? names[0] : NULL;
    if (count > 1) return cli_usage("cache", "ls takes one repository, or none");
    if (name && strchr(name, '@')) return cli_usage("cache", "ls takes a repository, ORG/NAME without \"@\"");
    int missing = name && !count_matches(cache, name, options->kind);
    if (options->json)
        list_json(cache, name, options->kind);
    else if (!missing)
        list_table(cache, name, options->kind);
    if (missing)
        cli_print(stderr, "khub: %s: no revision of a %s of that name is in the cache (%s)\n", name,
                  options->kind ? options->kind : "repository", khub_cache_path(cache));
    return missing ? EXIT_FAILED : EXIT_DONE;
}

static void print_removed(const khub_removed *removed, const cache_options *options)
{
    char size[32];
    if (options->json) {
        printf("\"freed\": %" PRIu64 ", \"repositories\": %zu, \"revisions\": %zu, \"blobs\": %zu, "
               "\"partial_downloads\": %zu, \"dry_run\": %s}\n",
               removed->bytes, removed->repositories, removed->revisions, removed->blobs,
               removed->partial_downloads, options->dry_run ? "true" : "false");
        return;
    }
    printf("%s %s: %zu revision%s, %zu blob%s, %zu partial download%s",
           options->dry_run ? "would free" : "freed", size_text(size, removed->bytes), removed->revisions,
           removed->revisions == 1 ? "" : "s", removed->blobs, removed->blobs == 1 ? "" : "s",
           removed->partial_downloads, removed->partial_downloads == 1 ? "" : "s");
    if (removed->repositories && !removed->revisions) /* else they are what the revisions were in */
        printf(", %zu repositor%s without revisions", removed->repositories,
               removed->repositories == 1 ? "y" : "ies");
    putchar('\n');
}

static int has_ref(const khub_cached_revision *revision, const char *wanted)
{
    for (size_t i = 0; revision->refs[i]; i++)
        if (!strcmp(revision->refs[i], wanted)) return 1;
    return 0;
}

/* 1 when "@WANTED" can mean this revision: a ref, "1" for "v1", the commit or the beginning of it. */
static int is_meant(const khub_cached_revision *revision, const char *wanted)
{
    char version[64];
    snprintf(version, sizeof(version), "v%.60s", wanted);
    if (has_ref(revision, wanted)) return 1;
    if (wanted[strspn(wanted, "0123456789")] == 0 && strlen(wanted) < 7 && has_ref(revision, version))
        return 1;
    return strlen(wanted) >= 6 && !strncmp(revision->commit, wanted, strlen(wanted));
}

/* The commit that REV of ORG/NAME@REV means in the cache; NULL, and it is said. */
static const char *find_commit(const khub_cache *cache, const char *kind, const char *repository,
                               const char *wanted)
{
    const khub_cached_revision *revision, *found = NULL;
    size_t n = 0, all = count_matches(cache, repository, kind);
    for (size_t i = 0; (revision = khub_cache_at(cache, i)); i++) {
        if (!matches(revision, repository, kind) || !is_meant(revision, wanted)) continue;
        found = revision;
        n++;
    }
    if (n == 1) return found->commit;
    cli_print(stderr,
              n ? "khub: %s: %zu snapshots in the cache can be meant by \"%s\":\n"
                : "khub: %s: none of the %zu snapshots in the cache is \"%s\":\n",
              repository, n ? n : all, wanted);
    for (size_t i = 0; (revision = khub_cache_at(cache, i)); i++) {
        if (!matches(revision, repository, kind) || (n && !is_meant(revision, wanted))) continue;
        cli_print(stderr, "    %s", revision->commit);
        for (size_t k = 0; revision->refs[k]; k++)
            cli_print(stderr, " %s", revision->refs[k]);
        fputc('\n', stderr);
    }
    return NULL;
}

/* What "ORG/NAME[@REV]" means in the cache. */
typedef struct target {
    char repository[256];
    const char *commit; /* borrowed; NULL: all of it */
} target;

static const char *kind_of(const cache_options *options)
{
    return options->kind ? options->kind : "kernel";
}

static int fail_removal(const khub_error *err)
{
    int status = cli_fail(err);
    if (err->code == KHUB_E_NOTFOUND && strstr(err->message, " as a "))
        fputs("khub: --kind says which kind of repository is meant (--model: --kind model)\n", stderr);
    return status;
}

/* EXIT_DONE, or it is said what isn't there. */
static int find_target(target *out, const khub_cache *cache, const cache_options *options, const char *name)
{
    const char *at = strchr(name, '@'), *kind = kind_of(options);
    size_t length = at ? (size_t)(at - name) : strlen(name);
    if (length == 0 || length >= sizeof(out->repository) || (at && !at[1]))
        return cli_usage("cache", "\"%s\" isn't ORG/NAME or ORG/NAME@REV", name);
    memcpy(out->repository, name, length);
    out->repository[length] = 0;
    out->commit = NULL;
    if (at && !count_matches(cache, out->repository, kind))
        out->commit = at + 1; /* which isn't there: never the whole repository */
    else if (at && !(out->commit = find_commit(cache, kind, out->repository, at + 1)))
        return EXIT_FAILED;
    khub_error err = {0};
    khub_removed nothing;
    int rc = khub_cache_remove(&nothing, cache, kind, out->repository, out->commit, 1, &err);
    return rc == KHUB_OK ? EXIT_DONE : fail_removal(&err);
}

/* 1: one of the `count` targets takes it out already. */
static int is_covered(const target *wanted, const target *others, int count)
{
    for (int i = 0; i < count; i++)
        if (!strcmp(others[i].repository, wanted->repository) &&
            (!others[i].commit || (wanted->commit && !strcmp(others[i].commit, wanted->commit))))
            return 1;
    return 0;
}

static int remove_targets(khub_removed *all, const khub_cache *cache, const cache_options *options,
                          const target *targets, int count, khub_error *err)
{
    int rc = KHUB_OK;
    for (int i = 0; rc == KHUB_OK && i < count; i++) {
        khub_removed one = {0};
        khub_cache *now = NULL; /* what the ones before took out isn't in it any more */
        if (is_covered(&targets[i], targets, i)) continue;
        rc = khub_cache_read(&now, khub_cache_path(cache), err);
        if (rc != KHUB_OK) break;
        rc = khub_cache_remove(&one, now, kind_of(options), targets[i].repository, targets[i].commit,
                               options->dry_run, err);
        khub_cache_free(now);
        if (rc == KHUB_E_NOTFOUND) { /* it went with one before, or by another process */
            khub_error_clear(err);
            rc = KHUB_OK;
        }
        all->bytes += one.bytes;
        all->blobs += one.blobs;
        all->revisions += one.revisions;
        all->repositories += one.repositories;
        all->partial_downloads += one.partial_downloads;
    }
    return rc;
}

/* All or nothing: a name that isn't there ends it before anything is taken out. */
static int run_remove(const khub_cache *cache, const cache_options *options, int count, char **names,
                      khub_error *err)
{
    if (count < 1) return cli_usage("cache", "rm: which repository?");
    target *targets = calloc((size_t)count, sizeof(*targets));
    if (!targets) return cli_fail_memory();
    khub_removed all = {0};
    int status = EXIT_DONE, rc = KHUB_OK;
    for (int i = 0; status == EXIT_DONE && i < count; i++)
        status = find_target(&targets[i], cache, options, names[i]);
    if (status == EXIT_DONE) {
        rc = remove_targets(&all, cache, options, targets, count, err);
        if (rc == KHUB_OK || all.revisions) {
            if (options->json) fputs("{", stdout);
            print_removed(&all, options);
        }
        if (rc != KHUB_OK) status = fail_removal(err);
    }
    free(targets);
    return status;
}

/* What prune prints of each revision. */
typedef struct pruning {
    int json;
    size_t count;
} pruning;

static void show_pruned(void *user, const khub_cached_revision *revision)
{
    pruning *p = user;
    char size[32];
    if (p->json) {
        fputs(p->count++ ? ",\n {" : "{", stdout);
        print_names_json(revision);
        printf(", \"own_bytes\": %" PRIu64 "}", revision->own_bytes);
        return;
    }
    printf("%-7s  ", revision->kind);
    cli_name(stdout, revision->repository);
    cli_line(stdout, "@%.12s  %s\n", revision->commit, size_text(size, revision->own_bytes));
}

static int run_prune(const khub_cache *cache, const cache_options *options, int count, char **names,
                     khub_error *err)
{
    (void)names;
    khub_removed removed;
    pruning p = {.json = options->json};
    if (count > 0) return cli_usage("cache", "prune takes no names: it looks at the whole cache");
    if (p.json) fputs("{\"removed\": [", stdout);
    int rc = khub_cache_prune(&removed, cache, options->dry_run, show_pruned, &p, err);
    if (p.json) fputs("], ", stdout);
    if (p.json || rc == KHUB_OK || removed.revisions) print_removed(&removed, options);
    say_warnings(cache);
    return rc == KHUB_OK ? EXIT_DONE : cli_fail(err);
}

typedef struct verification {
    int json;
    size_t files;
    size_t of_state[4];
} verification;

static int show_file(void *user, const khub_cached_revision *revision, const char *file,
                     khub_file_state state, const char *detail)
{
    static const char *const states[] = {"good", "changed", "missing", "unknown"};
    verification *v = user;
    v->of_state[state]++;
    if (v->json) {
        fputs(v->files++ ? ",\n {" : "{", stdout);
        print_names_json(revision);
        fputs(", ", stdout);
        print_json_text("file", file);
        printf(", \"state\": \"%s\", ", states[state]);
        print_json_text("detail", detail);
        fputs("}", stdout);
        return ferror(stdout);
    }
    v->files++;
    if (state == KHUB_FILE_GOOD && !cli_verbose()) return 0;
    printf("%-7s  ", states[state]);
    cli_name(stdout, revision->repository);
    cli_line(stdout, "@%.12s ", revision->commit);
    cli_name(stdout, file);
    if (detail) fputs(": ", stdout), cli_name(stdout, detail);
    fputc('\n', stdout);
    return ferror(stdout);
}

static int run_verify(const khub_cache *cache, const cache_options *options, int count, char **names,
                      khub_error *err)
{
    verification v = {.json = options->json};
    size_t bad = 0;
    if (count > 1) return cli_usage("cache", "verify takes one repository, or none");
    if (v.json) fputs("{\"files\": [", stdout);
    int rc = khub_cache_verify(&bad, cache, count ? names[0] : NULL, show_file, &v, err);
    if (v.json) printf("], \"bad\": %zu}\n", bad);
    if (rc != KHUB_OK) return cli_fail(err);
    if (!v.json)
        printf("%zu file%s: %zu good, %zu changed, %zu missing, %zu unknown\n", v.files,
               v.files == 1 ? "" : "s", v.of_state[KHUB_FILE_GOOD], v.of_state[KHUB_FILE_CHANGED],
               v.of_state[KHUB_FILE_MISSING], v.of_state[KHUB_FILE_UNKNOWN]);
    if (bad)
        fprintf(stderr, "khub: khub cache rm REPO@COMMIT takes out what isn't what it claims to be; the next "
                        "use fetches it again\n");
    return bad ? EXIT_UNTRUSTED : EXIT_DONE;
}

typedef int action_fn(const khub_cache *cache, const cache_options *options, int count, char **names,
                      khub_error *err);

static action_fn *find_action(const char *name)
{
    static const struct {
        const char *name;
        action_fn *run;
    } actions[] = {{"ls", run_list},
                   {"list", run_list},
                   {"rm", run_remove},
                   {"prune", run_prune},
                   {"verify", run_verify}};
    for (size_t i = 0; i < sizeof(actions) / sizeof(*actions); i++)
        if (!strcmp(actions[i].name, name)) return actions[i].run;
    return NULL;
}

static int run(int argc, char **argv)
{
    cache_options o = {0};
    const cli_option options[] = {{"--json", CLI_FLAG, &o.json},
                                  {"--dry-run", CLI_FLAG, &o.dry_run},
                                  {"--model", CLI_FLAG, &o.model},
                                  {"--kind", CLI_TEXT, &o.kind},
                                  {"--cache-dir", CLI_TEXT, &o.dir}};
    int n = cli_options(argc, argv, options, sizeof(options) / sizeof(*options));
    if (n < 0) return EXIT_USAGE;
    if (n < 1) return cli_usage("cache", "ls, rm, prune or verify?");
    action_fn *action = find_action(argv[1]);
    if (!action) return cli_usage("cache", "there is no \"%s\": ls, rm, prune or verify", argv[1]);
    if (o.dry_run && (action == run_list || action == run_verify))
        return cli_usage("cache", "%s changes nothing, so that --dry-run says nothing", argv[1]);
    if (o.model) o.kind = "model";
    khub_error err = {0};
    khub_cache *cache;
    if (khub_cache_read(&cache, o.dir, &err) != KHUB_OK) return cli_fail(&err);
    int status = action(cache, &o, n - 1, argv + 2, &err);
    khub_cache_free(cache);
    return status;
}

const cli_command cli_cache = {
    .name = "cache",
    .summary = "what is in the cache, and taking it out: ls, rm, prune, verify",
    .help =
        "khub cache ls | rm | prune | verify: the cache that all Hugging Face tools share\n\n"
        "    khub cache ls\n"
        "    khub cache rm kernels-community/activation@v1\n"
        "    khub cache prune --dry-run\n"
        "    khub cache verify kernels-community/activation\n\n"
        "ls [REPO]             what is there: size, files, when a file of it was last read, refs\n"
        "rm REPO[@REV]...      takes out a repository, or one revision of it (a ref, a commit, its first "
        "6 digits),\n"
        "                      without asking; files that another revision needs stay\n"
        "prune                 takes out revisions that no ref names (also those that only a kernels.lock "
        "names, or\n"
        "                      that were asked for by commit), files that no revision needs, and downloads "
        "that were\n"
        "                      interrupted; says which revisions, and the size of what each had for itself\n"
        "verify [REPO]         hashes every file again\n\n"
        "    --dry-run         rm, prune: only says what would go\n"
        "    --kind KIND       kernel (rm's default), model, dataset or space; --model is --kind model\n"
        "    --cache-dir DIR   instead of KERNELS_CACHE, HF_HUB_CACHE, HF_HOME/hub, "
        "~/.cache/huggingface/hub\n"
        "    --json            ls: {\"cache\", \"bytes\", \"revisions\": [{\"kind\", \"repository\", "
        "\"commit\", \"refs\",\n"
        "                      \"path\", \"files\", \"bytes\", \"own_bytes\", \"last_used\", "
        "\"last_modified\"}], \"warnings\"}\n"
        "                      rm, prune: {\"freed\", \"repositories\", \"revisions\", \"blobs\", "
        "\"partial_downloads\",\n"
        "                      \"dry_run\"}, prune also \"removed\": [{\"kind\", \"repository\", "
        "\"commit\",\n"
        "                      \"own_bytes\"}]; verify: {\"files\": [{\"kind\", \"repository\", \"commit\", "
        "\"file\", \"state\",\n"
        "                      \"detail\"}], \"bad\"}\n\n"
        "exit status of verify: 4 when a file is changed or missing\n",
    .run = run,
};
